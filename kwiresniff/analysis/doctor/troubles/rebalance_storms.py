"""Groups that rebalance too often or for too long, and clients that are not in their group any more."""

from __future__ import annotations

from typing import Any, Final

from kwiresniff.analysis.doctor.cause import ERROR, INCIDENT, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.troubles.rebalances import OFTEN_AGAIN
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times

#: Generations or epochs of a group in ten minutes that are not too many.
REBALANCES: Final = 3
FEW_DEPARTURES: Final = 2
#: A single removal may end a membership from before a restart.
OFTEN_REMOVED: Final = 2
_POLLS: Final = (
    "Look at what {who} does between two polls: less of it at a time (max.poll.records), or more time for it "
    "(max.poll.interval.ms)."
)
_SESSIONS: Final = (
    "Look at why {who} sends no heartbeat for as long as its session lasts (session.timeout.ms): a process that stands "
    "still, a machine that is short of CPU, a network that is cut."
)
_NO_HEARTBEATS: Final = (
    " Clients that have no thread for heartbeats send none while they work on a record (kafkajs: call heartbeat() in "
    "eachMessage or eachBatch): make the work shorter, or the session longer, and commit what is done."
)
_CIRCLES: Final = (
    "Look at the log of {who}: it does not take what it is assigned, joins again at once, and sends no heartbeat "
    "meanwhile."
)
#: Remedies by the ``protocol_type`` of the group.
_OF_WORKERS: Final = {
    "connect": " Connect workers do so whose config topics differ, or lag behind: all that share a group.id must have "
    "the same config.storage.topic, offset.storage.topic and status.storage.topic. Give another Connect cluster a "
    "group.id of its own."
}
_TOPICS: Final = (
    "Give topics that come and go names that the pattern does not match, or keep them. With group.protocol=consumer or "
    "partition.assignment.strategy=cooperative-sticky members go on with the partitions that they keep."
)
_RESTARTS: Final = "Look at who comes and goes, and why (kwiresniff groups): members that are restarted."
#: Remedies by the protocol of the group.
_HELPS: Final = {
    "classic": " Static membership (group.instance.id) or the consumer protocol (group.protocol=consumer) help.",
    "consumer": " Static membership (group.instance.id) helps members that are restarted.",
}


@cause("rebalances", explains=("generations", "long_rebalance", "member_removed", "uncommitted_starts"))
def rebalance_storm(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`rebalances` (warning; info where each member is restarted once, in order, or where the only one commits each
    time before it leaves, as a job that is started again and again does): a classic, consumer, share or streams
    group rebalances more often than its start, growth and end explain; with what each member did, and why, as far as it
    shows: polls that are too far apart, sessions that time out, restarts, a member that joins the same generation again
    and again, as Connect workers do that share a `group.id` and not their config topic, topics that a pattern matches
    and that are made and deleted. Joins that take long, and what removed members are answered, are symptoms. A group
    whose only member comes and goes disturbs nobody else: what is told then is that.
    """
    numbers = one.numbers
    if not is_storm(one):
        return None
    changes = _changes(one, observed)
    group, case_ns, kind = one.name("group"), one.last_ns - one.first_ns, numbers["protocol"]
    alone = numbers["largest"] == 1
    came = f"{counted(numbers['joins'], 'join')}, {counted(numbers['leaves'], 'leave')}"
    came += f", {numbers['removals']} removed" if numbers["removals"] else ""
    word = "generations" if kind == "classic" else "epochs"
    name = "the group" if kind == "classic" else f"the {kind} group"
    is_restarted = not changes and _are_restarted(numbers)
    how = "as its members are restarted" if is_restarted else "again and again"
    title = (
        f"its only member comes and goes: {came} in {duration(case_ns)}"
        if alone
        else f"{name} rebalances {how}: {one.count} {word} in {duration(case_ns)}; {came}"
    )
    reasons, remedy = _reasons(numbers, alone=alone)
    topics = [topic for each in changes for topic in each.noted("changed")]
    if changes:
        what = "each time what its members subscribe to changes, as a pattern's does when topics are made or deleted"
        reasons.append(f"{what}: {listed(topics, 3)}")
        remedy = _TOPICS
    return told(
        one,
        "; ".join([title, *reasons]),
        remedy,
        subject=f"group {group}",
        explained=(one, *observed.about([f"group:{group}"], *_follows(numbers))),
        supports=tuple(reasons),
        numbers={
            "protocol": kind,
            "generations": one.count,
            "joins": numbers["joins"],
            "leaves": numbers["leaves"],
            "removals": numbers["removals"],
            "reasons": numbers["reasons"] or numbers["histories"],
            "members": numbers["members"],
        },
        details=tuple(numbers["histories"]),
        severity="info" if is_restarted or _works_at_times(numbers) else "warning",
        explains=symptoms("group", [group], "unanswered") | symptoms("topic", topics, "topic_deleted"),
    )


def _changes(one: Observation, observed: Observed) -> list[Observation]:
    """The changes of subscriptions, where these explain most of the generations that no coming or going member does."""
    numbers = one.numbers
    changes = observed.about([f"group:{one.name('group')}"], "subscriptions_change")
    other = one.count - numbers["joins"] - numbers["leaves"]
    often = [each for each in changes if each.count >= REBALANCES and 2 * each.count >= other]
    return often if _leave_in_order(numbers) else []


def _follows(numbers: dict[str, Any]) -> tuple[str, ...]:
    """Kinds of observations that follow: a member that polls too late cannot commit, and reads the same again."""
    late = numbers["overslept"] or numbers["returned"]
    return "long_rebalance", "member_removed", *(["uncommitted_starts"] if late else [])


def is_storm(one: Observation) -> bool:
    """Whether a group rebalances more than its coming and going members explain."""
    numbers, count = one.numbers, one.count
    if any(times_ >= OFTEN_AGAIN for _, times_ in numbers["again"]):
        return True
    seconds = max((one.last_ns - one.first_ns) / 1e9, 1e-3)
    if count <= REBALANCES or count / seconds * 600 <= REBALANCES:
        return False
    gone, again = numbers["leaves"] + numbers["removals"], numbers["returns"]
    if again == 0 and numbers["removals"] == 0 and count <= numbers["joins"] + numbers["leaves"] <= 2 * numbers["most"]:
        return False  # each came once and left once
    if numbers["protocol"] == "classic":  # that starts and grows, goes through some generations, too
        return bool(gone + again >= FEW_DEPARTURES or count >= 2 * REBALANCES)
    # Each member that comes or goes adds an epoch or two.
    return bool(gone >= REBALANCES and (again > 0 or gone > len(numbers["members"]) // 2))


def _are_restarted(numbers: dict[str, Any]) -> bool:
    """Whether no member came more than twice, and all left in order, as with a new version."""
    return bool(numbers["joins"] <= 2 * numbers["most"] and _leave_in_order(numbers))


def _works_at_times(numbers: dict[str, Any]) -> bool:
    """Whether the only member commits whenever it is there, and leaves in order, as a job that is started again and
    again."""
    left = numbers["leaves"]
    worked = numbers["worked"] >= left and numbers["joins"] <= left + 1
    return bool(numbers["largest"] == 1 and worked and _leave_in_order(numbers))


def _leave_in_order(numbers: dict[str, Any]) -> bool:
    circles = any(count >= OFTEN_AGAIN for _, count in numbers["again"])
    return not circles and not any(numbers[name] for name in ("removals", "overslept", "returned"))


def _reasons(numbers: dict[str, Any], *, alone: bool) -> tuple[list[str], str]:
    """Why the members of a group come and go, as sentences, and the remedy."""
    circles = [(client, count) for client, count in numbers["again"] if count >= OFTEN_AGAIN][:3]
    removed = [
        (client, count)
        for client, count in numbers["removed"]
        if count >= OFTEN_REMOVED and client not in dict(circles)
    ][:3]
    late = numbers["overslept"][:3] or numbers["returned"][:3]
    reasons = [
        f"{client} was longer between polls ({duration(slept_ns)}) than max.poll.interval.ms ({duration(interval_ns)})"
        for client, slept_ns, interval_ns in numbers["overslept"][:3]
    ]
    reasons += [
        f"{client} left and came back on the same connection {times(count)}, as one does that is longer between polls "
        f"than max.poll.interval.ms ({duration(interval_ns)})"
        for client, count, interval_ns in numbers["returned"][:3]
    ]
    reasons += [
        f"{client} was removed {times(count)}, as one is that sends no heartbeat for as long as its session lasts (a "
        "process that stands still, a network that is cut)"
        for client, count in removed
    ]
    reasons += [
        f"{client} joined the generation that it was in again and again, {count:,} times" for client, count in circles
    ]
    remedies = [_CIRCLES.format(who=listed([client for client, _ in circles]))] if circles else []
    remedies += [_OF_WORKERS.get(numbers["protocol_type"], "")] if circles else []
    remedies += [_POLLS.format(who=listed([one[0] for one in late]))] if late else []
    remedies += [_SESSIONS.format(who=listed([one[0] for one in removed]))] if removed else []
    if (numbers["restarts"] and not circles) or not remedies:
        remedies += [_RESTARTS + ("" if alone else _HELPS.get(numbers["protocol"], ""))]
    return reasons, " ".join(map(str.strip, filter(None, remedies)))


@cause("long_rebalance", explains=("long_rebalance",))
def long_rebalance(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`long_rebalance` (warning): a join took 10 s or more; with the member that joined last, for which the others
    waited. That of a group that rebalances all the time is a symptom.
    """
    longest_ns = one.numbers["longest_ns"]
    return told(
        one,
        f"a rebalance took {duration(longest_ns)}{one.numbers['waited_for']}",
        "The whole group stands still until its slowest member polls again, or max.poll.interval.ms is "
        "over: look at what that member does between two polls, or lower max.poll.records or the interval.",
        subject=f"group {one.name('group')}",
        numbers={"longest_ns": longest_ns},
        severity="warning",
        rank=ERROR,
    )


@cause("member_removed", explains=("member_removed", "uncommitted_starts"))
def removed_member(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`member_removed` (warning, info up to 3; error where the group has no committed offset, and begins with the same
    records again because of that): a member learns that its group goes on without it. Of a group that rebalances all
    the time it is a symptom.
    """
    errors, group, history = one.noted("errors"), one.name("group"), one.numbers["history"]
    again = [
        each
        for each in observed.about([f"group:{group}"], "uncommitted_starts")
        if each.numbers["doubled"] and one.count >= OFTEN_REMOVED
    ]
    same = "".join(
        f", before it could commit: each start begins with the same records again, {each.numbers['records']:,} were "
        f"given for {each.numbers['existing']:,} different ones"
        for each in again
    )
    return told(
        one,
        f"{listed(errors)}: acts on a membership that its group has given up, {times(one.count)}{same}",
        "The member was away longer than max.poll.interval.ms or session.timeout.ms: look at the time between its "
        "polls, and at the timeline of the group (kwiresniff groups)." + (_NO_HEARTBEATS if again else ""),
        explained=(one, *again),
        numbers={"error": errors[0] if errors else "", "concerns": [*one.noted("apis"), f"group {group}"]},
        details=(history,) if history else (),
        severity="" if again else "info" if one.count <= REBALANCES else "warning",
        rank=INCIDENT if again else ERROR,
        explains=symptoms("group", [group], "no_progress"),
    )


@cause("commit_from_outside", explains=("commit_from_outside",))
def outside_commit(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`commit_from_outside` (warning): somebody commits offsets for a group that has members without being one, and
    nothing of it is stored: a reset of a group at work, or a consumer that assigns its partitions itself and shares the
    `group.id`. Must not be seen: that it was a member before.
    """
    errors, group = one.noted("errors"), one.name("group")
    return told(
        one,
        f"{listed(errors)}: commits offsets for group {group}, which has members, without being one of "
        f"them, {times(one.count)}: none of it is stored",
        "Offsets of a group can be set from outside while it has no members: stop them first, or wait "
        "until their sessions are over. A consumer that assigns its partitions itself needs a group.id of its "
        "own.",
        numbers={"error": errors[0], "group": group},
        severity="warning",
        rank=ERROR,
    )
