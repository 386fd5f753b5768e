"""Members that do not read, or do not commit, what they are assigned."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed
from kwiresniff.base.time_units import MILLISECOND_NS

#: Other findings of such a consumer.
_OF_GROUP = ("consumer_lag", "no_progress")


@cause("partition_not_read", explains=("partition_not_read",))
def partition_not_read(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`partition_not_read` (warning): a member reads some of its partitions and not others that are written and
    assigned to it: the application has paused them (`pause`) and does not resume, or its own loop has stopped for them.
    Must not be seen: an answer that lacks bytes, in which the records may have been.
    """
    numbers, client = one.numbers, one.name("client")
    group, partitions = numbers["group"], listed(numbers["partitions"])
    return told(
        one,
        f"{client} is assigned {partitions} and has not read from there since {clock(one.first_ns)}: "
        f"{counted(numbers['records'], 'record')} wait in {duration(numbers['waiting_ns'])}, while it reads "
        f"{counted(numbers['reading'], 'other partition')}",
        f"See in {client} whether {partitions} is paused and never resumed (pause and resume of the "
        "consumer), and what its threads for it do; the broker has the records and is not asked for them.",
        subject=f"group {group}",
        supports=("it is given records of other partitions meanwhile, and its heartbeats go on",),
        explains=symptoms("group", [group], *_OF_GROUP),
    )


@cause("commits_stopped", explains=("commits_stopped",))
def hanging_consumer(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`commits_stopped` (warning): a member that committed at intervals goes on fetching and heartbeating and commits
    nothing for twice as long and longer: its library works, its application does not. It hangs in the work on one
    record, or its commits fail before they are sent. An application that commits by hand after a long piece of work
    looks the same the first time.
    """
    numbers, client, group = one.numbers, one.name("client"), one.numbers["group"]
    return told(
        one,
        f"{client} fetches on and commits nothing from {clock(one.first_ns)} on, for "
        f"{duration(numbers['lasted_ns'])}: {counted(numbers['records'], 'record')} were given to it that it "
        f"has not finished; before, it committed every {duration(numbers['gap_ns'])} at most",
        f"See what {client} is doing (a thread dump): its library fetches ahead and sends heartbeats, "
        "its application does not get on. After max.poll.interval.ms the group gives its partitions to others, "
        "which begin at the last commit.",
        subject=f"group {group}",
        supports=("it committed before, and its heartbeats and fetches go on",),
        explains=symptoms("group", [group], *_OF_GROUP),
    )


@cause("member_away", explains=("member_away",))
def absent_member(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`member_away` (warning): a member of a group has closed its connection without leaving, and is not heard of for
    10 s and more: its partitions are kept for it, and what is written to them is read by nobody until it is back or its
    session is over (`session.timeout.ms`). A static member (`group.instance.id`) never leaves when it is stopped,
    another one ends like that when it is killed. Must not be seen: that another member is given its partitions.
    """
    numbers, client, group = one.numbers, one.name("client"), one.numbers["group"]
    lasted, session_ns = duration(numbers["lasted_ns"]), numbers["session_ms"] * MILLISECOND_NS
    instance = numbers["instance"]
    who = f"{client} (static member {instance})" if instance else client
    kept = f" (session.timeout.ms {duration(session_ns)})" if session_ns else ""
    gone = f"was away for {lasted}" if numbers["over"] else f"has been away for {lasted}"
    return told(
        one,
        f"{who} {gone} from {clock(one.first_ns)} on without leaving: {listed(numbers['partitions'])} were kept "
        f"for it{kept}, and {counted(numbers['records'], 'record')} waited there that nobody read",
        (_STATIC if instance else _KILLED)
        + " Its group waits for it until session.timeout.ms is over: with a shorter one others take over sooner.",
        subject=f"group {group}",
        explains=symptoms("group", [group], *_OF_GROUP),
    )


_STATIC: Final = (
    "A static member does not leave when it is stopped, so that a restart moves no partition: bring it back soon, or "
    "remove it where it is not to come back (removeMembersFromConsumerGroup of the admin client)."
)
_KILLED: Final = "It was killed, or ended without closing its consumer: close that on SIGTERM, so that it leaves."
