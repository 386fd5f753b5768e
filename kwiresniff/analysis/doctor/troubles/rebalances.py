"""Groups that rebalance, in all four protocols, with what each member did.

Classic groups have generations (KIP-62, KIP-345; KIP-800 for the reasons that members give), consumer, share and
streams groups member epochs (KIP-848, KIP-932, KIP-1071).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kwiresniff.analysis.doctor.bodies import group_of, is_answered, request_body, response_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import clock, duration, listed, times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import HEARTBEAT, HEARTBEAT_PROTOCOLS, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, SYNC_GROUP
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Body, Connection, Exchange

#: A join that takes longer is a long rebalance.
LONG_REBALANCE_NS = 10_000_000_000
#: Members of all groups together, and those named in an observation.
MAX_MEMBERS = 10_000
MAX_LISTED = 10
#: Generations of a group with their last member to join.
MAX_GENERATIONS = 20
#: The member for which a rebalance waited is answered within this time.
SOON_NS = 5_000_000_000
#: A request that is sent again joins a generation twice.
OFTEN_AGAIN: Final = 10
#: Codes by which a member learns that its group goes on without it.
REMOVED = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"})
#: Those of a member that is in it all the same: it commits or beats for what a rebalance has ended.
_BEHIND: Final = frozenset({"ILLEGAL_GENERATION", "STALE_MEMBER_EPOCH"})
_APIS: Final = frozenset({OFFSET_COMMIT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP, HEARTBEAT, *HEARTBEAT_PROTOCOLS})
#: Reasons that only name a step of the protocol.
ORDINARY = ("need to re-join with the given member-id", "group is already rebalancing", "rebalance failed due to")


@dataclass(slots=True, eq=False)
class Member:
    """A client in a group; restarted members get new ids. ``again`` are joins of its current generation, ``worked``
    departures after a commit."""

    joined: int = 0
    again: int = 0
    generation: int = -1
    left: int = 0
    worked: int = 0
    has_committed: bool = False
    removed: int = 0
    returned: int = 0
    silent_ns: int = 0
    overslept_ns: int = 0
    interval_ns: int = 0
    left_ns: int = 0
    last_ns: int = 0
    connection: int = 0
    vanished_ns: int = 0
    reasons: dict[str, None] = field(default_factory=dict)
    errors: dict[str, None] = field(default_factory=dict)

    def leave(self, ns: int, connection: int) -> None:
        """Counts a departure by request."""
        self.left += 1
        self.worked += self.has_committed
        self.has_committed = False
        self.left_ns, self.connection = ns, connection

    def give(self, reason: object) -> None:
        """Remembers a reason, without the member id that some end in."""
        if reason and len(self.reasons) < 3:
            self.reasons[field_text(reason).partition(":")[0][:200]] = None


@dataclass(slots=True, eq=False)
class LastJoin:
    """The last member to join a rebalance: when it asked, and how long it waited."""

    client: str
    requested_ns: int
    waited_ns: int


@dataclass(slots=True, eq=False)
class Group:
    """A group with its members, and the last ones to join its newest generations. ``largest`` is its size as leaders
    are told, ``most`` that of ``present``, the members that are seen to be in it."""

    protocol: str
    case: Case
    protocol_type: str = ""
    newest: int = -1
    largest: int = 0
    most: int = 0
    present: set[str] = field(default_factory=set)
    members: dict[str, Member] = field(default_factory=dict)
    epochs: set[str] = field(default_factory=set)
    joins: dict[int, LastJoin] = field(default_factory=dict)

    def join(self, generation: int, client: str, requested_ns: int, waited_ns: int) -> None:
        """Remembers the last member to join a generation."""
        known = self.joins.get(generation)
        if known is None or requested_ns > known.requested_ns:
            self.joins[generation] = LastJoin(client, requested_ns, waited_ns)
        if len(self.joins) > MAX_GENERATIONS:
            del self.joins[next(iter(self.joins))]


class Rebalances(Observer):
    """``generations``: those of a group during the capture, with what each client in it did; ``long_rebalance``: a join
    took 10 s or more; ``member_removed``: a client learned that its group goes on without it;
    ``commit_from_outside``: a client that is no member commits for a group that has members.

    Numbers of the first: ``generations``, ``joins``, ``leaves``, ``removals``, ``returns`` of former members,
    ``restarts`` (departures without a known reason), ``worked`` (departures after a commit), ``largest`` (members, as
    leaders are told), ``most`` (members seen at a time), the ``protocol_type``, and lists of those that ``overslept``,
    ``returned``, were ``removed``, or joined ``again``.
    """

    kinds = ("generations", "long_rebalance", "member_removed", "commit_from_outside")
    apis = _APIS
    judges = REMOVED

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._groups: dict[str, Group] = {}
        self._long = context.tally()
        self._removed = context.tally()
        self._outsiders = context.tally()
        self._members = 0
        self._on: dict[int, Member] = {}

    def exchange(self, exchange: Exchange) -> None:
        request, answer = request_body(exchange), response_body(exchange)
        if not request or not (is_answered(exchange) or exchange.api_key == LEAVE_GROUP):
            return
        api_key = exchange.api_key
        if exchange.errors:
            self._failed(exchange, request)
        elif api_key == JOIN_GROUP:
            self._join(exchange, request, answer)
        elif api_key == LEAVE_GROUP:
            for one in request.get("members") or [request]:
                self._leave(exchange, request, field_text(one.get("member_id")), one.get("reason"))
        elif api_key in HEARTBEAT_PROTOCOLS:
            self._heartbeat(exchange, request, answer)
        elif api_key in (OFFSET_COMMIT, SYNC_GROUP):
            self._active(exchange, request)
        elif api_key == HEARTBEAT:
            self._of(exchange, request, "classic", make=False)

    def connection(self, connection: Connection) -> None:
        """A client that closes its connection without a LeaveGroup was killed."""
        member = self._on.pop(connection.id, None)
        if member is not None and connection.closed_by == "client" and not member.left_ns:
            member.vanished_ns = connection.closed_ns

    def _join(self, exchange: Exchange, request: Body, answer: Body) -> None:
        group, member = self._of(exchange, request, "classic")
        if group is None:
            return
        generation = answer.get("generation_id", -1)
        group.largest = max(group.largest, len(answer.get("members") or ()))
        self._generation(group, generation, exchange)
        latency_ns = exchange.latency_ns or 0
        group.join(generation, client_of(exchange), request_place(exchange)[1], latency_ns)
        if latency_ns >= LONG_REBALANCE_NS:
            case = self._long.case(group_of(request))
            case.add(*request_place(exchange), latency_ns)
            case.note("clients", [client_of(exchange)])
            case.note("generations", [str(generation)])
        group.protocol_type = clipped(field_text(request.get("protocol_type"))) or group.protocol_type
        if member is None:
            return
        member.again += generation == member.generation
        member.generation = generation
        # A member joins every rebalance with its id; with a new id it is new.
        member_id = field_text(answer.get("member_id"))
        if member_id not in group.epochs:
            self._joins(exchange, member)
            if len(group.epochs) < MAX_SUBJECTS:
                group.epochs.add(clipped(member_id))
        member.interval_ns = request.get("rebalance_timeout_ms", 0) * MILLISECOND_NS or member.interval_ns
        member.give(request.get("reason"))
        member.last_ns = place_of(exchange)[1]

    def _leave(self, exchange: Exchange, request: Body, member_id: str, reason: object) -> None:
        group, member = self._of(exchange, request, "classic")
        if group is None or member is None:
            return
        ns = request_place(exchange)[1]
        member.leave(ns, exchange.connection.id)
        group.present.discard(client_of(exchange))
        member.give(reason)
        interval_ns = member.interval_ns
        if interval_ns and member.last_ns and interval_ns <= ns - member.last_ns <= 2 * interval_ns + 5_000_000_000:
            member.silent_ns = ns - member.last_ns
        group.epochs.discard(clipped(member_id))

    def _joins(self, exchange: Exchange, member: Member) -> None:
        member.joined += 1
        self._came_back(exchange, member)
        if len(self._on) < MAX_MEMBERS:
            self._on[exchange.connection.id] = member

    def _came_back(self, exchange: Exchange, member: Member) -> None:
        """A member that leaves and uses the group again on the same connection did not mean to leave."""
        if member.left_ns and exchange.connection.id == member.connection:
            member.returned += 1
            member.overslept_ns = max(member.overslept_ns, member.silent_ns)
        member.left_ns = member.silent_ns = 0

    def _active(self, exchange: Exchange, request: Body) -> None:
        _, member = self._of(exchange, request, "classic", make=False)
        if member is not None:
            member.last_ns = place_of(exchange)[1]
            member.has_committed = member.has_committed or exchange.api_key == OFFSET_COMMIT

    def _heartbeat(self, exchange: Exchange, request: Body, answer: Body) -> None:
        group, member = self._of(exchange, request, HEARTBEAT_PROTOCOLS[exchange.api_key])
        if group is None or member is None:
            return
        asked, epoch = request.get("member_epoch"), answer.get("member_epoch")
        interval_ms = max(field_number(request.get("rebalance_timeout_ms")), 0)
        member.interval_ns = interval_ms * MILLISECOND_NS or member.interval_ns
        if isinstance(asked, int) and asked < 0:
            member.leave(request_place(exchange)[1], exchange.connection.id)
            group.present.discard(client_of(exchange))
            return
        if asked == 0:
            self._joins(exchange, member)
        if isinstance(epoch, int):
            self._generation(group, max(epoch, group.newest), exchange)
        member.last_ns = place_of(exchange)[1]

    def _failed(self, exchange: Exchange, request: Body) -> None:
        names = [name for _, _, name, _ in exchange.errors if name in REMOVED]
        if not names:
            return
        client, group_id = client_of(exchange), group_of(request)
        group = self._groups.get(group_id)
        was_member = group is not None and client in group.members
        is_outside = exchange.api_key == OFFSET_COMMIT and not request.get("member_id") and not was_member
        case = (self._outsiders if is_outside else self._removed).case(client, group_id)
        case.add(*place_of(exchange))
        case.note("errors", dict.fromkeys(names))
        if is_outside:
            case.note("topics", [self.context.topic_of(one) for one in request.get("topics") or ()])
            return
        case.note("apis", [exchange.api])
        case.note("brokers", [exchange.connection.broker])
        _, member = self._of(exchange, request, HEARTBEAT_PROTOCOLS.get(exchange.api_key, "classic"))
        if member is not None:
            if member.left_ns and member.connection == exchange.connection.id:
                self._came_back(exchange, member)
            elif not member.left_ns and not _BEHIND.issuperset(names):
                member.removed += 1
            member.errors.update(dict.fromkeys(names))

    def failure(self, exchange: Exchange) -> None:
        """Other APIs with members: TxnOffsetCommit, OffsetFetch."""
        if exchange.api_key in _APIS or not any(name in REMOVED for _, _, name, _ in exchange.errors):
            return
        request = request_body(exchange)
        if request and request.get("group_id"):
            self._failed(exchange, request)

    def _of(
        self, exchange: Exchange, request: Body, protocol: str, *, make: bool = True
    ) -> tuple[Group | None, Member | None]:
        group_id = group_of(request)
        group = self._groups.get(group_id)
        if group is None:
            if not make or not self.context.has_room(self._groups, MAX_SUBJECTS, group_id, entries=12):
                return None, None
            group = self._groups[group_id] = Group(protocol, self.context.case())
        client = client_of(exchange)
        member = group.members.get(client)
        room = make and self._members < MAX_MEMBERS
        if member is None and room and self.context.budget.admit(8 * ENTRY_BYTES + text_bytes(client)):
            member = group.members[client] = Member()
            self._members += 1
        if member is not None:
            member.vanished_ns = 0
            group.present.add(client)
            group.most = max(group.most, len(group.present))
        return group, member

    def _generation(self, group: Group, generation: int, exchange: Exchange) -> None:
        if generation != group.newest:
            group.newest = generation
            group.case.add(*request_place(exchange))

    def observations(self) -> Iterator[Observation]:
        for group_id, group in self._groups.items():
            if group.case.count > 1:
                yield _generations(group_id, group)
        for group_id, _, case in self._long:
            numbers = {"longest_ns": case.most, "waited_for": _waited_for(self._groups.get(group_id), case)}
            yield observation_of("long_rebalance", case, {f"group:{group_id}"}, numbers)
        for client, group_id, case in self._outsiders:
            yield observation_of("commit_from_outside", case, {f"client:{client}", f"group:{group_id}"})
        for client, group_id, case in self._removed:
            of = self._groups.get(group_id)
            member = of.members.get(client) if of is not None else None
            history = _history(client, member) if member is not None else ""
            about = {f"client:{client}", f"group:{group_id}"}
            yield observation_of("member_removed", case, about, {"history": history})


def _generations(group_id: str, group: Group) -> Observation:
    case = group.case
    named = sorted(group.members.items(), key=lambda one: -(one[1].left + one[1].removed + one[1].joined))
    clients, members = [client for client, _ in named[:100]], [member for _, member in named]
    punctual = [(client, one) for client, one in named if not one.overslept_ns]
    numbers = {
        "protocol": group.protocol,
        "generations": case.count,
        "largest": group.largest,
        "most": max(group.most, group.largest),
        "joins": sum(one.joined for one in members),
        "leaves": sum(one.left for one in members),
        "removals": sum(one.removed for one in members),
        "returns": sum(max(one.joined - 1, 0) for one in members),
        "restarts": sum(one.left for _, one in punctual if not one.returned),
        "worked": sum(one.worked for one in members),
        "overslept": [(client, one.overslept_ns, one.interval_ns) for client, one in named if one.overslept_ns],
        "returned": [
            (client, one.returned, one.interval_ns) for client, one in punctual if one.returned and one.interval_ns
        ],
        "removed": [(client, one.removed) for client, one in punctual if one.removed],
        "again": [(client, one.again) for client, one in named if one.again],
        "protocol_type": group.protocol_type,
        "reasons": list(dict.fromkeys(reason for one in members for reason in one.reasons)),
        "histories": [text for client, one in named[:MAX_LISTED] if (text := _history(client, one))],
        "members": clients,
    }
    about = {f"group:{group_id}", *(f"client:{client}" for client in clients)}
    circles = any(one.again >= OFTEN_AGAIN for one in members)  # whoever goes round in a circle does no work
    return observation_of("generations", case, about, numbers, Harm(seconds_down=case.seconds) if circles else HARMLESS)


def _waited_for(group: Group | None, case: Case) -> str:
    """The members that joined long rebalances last, for which the others waited."""
    latecomers: dict[str, None] = {}
    for generation in case.noted("generations") if group is not None else ():
        last = group.joins.get(int(generation)) if group is not None else None
        if group is None or last is None or last.waited_ns >= SOON_NS:
            continue
        interval_ns = group.members[last.client].interval_ns if last.client in group.members else 0
        interval = f" (its max.poll.interval.ms is {duration(interval_ns)})" if interval_ns else ""
        latecomers[f"{last.client}, which joined last{interval}"] = None
    if latecomers:
        return f"; it waited for {listed(list(latecomers), 3)}"
    return "; it waited for a member that did not come back in time" if group is not None and group.joins else ""


def _history(client: str, member: Member) -> str:
    """What a member did, in a sentence."""
    parts = []
    if member.joined:
        parts.append(f"joined {times(member.joined)}")
    if member.again:
        parts.append(f"joined the generation that it was in {times(member.again)} more")
    if member.left:
        how = f"left {times(member.left)}"
        if member.overslept_ns:
            how += f", {duration(member.overslept_ns)} after it last was heard of (max.poll.interval.ms is "
            how += f"{duration(member.interval_ns)})"
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
