"""Transactions that are left open: consumers with ``read_committed`` get nothing behind their first record (KIP-98).

They get what lies before the last stable offset, the first offset of the oldest open transaction, which stands still
while the high watermark goes on. The producers' requests show which transaction it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from kwiresniff.analysis.body_entities import is_transactional
from kwiresniff.analysis.doctor.bodies import is_answered, request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.fencing import producer_of
from kwiresniff.analysis.doctor.wording import clock, duration, listed, times
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import ADD_PARTITIONS_TO_TXN, END_TXN, FETCH, INIT_PRODUCER_ID, PRODUCE
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange

#: An open transaction holds the last stable offset for less.
STUCK_NS = 10_000_000_000
#: So many transactions that last for so long delay their readers more than a fetch waits by default.
LONG_NS = 2_000_000_000
OFTEN_LONG = 2
#: Answers to a producer whose transaction is over.
OVER = frozenset({"INVALID_TXN_STATE", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})
#: Partitions and transactional producers that are remembered.
MAX_PARTITIONS = 5_000
MAX_PRODUCERS = 5_000
#: Partitions remembered of one transaction.
MAX_IN_TRANSACTION = 100
#: A topic and a partition, of the one cluster that an examination is of.
_Partition = tuple[str, int]


@dataclass(slots=True, eq=False)
class _Stable:
    """The last stable offset of a partition, since when it stands, until when it stood (0: it does), and the high
    watermark."""

    case: Case
    offset: int = -1
    since_ns: int = 0
    high_watermark: int = -1
    until_ns: int = 0


@dataclass(slots=True, eq=False)
class _Open:
    """A transactional producer with the partitions of its open transaction, and the first offset in each."""

    client: str
    name: str
    timeout_ms: int
    began_ns: int = 0
    last_ns: int = 0
    offsets: dict[_Partition, int] = field(default_factory=dict)


class OpenTransactions(Observer):
    """``transaction_open``: the last stable offset of partitions has stood still for 10 s at the end of the capture, or
    stood as long because of a transaction that its producer never ended (``over``); ``transactions_long``: a producer
    ended two or more transactions of 2 s or more, and consumers of these partitions ask for committed records only.

    Notes: ``clients`` that read there. Numbers: ``producer``, ``producer_id``, ``transactional_id``,
    ``transaction_timeout_ms`` and ``began_ns`` of the transaction, each None where not known; whether its producer
    ``goes_on`` writing; ``other_ids``, the transactional ids that its client has besides; ``partitions``, ``behind``
    (with their offsets), ``longest_ns``.
    """

    kinds = ("transaction_open", "transactions_long")
    apis = frozenset({FETCH, PRODUCE, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN, END_TXN})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._stable: Subjects[_Partition, _Stable] = context.subjects(
            lambda: _Stable(context.case()), 10, MAX_PARTITIONS
        )
        self._over: dict[int, dict[_Partition, _Stable]] = {}  # by producer that never ended its transaction
        self._producers: dict[int, _Open] = {}
        self._read_ns = 0
        self._long = context.tally()
        self._readers: dict[tuple[str, str], None] = {}  # topics with who reads what is committed of them

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key in (FETCH, PRODUCE) and not is_transactional(exchange.request, exchange.api_key):
            return
        if exchange.api_key == FETCH:
            self._fetch(exchange)
            return
        request, response = request_body(exchange), response_body(exchange)
        if not request or exchange.errors:
            return
        if exchange.api_key == INIT_PRODUCER_ID:
            name, producer_id = clipped(field_text(request.get("transactional_id"))), response.get("producer_id", -1)
            if name and producer_id >= 0:
                self._remember(producer_id, client_of(exchange), name, request.get("transaction_timeout_ms", 0))
        elif exchange.api_key == PRODUCE:
            self._produce(exchange, request, response)
        elif exchange.api_key == ADD_PARTITIONS_TO_TXN:
            self._begin(request.get("producer_id", -1), place_of(exchange)[1])
        elif is_answered(exchange):
            producer = self._producers.get(request.get("producer_id", -1))
            if producer is not None:
                packet, ns = request_place(exchange)
                if producer.began_ns and ns - producer.began_ns >= LONG_NS:
                    case = self._long.case(producer.client)
                    case.add(packet, producer.began_ns, ns - producer.began_ns, until_ns=ns)
                    case.note("producers", [producer.name])
                    case.note("topics", dict.fromkeys(topic for topic, _ in producer.offsets))
                producer.began_ns = 0
                producer.offsets.clear()

    def failure(self, exchange: Exchange) -> None:
        """Notes a transaction that took longer than its timeout, which its coordinator has aborted."""
        if not any(name in OVER for _, _, name, _ in exchange.errors):
            return
        producer = self._producers.get(producer_of(request_body(exchange))[0])
        if producer is None or not producer.began_ns:
            return
        lasted_ns, limit_ns = place_of(exchange)[1] - producer.began_ns, producer.timeout_ms * 1_000_000
        if 0 < limit_ns <= lasted_ns and len(self.context.overdue) < MAX_PRODUCERS:
            self.context.overdue[producer.client] = (
                f"its transaction had been open for {duration(lasted_ns)}, transaction.timeout.ms is "
                f"{duration(limit_ns)}: the coordinator had aborted it"
            )

    def _remember(self, producer_id: int, client: str, name: str, timeout_ms: int) -> None:
        producers = self._producers
        if producer_id in producers or self.context.has_room(producers, MAX_PRODUCERS, client, name, entries=8):
            producers[producer_id] = _Open(client, name, timeout_ms)

    def _begin(self, producer_id: int, ns: int) -> _Open | None:
        producer = self._producers.get(producer_id)
        if producer is not None:
            producer.began_ns = producer.began_ns or ns
            producer.last_ns = ns
        return producer

    def _produce(self, exchange: Exchange, request: Body, response: Body) -> None:
        transactional_id = request.get("transactional_id")
        if not transactional_id:
            return
        ns = place_of(exchange)[1]
        answered = self.context.members(response, "responses", "partition_responses")
        written = {(topic, one.get("index")): one.get("base_offset", -1) for topic, one in answered}
        for topic, one in self.context.members(request, "topic_data", "partition_data"):
            for batch in one.get("records") or ():
                if not isinstance(batch, dict) or not batch.get("is_transactional"):
                    continue
                producer_id, index = batch.get("producer_id", -1), one.get("index", -1)
                if producer_id not in self._producers:  # it took its id before the capture began
                    self._remember(producer_id, client_of(exchange), clipped(field_text(transactional_id)), 0)
                producer = self._begin(producer_id, ns)
                if producer is not None and len(producer.offsets) < MAX_IN_TRANSACTION:
                    producer.offsets.setdefault((topic, index), written.get((topic, index), -1))

    def _fetch(self, exchange: Exchange) -> None:
        if exchange.response is None:
            return
        packet, ns = place_of(exchange)
        self._read_ns = max(self._read_ns, ns)
        for name, one in self.context.members(response_body(exchange), "responses"):
            if not one.get("error_code"):
                key = name, one.get("partition_index", -1)
                self._move_stable(key, one, packet, ns, client_of(exchange))

    def _move_stable(self, key: _Partition, part: Body, packet: int, ns: int, client: str) -> None:
        stable = self._stable.of(key)
        if stable is None:
            return
        offset, high_watermark = part.get("last_stable_offset", -1), part.get("high_watermark", -1)
        if offset > stable.offset and ns - stable.since_ns >= STUCK_NS and 0 <= stable.offset < stable.high_watermark:
            self._end(key, replace(stable, until_ns=ns))
        if offset != stable.offset or offset >= high_watermark:
            stable.offset, stable.since_ns, stable.case = offset, ns, self.context.case()
        stable.high_watermark = high_watermark
        if (key[0], client) in self._readers or len(self._readers) < MAX_PARTITIONS:
            self._readers[key[0], client] = None
        if offset < high_watermark:
            stable.case.add(packet, ns)
            stable.case.note("clients", [client])

    def _end(self, key: _Partition, stable: _Stable) -> None:
        """Remembers that it stood still, where that was a transaction which its producer has not ended."""
        producer_id = self._holder(key, stable)
        known = self._over.get(producer_id, {})
        if producer_id >= 0 and self.context.has_room(known, MAX_IN_TRANSACTION, entries=8):
            self._over.setdefault(producer_id, known)[key] = stable

    def _stands_ns(self, stable: _Stable) -> int:
        """How long it has stood still with records behind it."""
        until_ns = stable.until_ns or self._read_ns
        return until_ns - stable.since_ns if stable.offset < stable.high_watermark else 0

    def observations(self) -> Iterator[Observation]:
        held: dict[int, dict[_Partition, _Stable]] = {}
        for key, stable in self._stable.items():
            named = self.context.topic_name(key[0]) or key[0], key[1]
            if named != key and named in self._stable:
                continue  # known by its id only until then
            if self._stands_ns(stable) >= STUCK_NS:
                held.setdefault(self._holder(key, stable), {})[key] = stable
        for producer_id, partitions in (held | {one: of for one, of in self._over.items() if one not in held}).items():
            yield self._held(producer_id, partitions)
        for client, _, case in self._long:
            topics = case.noted("topics")
            readers = sorted({one for key, one in self._readers if key in topics})
            if case.count >= OFTEN_LONG and readers:
                about = [f"client:{client}", *[f"topic:{topic}" for topic in topics]]
                numbers = {"longest_ns": case.most, "producers": case.noted("producers"), "readers": readers}
                yield observation_of("transactions_long", case, about, numbers)

    def _holder(self, key: _Partition, stable: _Stable) -> int:
        """The producer whose open transaction begins at the last stable offset; -1 where none is in the capture."""
        for producer_id, producer in self._producers.items():
            if producer.began_ns and producer.offsets.get(key) == stable.offset:
                return producer_id
        return -1

    def _held(self, producer_id: int, stables: dict[_Partition, _Stable]) -> Observation:
        producer, case = self._producers.get(producer_id), self.context.case(one.case for one in stables.values())
        longest_ns = max(map(self._stands_ns, stables.values()))
        partitions = [f"{topic}-{partition}" for topic, partition in stables]
        over_ns = max(one.until_ns for one in stables.values())
        numbers: dict[str, Any] = {
            "partitions": partitions[:100],
            "behind": [
                f"{name} at {stable.offset} of {stable.high_watermark}"
                for name, stable in zip(partitions, stables.values(), strict=True)
            ],
            "longest_ns": longest_ns,
            "over": over_ns > 0,
            "other_ids": [],
            **dict.fromkeys(("producer", "producer_id", "transactional_id", "transaction_timeout_ms", "began_ns")),
            "goes_on": False,
        }
        about = {f"topic:{topic}" for topic, _ in stables}
        if producer is not None:
            about |= {f"client:{producer.client}", f"transaction:{producer.name}"}
            numbers |= {
                "producer": producer.client,
                "producer_id": producer_id,
                "transactional_id": producer.name,
                "transaction_timeout_ms": producer.timeout_ms,
                "began_ns": producer.began_ns,
                # One that goes on writing may mean to commit at long intervals, as Flink does at its checkpoints.
                "goes_on": not over_ns and self.context.end_ns - producer.last_ns < STUCK_NS,
                "other_ids": sorted(
                    {one.name for one in self._producers.values() if one.client == producer.client} - {producer.name}
                ),
            }
        harm = HARMLESS if numbers["goes_on"] else Harm(seconds_down=longest_ns / 1e9)
        return observation_of("transaction_open", case, about, numbers, harm)


@cause("transaction_open", explains=("transaction_open",))
def open_transaction(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`transaction_open` (error; warning where its producer is not in the capture, or where it is over, info where that
    goes on writing): a transaction is neither committed nor aborted by its producer, and consumers with
    `read_committed` wait behind it: the last stable offset has stood still for 10 s at the end of the capture, or did
    so until the coordinator aborted the transaction.
    """
    numbers, producer, goes_on = one.numbers, one.numbers["producer"], one.numbers["goes_on"]
    stands, others = "did not move until then" if numbers["over"] else "does not move", numbers["other_ids"]
    subject, who = listed(numbers["partitions"], 3), "a transaction whose producer is not in the capture"
    limit = ""
    if producer is not None:
        timeout_ns = numbers["transaction_timeout_ms"] * 1_000_000
        subject = f"transactional id {numbers['transactional_id']}"
        began = f"began at {clock(numbers['began_ns'])}"
        who = f"the transaction that {producer} (producer {numbers['producer_id']}) {began}"
        limit = f", transaction.timeout.ms {duration(timeout_ns)}" if timeout_ns else ""
    shown = ("transactional_id", "producer", "producer_id", "transaction_timeout_ms", "partitions", "longest_ns")
    return told(
        one,
        f"{who} is neither committed nor aborted{limit}: for {duration(numbers['longest_ns'])} consumers with "
        f"read_committed {'got' if numbers['over'] else 'get'} nothing behind it; the last stable offset of "
        f"{listed(numbers['behind'], 4)} {stands}",
        _GOES_ON if goes_on else _LEFT_OPEN + (_OTHER_IDS if others else ""),
        subject=subject,
        details=(f"its client has other transactional ids besides: {listed(others, 4)}",) if others else (),
        severity="info" if goes_on else "warning" if producer is None or numbers["over"] else "error",
        numbers={**{name: numbers[name] for name in shown}, "readers": one.noted("clients")},
        explains=symptoms("client", [producer] if producer is not None else [], "invalid_txn_state"),
    )


@cause("long_transactions", explains=("transactions_long",))
def long_transactions(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`long_transactions` (info): a producer ends its transactions after 2 s and more, twice or more often, so that
    consumers with `read_committed` get its records as late as that, all at once. Flink commits at its checkpoints,
    Kafka Streams at `commit.interval.ms`.
    """
    numbers = one.numbers
    return told(
        one,
        f"ends transactions only after up to {duration(numbers['longest_ns'])}, {times(one.count)} (transactional "
        f"id {listed(numbers['producers'], 3)}): {listed(numbers['readers'], 3)} read committed records of "
        f"{listed(one.named('topic'), 3)}, and get these that late",
        "Nothing is wrong where that is meant. Readers that should wait less need shorter transactions: the "
        "interval of Flink's checkpoints, commit.interval.ms of Kafka Streams, fewer records in each.",
        severity="info",
    )


_GOES_ON: Final = (
    "It goes on writing: some commit at long intervals, and readers get everything at once then. Readers that should "
    "wait less need shorter ones (the interval of commits or of checkpoints)."
)

_LEFT_OPEN: Final = (
    "Find out why its producer does not go on: it hangs, or was killed. Its coordinator aborts the transaction after "
    "transaction.timeout.ms; sooner, and where it does not (a hanging transaction, KIP-890): kafka-transactions.sh "
    "find-hanging, then abort. A shorter transaction.timeout.ms makes readers wait less."
)

_OTHER_IDS: Final = (
    " A producer that is started again ends what it left open at once, by InitProducerId, if its transactional.id is "
    "the same: give each instance one that stays, without a random part."
)
