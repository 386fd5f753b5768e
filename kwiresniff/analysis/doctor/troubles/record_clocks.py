"""The difference between the timestamps of producers' records and the time at the capture point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Exchange

#: Producers that are remembered.
MAX_PRODUCERS = 2_000
#: Batches of each whose age is kept; of more, every second one goes.
MAX_AGES: Final = 40
#: Batches of a producer, and their time span, from which its clock is judged.
ENOUGH_BATCHES: Final = 20
LASTING_NS: Final = 3_000_000_000
#: Records of the future show a clock that is ahead; a clock that is behind gives all batches about the same age, while
#: records that wait or are copied have ages that differ.
AHEAD_NS: Final = 1_000_000_000
BEHIND_NS: Final = 10_000_000_000
STEADY_NS: Final = 2_000_000_000


class _Clock:
    """The age of the oldest record of each batch at the capture point, of up to ``MAX_AGES`` batches."""

    __slots__ = ("ages", "case", "every")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.ages: list[int] = []
        self.every = 1

    def add(self, age_ns: int) -> None:
        if self.case.count % self.every == 0:
            self.ages.append(age_ns)
        if len(self.ages) >= MAX_AGES:
            del self.ages[1::2]
            self.every *= 2

    def ahead_ns(self) -> int:
        """How far the clock is ahead (below zero: behind), 0 where the ages do not show it. A tenth of the batches at
        either end does not count."""
        ages = sorted(self.ages)
        tenth = len(ages) // 10
        least_ns, most_ns = ages[tenth], ages[-1 - tenth]
        if most_ns <= -AHEAD_NS:
            return -most_ns
        return -least_ns if least_ns >= BEHIND_NS and most_ns - least_ns <= STEADY_NS else 0


class RecordClocks(Observer):
    """``clock_off``: nine in ten batches of a producer are of the future, or are older than 10 s by the same time.

    Numbers: ``ahead_ns`` of the time at the capture point (below zero: behind it), ``others``: producers whose records
    are neither.
    """

    kinds: ClassVar[tuple[str, ...]] = ("clock_off",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clocks: Subjects[str, _Clock] = context.subjects(
            lambda: _Clock(context.case()), MAX_AGES + 14, MAX_PRODUCERS
        )

    def exchange(self, exchange: Exchange) -> None:
        request = exchange.request
        if request is None:
            return
        for name, part in self.context.parts(request):
            if part.oldest_ms > 0:
                clock = self._clocks.of(client_of(exchange))
                if clock is None:
                    return
                clock.add(request.first_ns - part.oldest_ms * MILLISECOND_NS)
                clock.case.add(request.first_packet, request.first_ns)
                clock.case.note("topics", [name])

    def observations(self) -> Iterator[Observation]:
        off = {client: clock for client, clock in self._clocks.items() if clock.ages and clock.ahead_ns()}
        others = sorted(self._clocks.keys() - off.keys())
        for client, clock in off.items():
            case = clock.case
            if case.count < ENOUGH_BATCHES or case.last_ns - case.first_ns < LASTING_NS:
                continue
            numbers = {"ahead_ns": clock.ahead_ns(), "others": others[:100]}
            yield observation_of("clock_off", case, {f"client:{client}"}, numbers)


@cause("clock_skew", explains=("clock_off",))
def wrong_clock(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`clock_skew` (warning; error where brokers refuse its records; info where no other producer shows the right
    time): the clock of a producer's machine is wrong: nine in ten of its batches are of the future, or older than their
    requests by the same time, 10 s or more. Records that are older may have their timestamps from the application.
    Seen must be 20 batches in 3 s. Where the records of no other producer have the time of the capture point, that may
    be the clock which is wrong. Where those of another on the same machine have, it is the program that sets the
    timestamps. One that copies records, or writes the time of an event, gives ages that change.
    """
    ahead_ns, others, client = one.numbers["ahead_ns"], one.numbers["others"], one.name("client")
    where = "ahead" if ahead_ns > 0 else "behind"
    host = client.rpartition(" ")[2]
    same = any(name.rpartition(" ")[2] == host for name in others)
    whose = f"the clock of {host} is wrong"
    if same:
        whose = "its application sets them wrong"
    elif ahead_ns < 0:
        whose += ", or its application sets them (a backfill, a copy of older records)"
    errors = observed.about([f"client:{client}"], "answered_with_error")
    refused = sum(each.count for each in errors if each.name("error") == "INVALID_TIMESTAMP")
    if refused:
        whose += f"; brokers refuse them, {times(refused)}, and nothing of their batches is written"
    right = f"; the records of {listed(others, 3)} have the right time" if others else ""
    return told(
        one,
        subject=client,
        title=f"the timestamps of its records in {listed(one.named('topic'))} are {duration(abs(ahead_ns))} "
        f"{where} ({one.count:,} batches): {whose}{right}",
        remedy="Synchronise the clock of that machine (chrony, NTP). Retention, windows of Kafka Streams, "
        "offsets by time and the lag in time go by these timestamps; brokers refuse those that are more than "
        "message.timestamp.after.max.ms ahead (one hour by default), and more than "
        "message.timestamp.before.max.ms behind (no limit by default).",
        doubt="" if others else "It may be the clock of the machine that captured.",
        numbers={"ahead_ns": ahead_ns, "topics": one.named("topic")[:100]},
        severity="error" if refused else "warning" if others else "info",
        explains=symptoms("client", [client], "invalid_timestamp"),
    )
