"""Consumers that are in their group and do not read what they are assigned."""

from __future__ import annotations

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed
from kwiresniff.results.findings import scope_of

#: What else is seen of such a consumer: its lag grows.
_SYMPTOMS = ("consumer_lag", "no_progress")


class PartitionNotRead(Cause):
    """`partition_not_read` (warning): a member reads some of its partitions and not others that are written and
    assigned to it: the application has paused them (`pause`) and does not resume, or its own loop has stopped for them.
    Must not be seen: an answer that lacks bytes, in which the records may have been.
    """

    codes = ("partition_not_read",)
    explains = ("partition_not_read",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers, client = one.numbers, one.name("client")
        group, partitions = numbers["group"], listed(numbers["partitions"])
        return self.told(
            one,
            f"{client} is assigned {partitions} and has not read from there since {clock(one.first_ns)}: "
            f"{counted(numbers['records'], 'record')} wait in {duration(numbers['waiting_ns'])}, while it reads "
            f"{counted(numbers['reading'], 'other partition')}",
            f"See in {client} whether {partitions} is paused and never resumed (pause and resume of the "
            "consumer), and what its threads for it do; the broker has the records and is not asked for them.",
            subject=f"group {group}",
            supports=("it is given records of other partitions meanwhile, and its heartbeats go on",),
            explains=dict.fromkeys(_SYMPTOMS, scope_of("group", [group])),
        )


class HangingConsumer(Cause):
    """`commits_stopped` (warning): a member that committed at intervals goes on fetching and heartbeating and commits
    nothing for twice as long and longer: its library works, its application does not. It hangs in the work on one
    record, or its commits fail before they are sent. An application that commits by hand after a long piece of work
    looks the same the first time.
    """

    codes = ("commits_stopped",)
    explains = ("commits_stopped",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers, client, group = one.numbers, one.name("client"), one.numbers["group"]
        return self.told(
            one,
            f"{client} fetches on and commits nothing from {clock(one.first_ns)} on, for "
            f"{duration(numbers['lasted_ns'])}: {counted(numbers['records'], 'record')} were given to it that it "
            f"has not finished; before, it committed every {duration(numbers['gap_ns'])} at most",
            f"See what {client} is doing (a thread dump): its library fetches ahead and sends heartbeats, "
            "its application does not get on. After max.poll.interval.ms the group gives its partitions to others, "
            "which begin at the last commit.",
            subject=f"group {group}",
            supports=("it committed before, and its heartbeats and fetches go on",),
            explains=dict.fromkeys(_SYMPTOMS, scope_of("group", [group])),
        )
