"""Consumers that are in their group and do not read what they are assigned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observed
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed
from kwiresniff.results.findings import scope_of

#: What else is seen of such a consumer: its lag grows.
_SYMPTOMS = ("consumer_lag", "no_progress")


class PartitionNotRead(Cause):
    """`partition_not_read` (warning): a member reads some of its partitions and not others that are written and
    assigned to it: the application has paused them (`pause`) and does not resume, or its own loop has stopped for them.
    Must not be seen: an answer that lacks bytes, in which the records may have been.
    """

    codes: ClassVar[tuple[str, ...]] = ("partition_not_read",)
    explains: ClassVar[tuple[str, ...]] = ("partition_not_read",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By member."""
        for one in observed.of("partition_not_read"):
            numbers, client = one.numbers, one.name("client")
            group, partitions = numbers["group"], listed(numbers["partitions"])
            yield Explanation(
                code="partition_not_read",
                subject=f"group {group}",
                title=f"{client} is assigned {partitions} and has not read from there since {clock(one.first_ns)}: "
                f"{counted(numbers['records'], 'record')} wait in {duration(numbers['waiting_ns'])}, while it reads "
                f"{counted(numbers['reading'], 'other partition')}",
                remedy=f"See in {client} whether {partitions} is paused and never resumed (pause and resume of the "
                "consumer), and what its threads for it do; the broker has the records and is not asked for them.",
                explained=(one,),
                supports=("it is given records of other partitions meanwhile, and its heartbeats go on",),
                numbers=dict(numbers),
                explains=dict.fromkeys(_SYMPTOMS, scope_of("group", [group])),
            )


class HangingConsumer(Cause):
    """`commits_stopped` (warning): a member that committed at intervals goes on fetching and heartbeating and commits
    nothing for twice as long and longer: its library works, its application does not. It hangs in the work on one
    record, or its commits fail before they are sent. An application that commits by hand after a long piece of work
    looks the same the first time.
    """

    codes: ClassVar[tuple[str, ...]] = ("commits_stopped",)
    explains: ClassVar[tuple[str, ...]] = ("commits_stopped",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By member."""
        for one in observed.of("commits_stopped"):
            numbers, client, group = one.numbers, one.name("client"), one.numbers["group"]
            yield Explanation(
                code="commits_stopped",
                subject=f"group {group}",
                title=f"{client} fetches on and commits nothing from {clock(one.first_ns)} on, for "
                f"{duration(numbers['lasted_ns'])}: {counted(numbers['records'], 'record')} were given to it that it "
                f"has not finished; before, it committed every {duration(numbers['gap_ns'])} at most",
                remedy=f"See what {client} is doing (a thread dump): its library fetches ahead and sends heartbeats, "
                "its application does not get on. After max.poll.interval.ms the group gives its partitions to others, "
                "which begin at the last commit.",
                explained=(one,),
                supports=("it committed before, and its heartbeats and fetches go on",),
                numbers=dict(numbers),
                explains=dict.fromkeys(_SYMPTOMS, scope_of("group", [group])),
            )
