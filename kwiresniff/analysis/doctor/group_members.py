"""The state of a group and its members, for the rule that judges how they rebalance."""

from __future__ import annotations

from kwiresniff.analysis.doctor.evidence import Case, clipped
from kwiresniff.analysis.doctor.wording import clock, duration, listed, times

#: Generations or epochs of one group in ten minutes before it rebalances too much.
REBALANCES = 3
FEW_DEPARTURES = 2
#: Generations of a group of which the last member to join is remembered.
MAX_GENERATIONS = 20
#: The member for which a rebalance waited is answered so soon after it has joined.
SOON_NS = 5_000_000_000
#: Reasons that members give for what the protocol has them do.
ORDINARY = ("need to re-join with the given member-id", "group is already rebalancing", "rebalance failed due to")


class Member:
    """A client in a group: members that are restarted get new ids, so they are known by the client's."""

    __slots__ = (
        "connection", "errors", "interval_ms", "joined", "last_ns", "leaving_id", "left", "left_ns", "overslept_ns",
        "reasons", "removed", "returned", "silent_ns", "vanished_ns",
    )  # fmt: skip

    def __init__(self) -> None:
        self.joined = 0
        self.left = 0
        self.removed = 0
        self.returned = 0
        self.silent_ns = 0
        self.overslept_ns = 0
        self.interval_ms = 0
        self.left_ns = 0
        self.last_ns = 0
        self.leaving_id = ""
        self.connection = 0
        self.vanished_ns = 0
        self.reasons: dict[str, None] = {}
        self.errors: dict[str, None] = {}


class LastJoin:
    """The last member to join a rebalance: when it asked, and how long it waited."""

    __slots__ = ("client", "requested_ns", "waited_ns")

    def __init__(self, client: str, requested_ns: int, waited_ns: int) -> None:
        self.client = client
        self.requested_ns = requested_ns
        self.waited_ns = waited_ns


class Group:
    """One group: its members, and who joined its newest generations last."""

    __slots__ = ("case", "epochs", "joins", "members", "newest", "protocol")

    def __init__(self, protocol: str, case: Case) -> None:
        self.protocol = protocol
        self.case = case
        self.newest = -1
        self.members: dict[str, Member] = {}
        self.epochs: dict[str, int] = {}
        self.joins: dict[int, LastJoin] = {}

    def join(self, generation: int, client: str, requested_ns: int, waited_ns: int) -> None:
        """Remembers the last member to join a generation, of the newest ``MAX_GENERATIONS``."""
        known = self.joins.get(generation)
        if known is None or requested_ns > known.requested_ns:
            self.joins[generation] = LastJoin(client, requested_ns, waited_ns)
        if len(self.joins) > MAX_GENERATIONS:
            del self.joins[next(iter(self.joins))]


def is_storm(group: Group) -> bool:
    """Whether a group rebalances more than its coming and going members explain."""
    case = group.case
    if case.count <= REBALANCES or case.count / case.seconds * 600 <= REBALANCES:
        return False
    gone = sum(member.left + member.removed for member in group.members.values())
    again = sum(max(member.joined - 1, 0) for member in group.members.values())
    if group.protocol == "classic":  # that starts and grows, goes through some generations, too
        return gone + again >= FEW_DEPARTURES or case.count >= 2 * REBALANCES
    # Each member that comes or goes takes the group on by an epoch or two: only those that go and come are churn.
    return gone >= REBALANCES and (again > 0 or gone > len(group.members) // 2)


def waited_for(group: Group | None, case: Case) -> str:
    """Who came last to the long rebalances of a case, for whom the others had to wait; empty where nothing is known."""
    latecomers: dict[str, None] = {}
    for generation in case.noted("generations") if group is not None else ():
        last = group.joins.get(int(generation)) if group is not None else None
        if group is None or last is None or last.waited_ns >= SOON_NS:
            continue
        interval_ns = group.members[last.client].interval_ms * 1_000_000 if last.client in group.members else 0
        interval = f" (its max.poll.interval.ms is {duration(interval_ns)})" if interval_ns else ""
        latecomers[f"{last.client}, which joined last{interval}"] = None
    if latecomers:
        return f"; it waited for {listed(list(latecomers), 3)}"
    return "; it waited for a member that did not come back in time" if group is not None and group.joins else ""


def history(client: str, member: Member) -> str:
    """What a member did, in a sentence."""
    parts = []
    if member.joined:
        parts.append(f"joined {times(member.joined)}")
    if member.left:
        how = f"left {times(member.left)}"
        if member.overslept_ns:
            how += f", {duration(member.overslept_ns)} after it last was heard of (max.poll.interval.ms is "
            how += f"{duration(member.interval_ms * 1_000_000)})"
        parts.append(how)
    if member.returned:
        parts.append(f"came back {times(member.returned)} on the same connection")
    if member.removed:
        parts.append(f"was removed {times(member.removed)}")
    if member.vanished_ns:
        parts.append(f"closed its connection at {clock(member.vanished_ns)} without leaving")
    if member.errors:
        parts.append(f"was answered {listed(list(member.errors))}")
    reasons = [clipped(reason) for reason in member.reasons if not reason.startswith(ORDINARY)]
    if reasons and parts:
        parts[-1] += f"; it says: {'; '.join(reasons)}"
    return f"{client} {', '.join(parts)}" if parts else ""
