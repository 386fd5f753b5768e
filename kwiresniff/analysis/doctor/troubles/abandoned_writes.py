"""Writes that a broker refused, and that their producer never sent again.

A batch that is sent again has the checksum, the sequence number, or the size and number of records of before; where
libraries make a new batch of the records, these keep their timestamps, which are older than those of new records.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, TypeAlias

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import DUPLICATE
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Exchange

#: Partitions by producer with refused batches, and batches that are remembered of each.
MAX_SENDERS = 2_000
MAX_REFUSED = 50
#: Producers try again sooner: their backoff is a second at most.
LONG_NS: Final = 3_000_000_000
#: Batches stored since by which the producer knows the leader again.
FEW_STORED: Final = 3
#: By these codes a batch may have been stored all the same.
_UNSURE: Final = frozenset({DUPLICATE, "REQUEST_TIMED_OUT", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})
#: A library that makes new batches with new timestamps when it sends records again.
_NEW_TIMES: Final = "sarama"

#: A client, a cluster, a topic and a partition.
_Sender: TypeAlias = tuple[str, str, str, int]


class _Refused:
    """A refused batch, how many batches of its producer were stored since, and when the last of these was sent."""

    __slots__ = ("errors", "last_ns", "ns", "packet", "part", "stored")

    def __init__(self, part: PartitionDigest, errors: list[str], packet: int, ns: int) -> None:
        self.part, self.errors, self.packet, self.ns = part, errors, packet, ns
        self.stored = self.last_ns = 0

    def is_in(self, part: PartitionDigest, ns: int) -> bool:
        """Whether a later batch may have the same records; with new timestamps their size says so, for a while."""
        mine = self.part
        same_size = (part.records, part.all_bytes) == (mine.records, mine.all_bytes)
        same = part.crc == mine.crc or (same_size and ns - self.ns <= LONG_NS)
        return same or part.oldest_ms <= mine.oldest_ms or (part.producer != b"" and part.producer == mine.producer)


class AbandonedWrites(Observer):
    """``writes_abandoned``: a broker refused batches by a code that clients retry, and their producer never sent them
    again, though it wrote others to the same partition for three seconds and more.

    By client and topic. Numbers: ``records``, ``batches``, ``errors``, ``partitions``. Not observed where the library
    gives records new timestamps when it sends them again.
    """

    kinds: ClassVar[tuple[str, ...]] = ("writes_abandoned",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._refused: Subjects[_Sender, list[_Refused]] = context.subjects(list, 4 * MAX_REFUSED, MAX_SENDERS)

    def exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        if request is None or response is None or not (self._refused or exchange.errors):
            return
        codes = [name for _, _, name, _ in exchange.errors]
        is_sure = all(retriable for _, _, _, retriable in exchange.errors) and _UNSURE.isdisjoint(codes)
        is_new = _NEW_TIMES in (exchange.connection.client_software or {}).values()
        client, cluster_id = client_of(exchange), self.context.cluster.of(exchange.connection.broker)
        for name, part, answer in self.context.written(exchange):
            sender = client, cluster_id, name, part.index
            stored = answer is not None and answer.offset >= 0
            known = self._refused.get(sender)
            if known:
                known[:] = [one for one in known if request.first_ns <= one.ns or not one.is_in(part, request.first_ns)]
                for one in known:
                    if stored and request.first_ns > one.ns:
                        one.stored, one.last_ns = one.stored + 1, request.first_ns
            if codes and is_sure and not stored and not is_new and part.oldest_ms >= 0:
                known = self._refused.of(sender)
                if known is not None and len(known) < MAX_REFUSED:
                    known.append(_Refused(part, codes[:1], *place_of(exchange)))

    def observations(self) -> Iterator[Observation]:
        found: dict[tuple[str, str], list[tuple[int, _Refused]]] = {}
        for (client, _, topic, index), refused in self._refused.items():
            for one in refused:
                if one.stored >= FEW_STORED and one.last_ns - one.ns >= LONG_NS:
                    found.setdefault((client, topic), []).append((index, one))
        for (client, topic), lost in found.items():
            case = self.context.case()
            for index, one in lost:
                case.add(one.packet, one.ns)
                case.note("errors", one.errors)
                case.note("partitions", [f"{topic}-{index}"])
            records = sum(one.part.records for _, one in lost)
            numbers = {
                "records": records,
                "batches": len(lost),
                "errors": case.noted("errors"),
                "partitions": case.noted("partitions"),
            }
            about = [f"client:{client}", f"topic:{topic}"]
            yield observation_of("writes_abandoned", case, about, numbers, Harm(records_lost=records))


@cause("writes_not_retried", explains=("writes_abandoned",))
def not_retried(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`writes_not_retried` (error): a broker refused writes by a code that clients retry, as when a leader moves, and
    their producer never sent them again: `retries` is 0, or `delivery.timeout.ms` was over. Seen must be that it wrote
    others to the same partitions for 3 s and more, none of which may have the same records.
    """
    numbers = one.numbers
    return told(
        one,
        f"at least {counted(numbers['records'], 'record')} for {listed(numbers['partitions'], 4)} in "
        f"{counted(numbers['batches'], 'request')} were refused ({listed(numbers['errors'])}) and never sent again, "
        "while it went on with others: they are lost unless its application keeps them",
        "Let the producer try again: retries above 0 (kafkajs: retry.retries; most libraries do so by default), with "
        "enable.idempotence, and a delivery.timeout.ms longer than the election of a leader takes. An application "
        "that is told of the error has to send the record again itself.",
    )
