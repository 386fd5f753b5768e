"""Consumers that are given one small record, or one batch, at a time, because they ask for so few bytes.

A broker sends the first batch whatever its size, and else no more than ``fetch.max.bytes`` and
``max.partition.fetch.bytes`` allow (KIP-74). ``max.poll.records`` does not show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kwiresniff.analysis.body_entities import READ_COMMITTED, isolation_level
from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.cause import INCIDENT, WASTE, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.base.field_values import field_number
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Exchange

#: Looks at fetches, the part in ten that brought one record, and their time span, from which on it is the rule.
MANY = 8
IN_TEN = 9
LASTING_NS = 4_000_000_000
#: A larger record may be meant to come alone.
SMALL_BYTES = 10_000
#: Records left in a partition from which on the consumer is held up.
MANY_RECORDS = 100


@dataclass(slots=True, eq=False)
class _Singles:
    """The looks at a client's fetches of a topic, those with one record or batch and more behind it, and ``others``;
    ``max_bytes`` and ``partition_max_bytes`` are its limits."""

    case: Case
    max_bytes: int
    partition_max_bytes: int = 0
    behind: int = 0
    records: int = 0
    batches: int = 0
    others: int = 0

    @property
    def limit(self) -> int:
        """The smaller of both limits."""
        return min(one for one in (self.max_bytes, self.partition_max_bytes) if one > 0) if self.max_bytes > 0 else 0


class SingleRecords:
    """The fetches of one record, by client and topic."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._singles: dict[tuple[str, str], _Singles] = {}

    def look(self, client: str, topic: str, part: PartitionDigest, exchange: Exchange, place: tuple[int, int]) -> None:
        """Takes what a fetch brought of a partition."""
        known = self._singles.get((client, topic))
        if part.batches != 1 or part.high_watermark <= part.end_offset or _readable(exchange, part) <= part.end_offset:
            if known is not None:
                known.others += 1
            return
        if known is None:
            room = self._context.has_room(self._singles, MAX_SUBJECTS, client, topic, entries=2)
            if not room or exchange.request is None:
                return
            max_bytes = field_number(request_body(exchange).get("max_bytes"))
            known = self._singles[client, topic] = _Singles(self._context.case(), max_bytes)
        known.partition_max_bytes = _partition_max_bytes(exchange, part.index) or known.partition_max_bytes
        single = part.records == 1 and part.size_bytes <= SMALL_BYTES
        if known.limit >= 2 * part.size_bytes or not (single or known.limit):
            known.others += 1  # the broker gave no more for another reason
            return
        known.behind = part.high_watermark - part.end_offset
        known.records += part.records
        known.batches += part.size_bytes
        known.case.add(*place)

    def observations(self) -> Iterator[Observation]:
        for (client, topic), one in self._singles.items():
            case, lasted_ns = one.case, one.case.last_ns - one.case.first_ns
            if case.count < max(MANY, IN_TEN * one.others) or lasted_ns < LASTING_NS:
                continue
            size = one.batches // case.count
            is_limited = 0 < one.limit < 2 * max(size, SMALL_BYTES)
            asked = f", asked for no more than {one.limit:,} bytes" if is_limited else ""
            what = "record" if one.records == case.count else f"batch ({size:,} bytes on average)"
            text = f"each fetch brings one {what} of {topic} though the log has more{asked}, for {duration(lasted_ns)}"
            numbers = {"topic": topic, "max_bytes": one.max_bytes, "partition_max_bytes": one.partition_max_bytes}
            harm = Harm(records_unread=one.behind) if one.behind >= MANY_RECORDS else HARMLESS
            yield observation_of("single_records", case, [f"client:{client}", f"topic:{topic}"], numbers, harm, text)


def _readable(fetch: Exchange, part: PartitionDigest) -> int:
    """The offset up to which a fetch may read: the high watermark, or the last stable offset."""
    if fetch.request is None or isolation_level(fetch.request) != READ_COMMITTED:
        return part.high_watermark
    for topic in response_body(fetch).get("responses") or ():
        for one in topic.get("partitions") or ():
            if one.get("partition_index") == part.index and one.get("high_watermark") == part.high_watermark:
                return field_number(one.get("last_stable_offset"))
    return -1


def _partition_max_bytes(fetch: Exchange, index: int) -> int:
    """``partition_max_bytes`` of a fetch, 0 where a fetch session leaves it out."""
    for topic in request_body(fetch).get("topics") or ():
        for part in topic.get("partitions") or ():
            if part.get("partition") == index:
                return field_number(part.get("partition_max_bytes"))
    return 0


@cause("small_fetches", explains=("single_records",))
def small_fetches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`small_fetches` (warning): a consumer is given one record of less than 10 kB at a time, or one batch, though the
    log has more, in nine looks of ten for 4 s: `fetch.max.bytes` or `max.partition.fetch.bytes` are smaller than two of
    them. A broker sends the first batch whatever its size. Of a consumer that reads committed records only, the log has
    no more than those before the last stable offset.
    """
    return told(
        one,
        one.text,
        "Raise fetch.max.bytes and max.partition.fetch.bytes: each goes the way there and back. "
        "How many records the application is given at once is max.poll.records.",
        severity="warning",
        rank=INCIDENT if one.harm.records_unread else WASTE,
        explains=symptoms("client", one.named("client"), "consumer_lag"),
    )
