"""How clients and brokers behave: slowness, waits, waste, broken connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.client_traffic import CLUSTER_APIS
from kwiresniff.analysis.clients import host_of
from kwiresniff.analysis.doctor.tally import MAX_SUBJECTS, Case, Tally, client_of, place_of
from kwiresniff.analysis.latency import Histogram
from kwiresniff.analysis.names import record_sets
from kwiresniff.answers.findings import Finding
from kwiresniff.model import Connection, Exchange, Problem, TopicNames

PRODUCE, FETCH, METADATA, OFFSET_COMMIT, JOIN_GROUP = 0, 1, 3, 8, 11

#: An answer that the broker did not hold back on purpose is slow from here on.
SLOW_NS = 1_000_000_000
#: A request that was not answered so short a time before the last message may just not have been answered yet.
LATE_NS = 2_000_000_000
#: Fetches to one broker that may go unanswered because their connections ended.
FEW_FETCHES = 10
#: Requests of an API that must be seen before a percentile says anything.
ENOUGH = 20
#: A client may ask for metadata, or a member commit, so often in a second before it is waste.
METADATA_PER_SECOND = 5.0
COMMITS_PER_SECOND = 10.0
#: Produce requests that must be seen, and records in each, below which batching is off.
ENOUGH_PRODUCES = 500
FEW_RECORDS = 2.0
#: Fetches that must be seen, and the part of them that brings nothing, above which polling is too eager.
ENOUGH_FETCHES = 500
EMPTY_FETCHES = 0.9
EMPTY_PER_SECOND = 20.0
#: Generations of one group in ten minutes before it rebalances too much, and how long one join may take.
REBALANCES = 3
LONG_REBALANCE_NS = 10_000_000_000
#: Connections one client opens to one broker in a minute before it is churn.
CONNECTIONS_PER_MINUTE = 30.0
ENOUGH_CONNECTIONS = 20
#: The part of segments sent twice above which the network is bad.
RETRANSMITS = 0.01
ENOUGH_PACKETS = 1_000


def _finding(
    code: str, severity: str, subject: str, title: str, remedy: str, case: Case, numbers: dict[str, Any] | None = None
) -> Finding:
    return Finding(code, severity, subject, title, remedy, case.count, tuple(case.evidence), numbers or {})


class Latency:
    """Requests that took long although nobody meant them to, and those that were never answered."""

    def __init__(self) -> None:
        self._slow = Tally()
        self._all: dict[tuple[str, str], Histogram] = {}
        self._unanswered = Tally()
        self._throttled = Tally()
        self._end_ns = 0
        self._of_cluster: dict[str, bool] = {}

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        message = response or request
        if message is not None and message.last_ns > self._end_ns:
            self._end_ns = message.last_ns
        if exchange.outcome == "unanswered" and request is not None:
            case = self._unanswered.case(exchange.connection.broker, exchange.api)
            case.add(request.first_packet, request.first_ns)
            case.name(client_of(exchange))
            self._of_cluster.setdefault(exchange.api, exchange.api_key in CLUSTER_APIS)
            return
        latency_ns = exchange.latency_ns
        if latency_ns is None or response is None:
            return
        throttle_ms = response.body.get("throttle_time_ms", 0) if response.body is not None else 0
        if throttle_ms:
            self._throttled.case(client_of(exchange)).add(*place_of(exchange), throttle_ms)
        if exchange.waiting:
            return
        if exchange.api_key == FETCH and request is not None and request.body is not None:
            # Brokers overrun the wait of a long poll by what their timers take; only what is beyond it can be slow.
            latency_ns -= request.body.get("max_wait_ms", 0) * 1_000_000
        key = (exchange.connection.broker, exchange.api)
        if key in self._all or len(self._all) < MAX_SUBJECTS:
            self._all.setdefault(key, Histogram()).add(latency_ns)
        if latency_ns >= SLOW_NS:
            case = self._slow.case(*key)
            case.add(*place_of(exchange), latency_ns)
            case.name(client_of(exchange))

    def findings(self) -> Iterator[Finding]:
        for broker, api, case in self._slow:
            known = self._all.get((broker, api))
            numbers: dict[str, Any] = {"api": api, "worst_ns": case.most, "clients": list(case.names)}
            much = False
            if known is not None and (summary := known.summary()) is not None:
                numbers |= {"of": known.count, "p50_ns": summary.p50_ns, "p99_ns": summary.p99_ns}
                much = known.count >= ENOUGH and summary.p99_ns >= SLOW_NS
            remedy = (
                "With acks=all it waits for the slowest replica in sync: look at disks and network of the brokers, and "
                "at their RemoteTimeMs and LocalTimeMs metrics."
                if api == "Produce"
                else "Compare with other brokers (kwiresniff stats --by broker): one that is slow has a disk, CPU or "
                "request-queue problem; all that are slow share a network or a controller."
            )
            title = f"{api} takes more than a second"
            yield _finding("slow", "error" if much else "warning", broker, title, remedy, case, numbers)
        for broker, api, case in self._unanswered:
            late = case.first_ns > self._end_ns - LATE_NS
            # A long poll is under way whenever a consumer closes; a broker that stops leaves its peers unanswered.
            calm = late or (api == "Fetch" and case.count <= FEW_FETCHES)
            yield _finding(
                "unanswered",
                "info" if calm else "warning" if self._of_cluster.get(api) else "error",
                broker,
                f"{api} was not answered" + (" before the capture ended" if late else ""),
                "The connection ended, the broker was down or stuck, or the client gave up (request.timeout.ms).",
                case,
                {"api": api, "clients": list(case.names)},
            )
        for subject, _, case in self._throttled:
            yield _finding(
                "throttled",
                "warning",
                subject,
                "is throttled by a quota",
                "Raise its produce, fetch or request quota, or make it ask for less.",
                case,
                {"longest_ms": case.most, "total_ms": case.total},
            )


class Waste:
    """Clients that make brokers work for nothing."""

    def __init__(self, topic_name: TopicNames | None) -> None:
        self._topic_name = topic_name
        self._metadata = Tally()
        self._commits = Tally()
        self._produces = Tally()
        self._fetches = Tally()
        self._empty = Tally()
        self._unsafe = Tally()
        self._old = Tally()

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        if request is None:
            return
        subject = client_of(exchange)
        where = (request.first_packet, request.first_ns)
        api_key = exchange.api_key
        if api_key == METADATA:
            self._metadata.case(subject).add(*where)
        elif api_key == OFFSET_COMMIT:
            self._commits.case(subject).add(*where)
        elif api_key == PRODUCE and request.body is not None:
            self._produce(subject, request.body, where)
        elif api_key == FETCH and response is not None and response.body is not None:
            self._fetches.case(subject).add(*where)
            if not any(batches for _, _, batches in record_sets(response.body)):
                self._empty.case(subject).add(*where)

    def _produce(self, subject: str, body: dict[str, Any], where: tuple[int, int]) -> None:
        records = batches = sealed = 0
        for topic, _, found in record_sets(body, self._topic_name):
            for batch in found if isinstance(found, list) else ():
                batches += 1
                records += batch.get("records_count", 1)
                if batch.get("magic", 2) < 2:
                    # A compressed message of the old format holds others, and they are not counted without opening it.
                    sealed += batch.get("compression") != "none"
                    case = self._old.case(subject)
                    case.add(*where)
                    case.name(f"topic {topic}")
        if batches and not sealed:
            self._produces.case(subject).add(*where, records)
        if body.get("acks") == 0:
            self._unsafe.case(subject).add(*where)

    def findings(self) -> Iterator[Finding]:
        for subject, _, case in self._metadata:
            rate = case.count / case.seconds
            if case.count >= ENOUGH and rate > METADATA_PER_SECOND:
                remedy = (
                    "A client that asks again and again misses a topic or a leader, or is made anew for every message: "
                    "look at what its answers say."
                )
                yield _finding(
                    "metadata_storm", "warning", subject, f"asks for metadata {rate:.0f} times a second", remedy, case
                )
        for subject, _, case in self._commits:
            rate = case.count / case.seconds
            if case.count >= ENOUGH and rate > COMMITS_PER_SECOND:
                yield _finding(
                    "commit_storm",
                    "warning",
                    subject,
                    f"commits offsets {rate:.0f} times a second",
                    "Commit after a batch or at an interval instead of after every record.",
                    case,
                )
        for subject, _, case in self._produces:
            if case.count >= ENOUGH_PRODUCES and case.total / case.count < FEW_RECORDS:
                mean = case.total / case.count
                remedy = (
                    "Raise linger.ms (5 to 20 ms) and batch.size: requests, not bytes, are what brokers run out of."
                )
                title = f"sends {mean:.1f} records in a request"
                yield _finding("small_batches", "warning", subject, title, remedy, case, {"records": case.total})
        fetches = {subject: case.count for subject, _, case in self._fetches}
        for subject, _, case in self._empty:
            whole = fetches.get(subject, case.count)
            if (
                whole >= ENOUGH_FETCHES
                and case.count / whole > EMPTY_FETCHES
                and whole / case.seconds > EMPTY_PER_SECOND
            ):
                remedy = "Raise fetch.max.wait.ms or fetch.min.bytes; a wait of 0 makes the consumer poll in a circle."
                yield _finding(
                    "empty_fetches", "info", subject, f"{case.count} of {whole} fetches bring nothing", remedy, case
                )
        for subject, _, case in self._unsafe:
            remedy = "Records can be lost without anybody knowing. Use acks=all where they matter."
            yield _finding("acks_0", "info", subject, "produces without acknowledgement (acks=0)", remedy, case)
        for subject, _, case in self._old:
            remedy = (
                "Brokers convert them, at the cost of CPU and memory, and releases from 4.0 on refuse them: move the "
                "client to one that writes batches of format 2 (Kafka 0.11)."
            )
            title = "writes the message format of before Kafka 0.11"
            yield _finding(
                "old_message_format", "warning", subject, title, remedy, case, {"concerns": list(case.names)}
            )


class Groups:
    """Groups that rebalance much or long, by the joins of the classic protocol."""

    def __init__(self) -> None:
        self._generations = Tally()
        self._newest: dict[str, int] = {}
        self._long = Tally()

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        if exchange.api_key != JOIN_GROUP or request is None or request.body is None:
            return
        if response is None or response.body is None or exchange.errors:
            return
        group = str(request.body.get("group_id"))
        generation = response.body.get("generation_id", -1)
        if generation != self._newest.get(group) and (group in self._newest or len(self._newest) < MAX_SUBJECTS):
            self._newest[group] = generation
            case = self._generations.case(group)
            case.add(request.first_packet, request.first_ns)
            if request.body.get("reason"):
                # Some end in a member id, each another one.
                case.name(str(request.body["reason"]).partition(":")[0][:200])
        latency_ns = exchange.latency_ns or 0
        if latency_ns >= LONG_REBALANCE_NS:
            self._long.case(group).add(request.first_packet, request.first_ns, latency_ns)

    def findings(self) -> Iterator[Finding]:
        for group, _, case in self._generations:
            if case.count > REBALANCES and case.count / case.seconds * 600 > REBALANCES:
                yield _finding(
                    "rebalances",
                    "warning",
                    f"group {group}",
                    f"went through {case.count} generations in {case.seconds:.0f} s",
                    "Look at who comes and goes, and why (kwiresniff groups): members that are restarted, polls longer "
                    "than max.poll.interval.ms. Static membership (group.instance.id) or the consumer protocol help.",
                    case,
                    {"reasons": list(case.names)},
                )
        for group, _, case in self._long:
            yield _finding(
                "long_rebalance",
                "warning",
                f"group {group}",
                f"a rebalance took {case.most / 1e9:.1f} s",
                "The group waits for its slowest member to come back: look at who joined last (kwiresniff groups), and "
                "at max.poll.interval.ms, which is how long it may take.",
                case,
                {"longest_ns": case.most},
            )


class Network:
    """Connections: churn, refusals by TLS, packets sent twice; and damage in what they carried."""

    def __init__(self) -> None:
        self._opened = Tally()
        self._twice = Tally()
        self._refused = Tally()
        self._damaged = Tally()
        self._lost = Case()

    def exchange(self, exchange: Exchange) -> None:
        if any(problem.code == "bad_crc" for problem in exchange.problems):
            case = self._damaged.case(client_of(exchange))
            case.add(*place_of(exchange))
            case.name(exchange.api)

    def connection(self, connection: Connection) -> None:
        packets, again = sum(connection.packets), sum(connection.retransmits)
        ends = f"{connection.client} {connection.broker}"
        if packets >= ENOUGH_PACKETS and again > packets * RETRANSMITS:
            self._twice.case(ends).add(0, connection.first_ns, again * 1000 // packets)
        if connection.handshake_seen:
            self._opened.case(f"{host_of(connection.client)} {connection.broker}").add(0, connection.first_ns)
        alert = (connection.tls or {}).get("alert")
        if alert:
            self._refused.case(f"{host_of(connection.client)} {connection.broker}", str(alert)).add(
                0, connection.first_ns
            )

    def problem(self, problem: Problem) -> None:
        missing = (problem.details or {}).get("missing_bytes") or 0
        if problem.code == "gap" and missing:
            self._lost.add(problem.packet or 0, problem.timestamp_ns or 0, missing)

    def findings(self) -> Iterator[Finding]:
        for ends, _, case in self._opened:
            rate = case.count / max(case.seconds / 60, 1.0)
            if case.count >= ENOUGH_CONNECTIONS and rate > CONNECTIONS_PER_MINUTE:
                remedy = (
                    "Clients should live as long as their process: one made per request costs a handshake each time."
                )
                title = f"opens {rate:.0f} connections a minute"
                yield _finding("connection_churn", "warning", ends, title, remedy, case)
        for ends, _, case in self._twice:
            title = f"{case.most / 10:.1f} % of the packets are sent twice"
            remedy = "The network between the two loses packets, or the capture point sees them twice."
            yield _finding("retransmits", "warning", ends, title, remedy, case)
        for ends, alert, case in self._refused:
            remedy = "Compare certificates, trust stores, server names and protocol versions of both sides."
            yield _finding("tls_refused", "error", ends, f"TLS handshake refused: {alert}", remedy, case)
        for subject, _, case in self._damaged:
            yield _finding(
                "bad_crc",
                "error",
                subject,
                f"batches whose checksum does not match ({', '.join(case.names)})",
                "Bytes changed on their way or on a disk: look at hardware, and at proxies that rewrite batches.",
                case,
            )
        if self._lost.count:
            yield _finding(
                "capture_gaps",
                "info",
                "the capture",
                f"{self._lost.total:,} bytes are missing from it",
                "The capture point dropped packets, so counts above are low: a larger buffer (tcpdump -B), a filter, "
                "or no snap length (-s 0).",
                self._lost,
                {"missing_bytes": self._lost.total},
            )
