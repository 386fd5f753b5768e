"""How much clients do with each request: small batches and transactions, commits of single records, empty fetches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.cause import WASTE, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, is_cut
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.base.api_keys import END_TXN, FETCH, OFFSET_COMMIT, PRODUCE
from kwiresniff.base.field_values import field_text
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Body, Exchange, Message
from kwiresniff.results.findings import scope_of

#: Commits, transactions, Produce requests and fetches of a client below which nothing is said of them.
ENOUGH_COMMITS = 100
ENOUGH_PRODUCES = 100
ENOUGH_FETCHES = 500
#: First commits of a client whose group is noted, and first empty fetches whose wait is.
FEW = 3


#: More commits of a client in a second are waste.
COMMITS_PER_SECOND: Final = 30.0
#: So many requests, so often in a second, with so few records in each, are no batching.
PRODUCES: Final = 500
PRODUCES_PER_SECOND: Final = 30.0
FEW_RECORDS: Final = 2.0
#: So many batches in a request are those of several partitions at its leader.
FEW_BATCHES: Final = 3
#: Requests of a client in a second that are many: with ``linger.ms`` of 5, the default, it sends no more.
MANY_REQUESTS: Final = 200.0
#: A client waits for each answer where it sends this part of its requests alone and waits for this part of its time;
#: shorter waits do not matter.
ALONE: Final = 0.9
WAITING: Final = 0.7
MATTERS_NS: Final = 5_000_000
#: The part of fetches that brings nothing, and how many in a second, above which polling is too eager.
EMPTY_FETCHES: Final = 0.9
EMPTY_PER_SECOND: Final = 20.0
#: Requests with messages of the old format from which on their conversion is worth a warning.
ENOUGH_OLD: Final = 100
_RAISE_WAIT: Final = "Raise fetch.max.wait.ms or fetch.min.bytes; a wait of 0 makes the consumer poll in a circle."
_NOT_HELD: Final = (
    "It is not the consumer's settings: there are records that it may not read yet. Brokers do so while the high "
    "watermark of a partition stands still behind what was written: a replica has left and the ISR has not shrunk yet, "
    "or the ISR is smaller than min.insync.replicas. Look at the ISR."
)


class RequestSizes(Observer):
    """``commits``, ``produces``, ``empty_fetches``: how many of these a client sent, and what was in them;
    ``transactions``: how many it ended; ``old_messages``: records in the format before Kafka 0.11.

    Numbers: ``records``, ``batches`` of them (0: not known), ``requests`` that wrote them, ``alone`` of them while no
    other was in flight, ``waited_ns`` for the answers to these and to EndTxn, ``fetches`` in all, ``longest_wait_ms``
    as they ask, ``at_once`` where the broker took less than half of that, ``groups``, ``topics``.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        "commits", "produces", "transactions", "empty_fetches", "old_messages",
    )  # fmt: skip
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH, OFFSET_COMMIT, END_TXN})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        #: By kind; also all ``fetches`` of each client, and its Produce requests that it sent ``alone``.
        self._cases = {kind: context.tally() for kind in (*self.kinds, "fetches", "alone", "batches")}

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        if request is None:
            return
        client, packet, ns = client_of(exchange), request.first_packet, request.first_ns
        if exchange.api_key == OFFSET_COMMIT:
            case = self._cases["commits"].case(client)
            case.add(packet, ns)
            if request.body is not None and case.count <= FEW:
                case.note("groups", [field_text(request.body.get("group_id"))])
        elif exchange.api_key == PRODUCE:
            self._produce(exchange, client, request)
        elif exchange.api_key == END_TXN:
            self._cases["transactions"].case(client).add(packet, ns, exchange.latency_ns or 0)
        elif response is not None and not exchange.errors and _is_read(response):
            self._cases["fetches"].case(client).count += 1
            if not (exchange.problems and is_cut(exchange, "response")) and not _brings_records(response):
                case = self._cases["empty_fetches"].case(client)
                case.add(packet, ns, exchange.latency_ns or 0)
                if case.count <= FEW:
                    case.note("waits", [str((request.body or {}).get("max_wait_ms", 0))])

    def _produce(self, exchange: Exchange, client: str, request: Message) -> None:
        packet, ns, digest = request.first_packet, request.first_ns, request.digest
        if digest is not None and not digest.is_cut:
            has_batches, records = digest.batches > 0, digest.records
        elif request.body is not None:
            has_batches, records = self._read(client, request, request.body)
        else:
            return
        if has_batches:
            self._cases["produces"].case(client).add(packet, ns, records)
            self._cases["batches"].case(client).count += digest.batches if digest is not None else 0
            alone, response = self._cases["alone"].case(client), exchange.response
            if response is not None:
                if ns >= alone.last_ns:
                    alone.add(packet, ns, response.last_ns - ns)
                alone.last_ns = max(alone.last_ns, response.last_ns)

    def _read(self, client: str, request: Message, body: Body) -> tuple[bool, int]:
        """Whether the records of a Produce without a digest can be counted, and their number."""
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
                        case = self._cases["old_messages"].case(client)
                        case.add(request.first_packet, request.first_ns)
                        case.note("topics", [self.context.topic_of(topic)])
        return batches > 0 and not sealed, records

    def observations(self) -> Iterator[Observation]:
        enough = {"commits": ENOUGH_COMMITS, "transactions": ENOUGH_COMMITS, "produces": ENOUGH_PRODUCES}
        for kind in self.kinds:
            for client, _, case in self._cases[kind]:
                numbers = self._numbers(kind, client, case)
                if case.count >= enough.get(kind, 1) and numbers.get("fetches", ENOUGH_FETCHES) >= ENOUGH_FETCHES:
                    yield observation_of(kind, case, [f"client:{client}"], numbers)

    def _numbers(self, kind: str, client: str, case: Case) -> dict[str, Any]:
        if kind == "commits":
            return {"groups": case.noted("groups")}
        if kind == "produces":
            alone, batches = self._cases["alone"].case(client), self._cases["batches"].case(client).count
            sent = {"records": case.total, "batches": batches, "requests": case.count}
            return {**sent, "alone": alone.count, "waited_ns": alone.total}
        if kind == "transactions":
            written = self._cases["produces"].known(client)
            waited_ns = case.total + self._cases["alone"].case(client).total
            return {"records": written.total if written is not None else 0, "waited_ns": waited_ns}
        if kind == "empty_fetches":
            known = self._cases["fetches"].known(client)
            wait_ms = max((int(wait) for wait in case.noted("waits")), default=0)
            return {
                "fetches": known.count if known is not None else case.count,
                "longest_wait_ms": wait_ms,
                "at_once": case.total < case.count * wait_ms * MILLISECOND_NS / 2,
            }
        return {"topics": case.noted("topics")}


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


def _per_second(count: int, one: Observation) -> float:
    return count / max((one.last_ns - one.first_ns) / 1e9, 1e-3)


@cause("commit_storm", explains=("commits",))
def single_commits(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`commit_storm` (warning): a client commits more than 30 times a second, 100 times and more."""
    rate = _per_second(one.count, one)
    return told(
        one,
        f"commits offsets {rate:.0f} times a second, {one.count:,} times in all",
        "Commit after a batch or at an interval instead of after every record.",
        numbers={"per_second": round(rate, 1), "groups": one.numbers["groups"]},
        severity="warning",
        rank=WASTE,
        stands=rate > COMMITS_PER_SECOND,
    )


@cause("small_batches", explains=("produces",))
def small_batches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`small_batches` (warning from 200 requests a second on, else info): fewer than 2 records in a request, over 500
    requests and more, of which there are more than 30 a second; or as few in a batch, of which there are 3 and more in
    a request: the records are spread over the partitions one by one.
    """
    records, requests, batches = one.numbers["records"], one.numbers["requests"], one.numbers["batches"]
    is_spread = records / requests >= FEW_RECORDS and batches >= FEW_BATCHES * requests
    what, sent = ("batch", batches) if is_spread else ("request", requests)
    rate = _per_second(sent, one)
    spread = f", {batches / requests:.0f} of them in a request: they are spread over the partitions one by one"
    return told(
        one,
        f"sends {records / sent:.1f} records in a {what}: {records:,} records in {sent:,} "
        f"{f'batches{spread}' if is_spread else 'requests'}",
        "Fill a batch before the next partition is taken: records without a key go by themselves to one partition at a "
        "time (sticky, KIP-480 and KIP-794) unless a partitioner like round robin is set; with keys take fewer "
        "partitions, or a longer linger.ms."
        if is_spread
        else "Raise linger.ms (5 to 20 ms) and batch.size: requests, not bytes, are what brokers run out of.",
        severity="warning" if _per_second(requests, one) > MANY_REQUESTS else "info",
        rank=WASTE,
        stands=sent >= PRODUCES and rate > PRODUCES_PER_SECOND and records / sent < FEW_RECORDS,
    )


@cause("one_at_a_time", explains=("produces",))
def one_at_a_time(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`one_at_a_time` (warning where the path takes most of the time, which is a symptom then; else info): a producer
    sends one record, waits for the answer, and sends the next: 100 times and more, nine requests in ten are sent while
    no other is under way, and it waits for them for most of its time. It can send no more records in a second than
    answers fit in, as with `send().get()` in a loop. Must not be seen: answers that take less than 5 ms.
    """
    numbers, seen_ns = one.numbers, max(one.last_ns - one.first_ns, 1)
    records, requests, alone, waited_ns = (numbers[name] for name in ("records", "requests", "alone", "waited_ns"))
    if not alone or records / requests >= FEW_RECORDS or waited_ns < alone * MATTERS_NS:
        return None
    if observed.about([f"client:{one.name('client')}"], "transactions"):
        return None  # it has to wait for those
    mean_ns, host = waited_ns // alone, one.name("client").rpartition(" ")[2]
    paths = [path.numbers["round_trip_ns"] for path in observed.about([f"host:{host}"], "path_time")]
    path_ns = min(paths, default=0)
    far = f", of which the path takes {duration(path_ns)}" if path_ns > mean_ns / 2 else ""
    return told(
        one,
        f"sends one record, waits for its answer, then sends the next: {requests:,} requests, "
        f"{duration(mean_ns)} each{far}, {waited_ns / seen_ns:.0%} of its time: it can send no more than "
        f"{1e9 / mean_ns:.0f} records a second",
        "Do not wait for each record (send().get(), flush() after each): send the next ones meanwhile, and look at "
        "the result in a callback; the producer puts those that come together into one request (linger.ms).",
        severity="warning" if far else "info",
        stands=alone >= ALONE * requests and waited_ns >= WAITING * seen_ns,
        explains={"long_path": scope_of("host", [host])} if far else {},
    )


@cause("small_transactions", explains=("transactions",))
def small_transactions(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`small_transactions` (warning where it waits for them for more than half of its time, else info): a producer ends
    a transaction for fewer than 2 records, 100 times and more. Each costs a round to the coordinator and a marker in
    every partition that it wrote to, and the next waits for these.
    """
    records, waited_ns, seen_ns = one.numbers["records"], one.numbers["waited_ns"], one.last_ns - one.first_ns
    return told(
        one,
        f"ends a transaction for {records / one.count:.1f} records: {one.count:,} transactions, "
        f"{_per_second(one.count, one):.0f} a second; it waits for {duration(waited_ns // one.count)} in each, "
        f"{waited_ns / max(seen_ns, 1):.0%} of its time",
        "Write many records in a transaction, or commit at an interval (100 ms and more): each needs a round to "
        "its coordinator and leaves a marker in each partition, and the next waits until these are written.",
        severity="warning" if waited_ns > seen_ns / 2 else "info",
        rank=WASTE,
        stands=0 < records < FEW_RECORDS * one.count,
    )


@cause("empty_fetches", explains=("empty_fetches",))
def empty_fetches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`empty_fetches` (warning from 200 a second on, else info): nine fetches in ten bring nothing, more than 20 a
    second: the consumer lets its broker wait for too short a time, or the broker answers sooner than it may.
    """
    whole, at_once, rate = one.numbers["fetches"], one.numbers["at_once"], _per_second(one.count, one)
    wait = f"each may wait {one.numbers['longest_wait_ms']} ms"
    held = f", though {wait}: the broker answers at once" if at_once else f": {wait} (fetch.max.wait.ms)"
    return told(
        one,
        f"{one.count:,} of {whole:,} fetches bring nothing, {rate:.0f} a second{held}",
        _NOT_HELD if at_once else _RAISE_WAIT,
        numbers={"fetches": whole},
        severity="warning" if rate > MANY_REQUESTS else "info",
        rank=WASTE,
        stands=one.count / whole > EMPTY_FETCHES and _per_second(whole, one) > EMPTY_PER_SECOND,
    )


@cause("old_message_format", explains=("old_messages",))
def old_format(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`old_message_format` (warning from 100 requests on, else info): records in the format of before Kafka 0.11."""
    return told(
        one,
        "writes the message format of before Kafka 0.11",
        "Brokers convert them, at the cost of CPU and memory, and releases from 4.0 on refuse them: "
        "move the client to one that writes batches of format 2 (Kafka 0.11).",
        numbers={"concerns": [f"topic {topic}" for topic in one.numbers["topics"]]},
        severity="warning" if one.count >= ENOUGH_OLD else "info",
        rank=WASTE,
    )
