"""How far the timestamps that producers give their records are from the time at which these pass the capture point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.topic_parts import message_parts
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Exchange

#: Producers that are remembered.
MAX_PRODUCERS = 2_000
#: Batches of each whose age is kept; when they are as many, every second one goes.
MAX_AGES: Final = 40
#: Batches of a producer, and for how long, from which on its clock shows.
ENOUGH_BATCHES: Final = 20
LASTING_NS: Final = 3_000_000_000
#: A clock that is ahead makes records of the future, which nobody else does. One that is behind looks like records that
#: are older than their request; what waits in a producer, or is copied, is so by changing times.
AHEAD_NS: Final = 1_000_000_000
BEHIND_NS: Final = 10_000_000_000
STEADY_NS: Final = 2_000_000_000


#: What a timestamp in another unit has to be multiplied with, and how near the time it has to be then.
UNITS: Final = (("seconds", 1_000_000_000), ("microseconds", 1_000), ("nanoseconds", 1))
NEAR_NS: Final = 86_400_000_000_000


class _Clock:
    """How old the oldest record of each batch was when its request passed, of up to ``MAX_AGES`` batches, and how many
    batches have the time in another unit than milliseconds."""

    __slots__ = ("ages", "case", "every", "units")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ages: list[int] = []
        self.every = 1
        self.units: dict[str, int] = {}

    def add(self, age_ns: int) -> None:
        if self.case.count % self.every == 0:
            self.ages.append(age_ns)
        if len(self.ages) >= MAX_AGES:
            del self.ages[1::2]
            self.every *= 2

    def unit(self) -> str:
        """The unit in which nine in ten batches have their time, where that is not milliseconds."""
        return next((unit for unit, count in self.units.items() if count * 10 >= self.case.count * 9), "")

    def ahead_ns(self) -> int:
        """How far the clock is ahead (below zero: behind), 0 where the ages do not say. One batch in ten may have
        waited longer than the others."""
        ages = sorted(self.ages)
        tenth = len(ages) // 10
        least_ns, most_ns = ages[tenth], ages[-1 - tenth]
        if most_ns <= -AHEAD_NS:
            return -most_ns
        return -least_ns if least_ns >= BEHIND_NS and most_ns - least_ns <= STEADY_NS else 0


class RecordClocks(Observer):
    """``clock_off``: nine in ten batches of a producer are of the future, or are older than 10 s by the same time;
    ``timestamp_unit``: nine in ten batches of a producer have timestamps that are the time in another unit.

    Numbers of the first: ``ahead_ns`` of the time at the capture point (below zero: behind it), ``others``: producers
    whose records are neither; of the second: ``unit``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("clock_off", "timestamp_unit")
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clocks: Subjects[str, _Clock] = context.subjects(
            lambda: _Clock(context.case()), MAX_AGES + 14, MAX_PRODUCERS
        )

    def exchange(self, exchange: Exchange) -> None:
        """Compares the batches of a Produce with the time of its first packet."""
        request = exchange.request
        if request is None:
            return
        for topic in message_parts(request):
            for part in topic.partitions:
                if part.oldest_ms <= 0:
                    continue
                clock = self._clocks.of(client_of(exchange))
                if clock is None:
                    return
                age_ns = request.first_ns - part.oldest_ms * MILLISECOND_NS
                clock.add(age_ns)
                if not -NEAR_NS < age_ns < NEAR_NS:
                    for unit, size in UNITS:
                        if -NEAR_NS < part.oldest_ms * size - request.first_ns < NEAR_NS:
                            clock.units[unit] = clock.units.get(unit, 0) + 1
                clock.case.add(request.first_packet, request.first_ns)
                clock.case.note("topics", [self.context.topic_in(topic)])

    def observations(self) -> Iterator[Observation]:
        """By client."""
        in_units = {client: unit for client, clock in self._clocks.items() if (unit := clock.unit())}
        for client, unit in in_units.items():
            case = self._clocks[client].case
            yield observation_of("timestamp_unit", case, {f"client:{client}"}, {"unit": unit})
        off = {client: clock for client, clock in self._clocks.items() if clock.ages and clock.ahead_ns()}
        others = sorted(self._clocks.keys() - off.keys())
        for client, clock in off.items():
            case = clock.case
            if client in in_units or case.count < ENOUGH_BATCHES or case.last_ns - case.first_ns < LASTING_NS:
                continue
            ahead_ns = clock.ahead_ns()
            yield observation_of(
                "clock_off",
                case,
                {f"client:{client}"},
                {"ahead_ns": ahead_ns, "others": others[:100]},
            )
