"""Consumers that are given one small record at a time, though the log has more: they ask for so few bytes.

A broker answers a Fetch with the first batch whatever its size, and else with no more than ``fetch.max.bytes`` and
``max.partition.fetch.bytes`` allow (KIP-74). ``max.poll.records`` does not show: what it leaves is fetched already.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.body_entities import READ_COMMITTED, isolation_level
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, text_bytes
from kwiresniff.base.field_values import field_number
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Exchange

#: Looks at fetches, of which all but one in ten brought one record, and how long at least.
MANY = 8
IN_TEN = 9
LASTING_NS = 4_000_000_000
#: A larger record may be all that a fetch is meant to bring.
SMALL_BYTES = 10_000


class _Singles:
    """Looks at a client's fetches of a topic: those that brought one record with more behind it, and the others."""

    __slots__ = ("case", "max_bytes", "others")

    def __init__(self, case: Case, max_bytes: int) -> None:
        self.case = case
        self.max_bytes = max_bytes
        self.others = 0


class SmallFetches:
    """Fetches of one record, by client and topic."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._singles: dict[tuple[str, str], _Singles] = {}

    def look(self, client: str, topic: str, part: PartitionDigest, exchange: Exchange, place: tuple[int, int]) -> None:
        """Looks at what a fetch brought of a partition: one record, and the log has more of what it may read."""
        known = self._singles.get((client, topic))
        if part.records != 1 or part.high_watermark <= part.end_offset or part.size_bytes > SMALL_BYTES:
            if known is not None:
                known.others += 1
            return
        request = exchange.request
        if known is None and request is not None and isolation_level(request) != READ_COMMITTED:
            room = len(self._singles) < MAX_SUBJECTS
            if room and self._context.budget.admit(2 * CONTAINER_BYTES + text_bytes(client, topic)):
                max_bytes = field_number((request.body or {}).get("max_bytes"))
                known = self._singles[client, topic] = _Singles(self._context.case(), max_bytes)
        if known is not None:
            known.case.add(*place)

    def observations(self) -> Iterator[Observation]:
        """Where it is the rule."""
        for (client, topic), one in self._singles.items():
            case, lasted_ns = one.case, one.case.last_ns - one.case.first_ns
            if case.count < max(MANY, IN_TEN * one.others) or lasted_ns < LASTING_NS:
                continue
            asked = f", asked for no more than {one.max_bytes:,} bytes" if 0 < one.max_bytes < SMALL_BYTES else ""
            yield observation_of(
                "single_records",
                f"each fetch brings one record of {topic} though the log has more{asked}, for {duration(lasted_ns)}",
                case,
                {f"client:{client}", f"topic:{topic}"},
                {"topic": topic, "max_bytes": one.max_bytes},
            )
