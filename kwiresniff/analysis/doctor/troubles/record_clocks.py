"""The difference between the timestamps of records, by producers or by brokers, and the time at the capture point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

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


#: Units of timestamps that are no milliseconds, with their nanoseconds, and how near the time they have to be.
UNITS: Final = (("seconds", 1_000_000_000), ("microseconds", 1_000), ("nanoseconds", 1))
NEAR_NS: Final = 86_400_000_000_000


class _Clock:
    """The age of the oldest record of each batch at the capture point, of up to ``MAX_AGES`` batches, and the number of
    batches with the time in another unit than milliseconds."""

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

    def lasts(self) -> bool:
        """Whether there are enough batches, and for long enough, to judge it."""
        return self.case.count >= ENOUGH_BATCHES and self.case.last_ns - self.case.first_ns >= LASTING_NS

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
    """``clock_off``: nine in ten batches of a producer are of the future, or are older than 10 s by the same time;
    ``timestamp_unit``: nine in ten batches of a producer have timestamps that are the time in another ``unit``.
    ``broker_clock_off``: the same of the batches of a topic that consumers are given by a broker, while those that
    others give them have the time at which they were written, and producers gave all of them the right time.

    Numbers of the first and the last: ``ahead_ns`` of the time at the capture point (below zero: behind it),
    ``others``: producers, or brokers, whose records are neither.
    """

    kinds: ClassVar[tuple[str, ...]] = ("clock_off", "timestamp_unit", "broker_clock_off")
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clocks: Subjects[str, _Clock] = context.subjects(
            lambda: _Clock(context.case()), MAX_AGES + 14, MAX_PRODUCERS
        )

        self._given: Subjects[tuple[str, str], _Clock] = context.subjects(
            lambda: _Clock(context.case()), MAX_AGES + 14, MAX_PRODUCERS
        )

    def exchange(self, exchange: Exchange) -> None:
        request = exchange.request
        if exchange.api_key == FETCH:
            self._fetched(exchange)
            return
        if request is None:
            return
        for name, part in self.context.parts(request):
            if part.oldest_ms > 0:
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
                clock.case.note("topics", [name])

    def _fetched(self, exchange: Exchange) -> None:
        for topic, part in self.context.brought(exchange):
            if part.oldest_ms <= 0 or part.end_offset < part.high_watermark:
                continue  # what was written before has an age
            response, clock = exchange.response, self._given.of((topic, exchange.connection.broker))
            if response is not None and clock is not None:
                clock.add(response.first_ns - part.oldest_ms * MILLISECOND_NS)
                clock.case.add(response.first_packet, response.first_ns)

    def observations(self) -> Iterator[Observation]:
        yield from self._of_producers()
        wrong = {
            topic
            for _, clock in self._clocks.items()
            if clock.ages and clock.ahead_ns()
            for topic in clock.case.noted("topics")
        }
        for (topic, broker), clock in self._given.items():
            others = [
                (other, one.ahead_ns())
                for (name, other), one in self._given.items()
                if name == topic and other != broker and one.case.count >= ENOUGH_BATCHES
            ]
            ahead_ns = clock.ahead_ns() if clock.ages and clock.lasts() else 0
            if ahead_ns and others and not any(ns for _, ns in others) and topic not in wrong:
                numbers = {"ahead_ns": ahead_ns, "others": sorted(other for other, _ in others)[:100]}
                yield observation_of("broker_clock_off", clock.case, {f"broker:{broker}", f"topic:{topic}"}, numbers)

    def _of_producers(self) -> Iterator[Observation]:
        in_units = {client: unit for client, clock in self._clocks.items() if (unit := clock.unit())}
        for client, unit in in_units.items():
            yield observation_of("timestamp_unit", self._clocks[client].case, {f"client:{client}"}, {"unit": unit})
        off = {client: clock for client, clock in self._clocks.items() if clock.ages and clock.ahead_ns()}
        others = sorted(self._clocks.keys() - off.keys())
        for client, clock in off.items():
            case = clock.case
            if client in in_units or not clock.lasts():
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


@cause("broker_clock", explains=("broker_clock_off",))
def wrong_clock_of_broker(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`broker_clock` (warning): the clock of a broker's machine is wrong. The records of a topic that consumers get
    from it as soon as they are written are of the future, or older by the same time of 10 s or more, those of the same
    topic from other brokers are neither, and no producer of the topic gives wrong times: brokers set them
    (`message.timestamp.type=LogAppendTime`). Seen must be 20 batches in 3 s of either, up to the high watermark. A
    producer that is not in the capture, has a wrong clock and writes to that broker's partitions only looks the same.
    """
    ahead_ns, broker, topics = one.numbers["ahead_ns"], one.name("broker"), listed(one.named("topic"))
    where, name = "ahead" if ahead_ns > 0 else "behind", context.cluster.broker_text(broker)
    others = listed([context.cluster.broker_text(other) for other in one.numbers["others"]], 3)
    return told(
        one,
        f"its clock is {duration(abs(ahead_ns))} {where}: the records of {topics} that it leads have that time "
        f"({one.count:,} batches), those from {others} the right one",
        "Synchronise the clock of the broker's machine (chrony, NTP). With message.timestamp.type=LogAppendTime it "
        "gives records their time: retention, offsets by time and windows of Kafka Streams go wrong for its "
        "partitions. Tokens, certificates and lines of its log go by the same clock.",
        subject=name,
        severity="warning",
    )


@cause("timestamp_unit", explains=("timestamp_unit", "offset_out_of_range"))
def other_unit(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`timestamp_unit` (warning; error where records were deleted before they were read): a producer gives its records
    the time in seconds, microseconds or nanoseconds, and Kafka takes milliseconds. Those in seconds are of January
    1970, and retention by time deletes them at once; those in smaller units are of a far future, and stay or are
    refused. Seen must be timestamps that are the time of their requests in that unit, to within a day.
    """
    client, unit, topics = one.name("client"), one.numbers["unit"], one.named("topic")
    of_past = topics if unit == "seconds" else []
    found = observed.about(scope_of("topic", of_past), "offset_out_of_range")
    missed = [each for each in found if each.numbers["gone"]]
    gone = sum(each.numbers["gone"] for each in missed)
    who = listed(sorted({name for each in missed for name in each.named("client")}))
    lost = f"; {counted(gone, 'record')} {'was' if gone == 1 else 'were'} deleted before {who} had read them"
    when = "January 1970, which retention by time deletes at once" if unit == "seconds" else "a far future"
    return told(
        one,
        f"gives its records of {listed(topics)} the time in {unit}, where Kafka takes milliseconds: to brokers they "
        f"are of {when}{lost if gone else ''}",
        "Leave timestamps to the producer, or give them in milliseconds since 1970. Until then set retention.ms=-1 for "
        "the topic where its records are deleted.",
        explained=(one, *missed),
        supports=tuple(each.sentence for each in missed),
        severity="error" if gone else "warning",
        explains=symptoms("client", [client], "invalid_timestamp") | symptoms("topic", of_past, "offset_out_of_range"),
    )
