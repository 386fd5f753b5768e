"""Clocks of producers that are wrong, and timestamps in another unit."""

from __future__ import annotations

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times
from kwiresniff.results.findings import scope_of


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
        explains={"invalid_timestamp": scope_of("client", [client])},
    )


@cause("timestamp_unit", explains=("timestamp_unit", "offset_out_of_range"))
def other_unit(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`timestamp_unit` (warning; error where records were deleted before they were read): a producer gives its records
    the time in seconds, microseconds or nanoseconds, and Kafka takes milliseconds. Those in seconds are of January
    1970, and retention by time deletes them at once; those in smaller units are of a far future, and stay or are
    refused. Seen must be timestamps that are the time of their requests in that unit, to within a day.
    """
    client, unit, topics = one.name("client"), one.numbers["unit"], one.named("topic")
    of_past = scope_of("topic", topics if unit == "seconds" else [])
    missed = [each for each in observed.about(of_past, "offset_out_of_range") if each.numbers["gone"]]
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
        explains={"invalid_timestamp": scope_of("client", [client]), "offset_out_of_range": of_past},
    )
