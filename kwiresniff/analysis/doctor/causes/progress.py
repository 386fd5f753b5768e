"""Consumers that do not get on, or fall behind."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import INCIDENT, WASTE, Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.results.findings import scope_of

#: What else a client does that begins again and again.
_SYMPTOMS: Final = ("connection_churn", "commit_storm", "metadata_storm", "consumer_lag")


class UnreadableRecord(Cause):
    """`no_progress` (warning): a consumer goes back to the same records 3 times or more, and commits nothing behind
    them: it seeks back, or ends and is started again where its group stands, because of a record that it cannot
    process. With partitions and offsets; its rebalances are symptoms. What is read again because of a rebalance does
    not count.
    """

    codes = ("no_progress",)
    explains = ("read_again",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        client = one.name("client")
        return self.told(
            one,
            one.text.removeprefix(f"{client} "),
            "A record there, the first or one of those behind it, that the application cannot process: it "
            "fails, and begins again with what is committed. Its log has the exception. Look at that record "
            "(kwiresniff read -Y 'api == Fetch'); skip it by a commit behind it, or send it to a dead-letter "
            "topic.",
            severity="warning",
            explains={
                "rebalances": scope_of("group", one.named("group")),
                **dict.fromkeys(_SYMPTOMS, scope_of("client", [client])),
            },
        )


class SlowConsumer(Cause):
    """`consumer_lag` (warning): a consumer falls behind: for 10 s and more its lag was greater all through the last
    third of the time than ever in the first, and is 100 records or more at the end; from the high watermark of its
    fetches, less what its group has committed, or less what it fetched where the group commits seldom. Must not be
    seen: that it does not poll at all, or reads the same again, or is given one record at a time; its lag is a symptom
    of those.
    """

    codes = ("consumer_lag",)
    explains = ("lag_grows",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers, group = one.numbers, one.name("group")
        idle = observed.about((f"group:{name}" for name in one.named("group")), "idle_members")
        more = (
            "more members do not help, since some have nothing to do already: add partitions"
            if idle
            else "more members help up to the number of partitions"
        )
        return self.told(
            one,
            f"falls behind on {numbers['topic']}{f' (group {group})' if group else ''}: its lag grew from "
            f"{numbers['lag_before']:,} to {numbers['lag']:,} records in {duration(one.last_ns - one.first_ns)}; "
            f"{numbers['written_per_second']:.3g} records a second are written, it {numbers['by']} "
            f"{numbers['read_per_second']:.3g}",
            "The consumer is slower than the producers, and reads older and older records until retention "
            "deletes them before it comes to them. Look at what it does with each record, and at its machine; "
            f"{more}. The broker is slow only where its own time says so (kwiresniff stats).",
            supports=tuple(each.text for each in idle),
            numbers={name: value for name, value in numbers.items() if name not in ("by", "each")},
            details=tuple(numbers["each"]),
            severity="warning",
        )


class SmallFetches(Cause):
    """`small_fetches` (warning): a consumer is given one record of less than 10 kB at a time, or one batch, though the
    log has more, in nine looks of ten for 4 s: `fetch.max.bytes` or `max.partition.fetch.bytes` are smaller than two of
    them. A broker sends the first batch whatever its size. Of a consumer that reads committed records only, the log has
    no more than those before the last stable offset.
    """

    codes = ("small_fetches",)
    explains = ("single_records",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        return self.told(
            one,
            one.text,
            "Raise fetch.max.bytes and max.partition.fetch.bytes: each goes the way there and back. "
            "How many records the application is given at once is max.poll.records.",
            severity="warning",
            rank=INCIDENT if one.harm.records_unread else WASTE,
            explains={"consumer_lag": scope_of("client", one.named("client"))},
        )
