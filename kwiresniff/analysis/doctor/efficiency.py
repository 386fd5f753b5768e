"""Clients that make brokers work for nothing: tiny batches, commits of single records, empty polls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, Tally, client_text, is_cut
from kwiresniff.analysis.doctor.rule import INCIDENT, WASTE, Rule, as_clients, found
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, PRODUCE
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Connection, Exchange, Message
from kwiresniff.results.findings import Finding

#: A member may commit so often in a second before it is waste.
COMMITS_PER_SECOND = 30.0
#: Commits that must be seen: one after each record is no trouble while a few are caught up with.
ENOUGH_COMMITS = 100
#: Produce requests that must be seen, how often in a second, and records in each below which batching is off. What
#: comes more rarely than a sensible ``linger.ms`` lasts would find nothing to go along with.
ENOUGH_PRODUCES = 500
PRODUCES_PER_SECOND = 30.0
FEW_RECORDS = 2.0
#: Fetches that must be seen, and the part of them that brings nothing, above which polling is too eager.
ENOUGH_FETCHES = 500
EMPTY_FETCHES = 0.9
EMPTY_PER_SECOND = 20.0
#: How soon a broker closes a connection on which it refuses records that were sent without acknowledgement, and how
#: often that is no coincidence.
AT_ONCE_NS = 500_000_000
OFTEN_REFUSED = 3
#: Requests with messages of the old format above which their conversion is worth a warning.
ENOUGH_OLD = 100
#: What is remembered of the last records that were sent without acknowledgement on a connection.
_UNASKED_BYTES: Final = ENTRY_BYTES + CONTAINER_BYTES + 3 * NUMBER_BYTES


class EfficiencyRule(Rule):
    """Clients that make brokers work for nothing.

    `commit_storm` (warning): a client commits more than 30 times a second.

    `small_batches` (warning): fewer than 2 records in a request, over 500 requests and more, of which there are more
    than 30 a second.

    `empty_fetches` (info): nine fetches in ten bring nothing.

    `acks_0` (info): records sent without acknowledgement.

    `acks_0_refused` (error): a broker closes connections at once after such records, 3 times or more, which is how it
    refuses them.

    `old_message_format` (warning from 100 requests on, else info): records in the format of before Kafka 0.11.
    """

    codes = (
        "commit_storm", "small_batches", "empty_fetches", "acks_0", "acks_0_refused",
        "old_message_format",
    )  # fmt: skip
    apis = frozenset({PRODUCE, FETCH, OFFSET_COMMIT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._commits = context.tally()
        self._produces = context.tally()
        self._fetches = context.tally()
        self._empty = context.tally()
        self._unsafe = context.tally()
        self._refused = context.tally()
        #: By connection, when its last record without acknowledgement was sent, and in how large a request.
        self._unasked: dict[int, tuple[int, int]] = {}
        self._old = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """Counts an exchange by its API."""
        request, response = exchange.request, exchange.response
        if request is None:
            return
        subject = self.context.client_of(exchange)
        packet, ns = request.first_packet, request.first_ns
        api_key = exchange.api_key
        if api_key == OFFSET_COMMIT:
            case = self._commits.case(subject)
            case.add(packet, ns)
            if request.body is not None and case.count <= FEW:
                case.note("groups", [field_text(request.body.get("group_id"))])
        elif api_key == PRODUCE:
            digest, acks = request.digest, None
            if digest is not None and not digest.is_cut:
                self._count_produce(subject, packet, ns, digest.batches > 0, digest.records, digest.acks)
                acks = digest.acks
            elif request.body is not None:
                self._produce(subject, request.body, packet, ns)
                acks = request.body.get("acks")
            number = exchange.connection.id
            if acks == 0 and (number in self._unasked or self.context.budget.admit(_UNASKED_BYTES)):
                self._unasked[number] = request.last_ns, request.size_bytes
        elif api_key == FETCH and response is not None and not exchange.errors and _is_read(response):
            self._counted(FETCH, self._fetches, subject).count += 1
            if not (exchange.problems and is_cut(exchange, "response")) and not _brings_records(response):
                case = self._empty.case(subject)
                case.add(packet, ns, exchange.waiting == "long poll")
                if case.count <= FEW:
                    case.note("waits", [str((request.body or {}).get("max_wait_ms", 0))])

    def connection(self, connection: Connection) -> None:
        """A broker has no other way to refuse what nobody waits for than to close the connection."""
        unasked = self._unasked.pop(connection.id, None)
        if unasked is None:
            return
        self.context.budget.release(_UNASKED_BYTES)
        asked_ns, size_bytes = unasked
        if connection.closed_by == "broker" and connection.closed_ns - asked_ns <= AT_ONCE_NS:
            client = client_text(connection.client_id, connection.client)
            case = self._refused.case(client, connection.broker)
            # All of them at one moment are those of a broker that stops.
            if abs(connection.closed_ns - case.last_ns) > AT_ONCE_NS:
                case.add(connection.closed_packet or connection.first_packet, connection.closed_ns, size_bytes)

    def _count_produce(
        self, subject: str, packet: int, ns: int, has_batches: bool, records: int, acks: int | None
    ) -> None:
        if has_batches:
            self._counted(PRODUCE, self._produces, subject).add(packet, ns, records)
        if acks == 0:
            self._unsafe.case(subject).add(packet, ns)

    def _counted(self, api_key: int, tally: Tally, subject: str) -> Case:
        """What is counted of a client's requests of an API, which its connection sends all the time."""
        notes = self.context.notes
        if notes is None:
            return tally.case(subject)
        if notes.counted is None or notes.counted_api != api_key:
            notes.counted_api, notes.counted = api_key, tally.case(subject)
        return notes.counted

    def _produce(self, subject: str, body: Body, packet: int, ns: int) -> None:
        records = batches = sealed = 0
        for topic in body.get("topic_data") or ():
            for partition in topic.get("partition_data") or ():
                for batch in partition.get("records") or ():
                    if batch.__class__ is not dict:
                        continue
                    batches += 1
                    records += batch.get("records_count", 1)
                    if batch.get("magic", 2) < 2:
                        # A compressed message of the old format holds others, not counted without opening it.
                        sealed += batch.get("compression") != "none"
                        case = self._old.case(subject)
                        case.add(packet, ns)
                        case.note("topics", [self.context.topic_of(topic)])
        self._count_produce(subject, packet, ns, batches > 0 and not sealed, records, body.get("acks"))

    def findings(self) -> Iterator[Finding]:
        """By client."""
        yield from self._too_often()
        yield from self._too_little()
        for client, _, case in self._unsafe:
            yield found(
                "acks_0",
                "info",
                client,
                "produces without acknowledgement (acks=0)",
                "Records can be lost without anybody knowing. Use acks=all where they matter.",
                case,
                clients=[client],
                rank=WASTE,
            )
        for client, broker, case in self._refused:
            if case.count < OFTEN_REFUSED:
                continue
            yield found(
                "acks_0_refused",
                "error",
                client,
                f"writes with acks=0, and {self.context.cluster.broker_text(broker)} closes the connection after it, "
                f"{times(case.count)}: that is how it refuses what nobody waits for, and those records are lost",
                "Set acks=1 or all, and the answer says why: records larger than max.message.bytes, a right that is "
                "missing, a partition that it does not lead.",
                case,
                {"broker": broker, "largest_request_bytes": case.most},
                clients=[client],
                brokers=[broker],
                explains={"acks_0": as_clients(client), "connection_churn": as_clients(client)},
                rank=INCIDENT,
            )
        for client, _, case in self._old:
            yield found(
                "old_message_format",
                "warning" if case.count >= ENOUGH_OLD else "info",
                client,
                "writes the message format of before Kafka 0.11",
                "Brokers convert them, at the cost of CPU and memory, and releases from 4.0 on refuse them: move the "
                "client to one that writes batches of format 2 (Kafka 0.11).",
                case,
                {"concerns": [f"topic {topic}" for topic in case.noted("topics")]},
                clients=[client],
                rank=WASTE,
            )

    def _too_often(self) -> Iterator[Finding]:
        for client, _, case in self._commits:
            rate = case.count / case.seconds
            if case.count >= ENOUGH_COMMITS and rate > COMMITS_PER_SECOND:
                yield found(
                    "commit_storm",
                    "warning",
                    client,
                    f"commits offsets {rate:.0f} times a second, {case.count:,} times in all",
                    "Commit after a batch or at an interval instead of after every record.",
                    case,
                    {"per_second": round(rate, 1), "groups": case.noted("groups")},
                    clients=[client],
                    rank=WASTE,
                )

    def _too_little(self) -> Iterator[Finding]:
        for client, _, case in self._produces:
            often = case.count / case.seconds > PRODUCES_PER_SECOND
            if case.count >= ENOUGH_PRODUCES and often and case.total / case.count < FEW_RECORDS:
                mean = case.total / case.count
                yield found(
                    "small_batches",
                    "warning",
                    client,
                    f"sends {mean:.1f} records in a request: {case.total:,} records in {case.count:,} requests",
                    "Raise linger.ms (5 to 20 ms) and batch.size: requests, not bytes, are what brokers run out of.",
                    case,
                    {"records": case.total, "requests": case.count},
                    clients=[client],
                    rank=WASTE,
                )
        for client, _, case in self._empty:
            known = self._fetches.known(client)
            whole = known.count if known is not None else case.count
            often = whole / case.seconds > EMPTY_PER_SECOND
            if whole >= ENOUGH_FETCHES and case.count / whole > EMPTY_FETCHES and often:
                wait_ms = max((int(wait) for wait in case.noted("waits")), default=0)
                at_once = wait_ms > 0 and case.total < case.count / 2
                yield found(
                    "empty_fetches",
                    "info",
                    client,
                    f"{case.count:,} of {whole:,} fetches bring nothing"
                    + (f", though each may wait {wait_ms} ms: the broker answers at once" if at_once else ""),
                    _NOT_HELD if at_once else _RAISE_WAIT,
                    case,
                    {"fetches": whole},
                    clients=[client],
                    rank=WASTE,
                )


#: Of the first commits of a client the group is noted, of its first empty fetches how long they may wait.
FEW = 3
_RAISE_WAIT = "Raise fetch.max.wait.ms or fetch.min.bytes; a wait of 0 makes the consumer poll in a circle."
_NOT_HELD = (
    "It is not the consumer's settings: there are records that it may not read yet. Brokers do so while the high "
    "watermark of a partition stands still behind what was written: a replica has left and the ISR has not shrunk yet, "
    "or the ISR is smaller than min.insync.replicas. Look at the ISR."
)


def _is_read(message: Message) -> bool:
    return message.digest is not None or message.body is not None


def _brings_records(response: Message) -> bool:
    digest = response.digest
    if digest is not None:
        return digest.batches > 0 or digest.is_cut
    for topic in (response.body or {}).get("responses") or ():
        for partition in topic.get("partitions") or topic.get("partition_responses") or ():
            if partition.get("records"):
                return True
    return False
