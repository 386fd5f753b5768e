"""Groups that rebalance, in all four protocols, with what each member did.

Classic groups have generations (KIP-62, KIP-345, KIP-800 for the reasons that members give), consumer, share and
streams groups member epochs (KIP-848, KIP-932, KIP-1071). Where nobody gives a reason, the order of events does.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import clock, duration, listed, times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import HEARTBEAT, HEARTBEAT_PROTOCOLS, JOIN_GROUP, LEAVE_GROUP, OFFSET_COMMIT, SYNC_GROUP
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.model import Body, Connection, Exchange

#: How long one join may take.
LONG_REBALANCE_NS = 10_000_000_000
#: Members of a group that are kept apart, all groups together, and those named in an observation.
MAX_MEMBERS = 10_000
MAX_LISTED = 10
#: Generations of a group of which the last member to join is remembered.
MAX_GENERATIONS = 20
#: The member for which a rebalance waited is answered so soon after it has joined.
SOON_NS = 5_000_000_000
#: A request that is sent again joins a generation twice; a member that does so more often goes round in a circle.
OFTEN_AGAIN: Final = 10
#: Codes by which a member learns that the group goes on without it.
REMOVED = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"})
_APIS: Final = frozenset({OFFSET_COMMIT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP, HEARTBEAT, *HEARTBEAT_PROTOCOLS})
#: Reasons that members give for what the protocol has them do.
ORDINARY = ("need to re-join with the given member-id", "group is already rebalancing", "rebalance failed due to")


@dataclass(slots=True, eq=False)
class Member:
    """A client in a group: members that are restarted get new ids, so they are known by the client's. ``again`` are
    its joins of the generation that it was in already, ``worked`` how often it left after it had committed."""

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
    interval_ms: int = 0
    left_ns: int = 0
    last_ns: int = 0
    connection: int = 0
    vanished_ns: int = 0
    reasons: dict[str, None] = field(default_factory=dict)
    errors: dict[str, None] = field(default_factory=dict)

    def leave(self) -> None:
        """It left in order."""
        self.left += 1
        self.worked += self.has_committed
        self.has_committed = False


@dataclass(slots=True, eq=False)
class LastJoin:
    """The last member to join a rebalance: when it asked, and how long it waited."""

    client: str
    requested_ns: int
    waited_ns: int


@dataclass(slots=True, eq=False)
class Group:
    """One group: its members, and who joined its newest generations last. ``largest`` is how many it had at a time as
    its leaders were told, ``most`` as many of those seen were in it at a time, and ``present`` are those that are."""

    protocol: str
    case: Case
    protocol_type: str = ""
    newest: int = -1
    largest: int = 0
    most: int = 0
    present: set[str] = field(default_factory=set)
    members: dict[str, Member] = field(default_factory=dict)
    epochs: dict[str, int] = field(default_factory=dict)
    joins: dict[int, LastJoin] = field(default_factory=dict)

    def join(self, generation: int, client: str, requested_ns: int, waited_ns: int) -> None:
        """Remembers the last member to join a generation, of the newest ``MAX_GENERATIONS``."""
        known = self.joins.get(generation)
        if known is None or requested_ns > known.requested_ns:
            self.joins[generation] = LastJoin(client, requested_ns, waited_ns)
        if len(self.joins) > MAX_GENERATIONS:
            del self.joins[next(iter(self.joins))]


class Rebalances(Observer):
    """``generations``: those of a group while the capture looked, with what each client in it did; ``long_rebalance``:
    a join took 10 s or more; ``member_removed``: a client learned that its group goes on without it;
    ``commit_from_outside``: a client that is no member commits for a group that has members.

    Numbers of the first: ``generations``, ``joins``, ``leaves``, ``removals``, ``returns`` of members that were there
    before, ``restarts`` (departures without a reason that shows), ``worked`` (departures after a commit), ``largest``
    as its leaders were told, ``most`` members seen at a time, the ``protocol_type``, and lists of those that
    ``overslept``, ``returned``, were ``removed``, or joined ``again``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("generations", "long_rebalance", "member_removed", "commit_from_outside")
    apis: ClassVar[frozenset[int] | None] = _APIS
    judges: ClassVar[frozenset[str]] = REMOVED

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._groups: dict[str, Group] = {}
        self._long = context.tally()
        self._removed = context.tally()
        self._outsiders = context.tally()
        self._members = 0
        self._on: dict[int, Member] = {}

    # -- what happens -------------------------------------------------------------------------------------------

    def exchange(self, exchange: Exchange) -> None:
        """Joins, leaves, heartbeats and commits."""
        request = exchange.request.body if exchange.request is not None else None
        answer = exchange.response.body if exchange.response is not None else None
        if not request or (answer is None and exchange.api_key != LEAVE_GROUP):
            return
        api_key = exchange.api_key
        if exchange.errors:
            self._failed(exchange, request)
        elif api_key == JOIN_GROUP:
            self._join(exchange, request, answer or {})
        elif api_key == LEAVE_GROUP:
            for one in request.get("members") or [request]:
                self._leave(exchange, request, field_text(one.get("member_id")), one.get("reason"))
        elif api_key in HEARTBEAT_PROTOCOLS:
            self._heartbeat(exchange, request, answer or {})
        elif api_key in (OFFSET_COMMIT, SYNC_GROUP):
            self._active(exchange, request)
        elif api_key == HEARTBEAT:
            self._of(exchange, request, "classic", make=False)

    def connection(self, connection: Connection) -> None:
        """A member whose connection its client closes without having left: it was killed, or its machine was."""
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
            case = self._long.case(_group_id(request))
            case.add(*request_place(exchange), latency_ns)
            case.note("clients", [client_of(exchange)])
            case.note("generations", [str(generation)])
        group.protocol_type = clipped(field_text(request.get("protocol_type"))) or group.protocol_type
        if member is None:
            return
        member.again += generation == member.generation
        member.generation = generation
        # A member that is in the group joins again with its id at every rebalance; with a new id it is new.
        member_id = field_text(answer.get("member_id"))
        if group.epochs.get(member_id) is None:
            member.joined += 1
            self._came_back(exchange, member, request_place(exchange)[1])
            self._follow(exchange, member)
            if len(group.epochs) < MAX_SUBJECTS:
                group.epochs[clipped(member_id)] = 0
        member.interval_ms = request.get("rebalance_timeout_ms", 0) or member.interval_ms
        if request.get("reason") and len(member.reasons) < 3:
            # Some end in a member id, each another one.
            member.reasons[field_text(request["reason"]).partition(":")[0][:200]] = None
        member.last_ns = place_of(exchange)[1]

    def _leave(self, exchange: Exchange, request: Body, member_id: str, reason: object) -> None:
        group, member = self._of(exchange, request, "classic")
        if group is None or member is None:
            return
        ns = request_place(exchange)[1]
        member.leave()
        group.present.discard(client_of(exchange))
        member.left_ns, member.connection = ns, exchange.connection.id
        if reason and len(member.reasons) < 3:
            member.reasons[field_text(reason).partition(":")[0][:200]] = None
        interval_ns = member.interval_ms * 1_000_000
        if interval_ns and member.last_ns and interval_ns <= ns - member.last_ns <= 2 * interval_ns + 5_000_000_000:
            member.silent_ns = ns - member.last_ns
        group.epochs.pop(clipped(member_id), None)

    def _came_back(self, exchange: Exchange, member: Member, ns: int) -> None:
        """A member that left and uses the group again on the same connection did not mean to leave."""
        if member.left_ns and exchange.connection.id == member.connection:
            member.returned += 1
            member.overslept_ns = max(member.overslept_ns, member.silent_ns)
        member.left_ns = member.silent_ns = 0

    def _follow(self, exchange: Exchange, member: Member) -> None:
        """Which connection a member's membership is on."""
        if len(self._on) < MAX_MEMBERS:
            self._on[exchange.connection.id] = member

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
        member.interval_ms = max(field_number(request.get("rebalance_timeout_ms")), 0) or member.interval_ms
        if isinstance(asked, int) and asked < 0:
            member.leave()
            group.present.discard(client_of(exchange))
            member.left_ns, member.connection = request_place(exchange)[1], exchange.connection.id
            return
        if asked == 0:
            member.joined += 1
            self._came_back(exchange, member, request_place(exchange)[1])
            self._follow(exchange, member)
        if isinstance(epoch, int):
            self._generation(group, max(epoch, group.newest), exchange)
        member.last_ns = place_of(exchange)[1]

    def _failed(self, exchange: Exchange, request: Body) -> None:
        names = [name for _, _, name, _ in exchange.errors if name in REMOVED]
        if not names:
            return
        group = self._groups.get(_group_id(request))
        was_member = group is not None and client_of(exchange) in group.members
        if exchange.api_key == OFFSET_COMMIT and not request.get("member_id") and not was_member:
            case = self._outsiders.case(client_of(exchange), _group_id(request))
            case.add(*place_of(exchange))
            case.note("errors", dict.fromkeys(names))
            case.note("topics", [self.context.topic_of(one) for one in request.get("topics") or ()])
            return
        protocol = HEARTBEAT_PROTOCOLS.get(exchange.api_key, "classic")
        _, member = self._of(exchange, request, protocol)
        client, group_id = client_of(exchange), _group_id(request)
        case = self._removed.case(client, group_id)
        case.add(*place_of(exchange))
        case.note("errors", dict.fromkeys(names))
        case.note("apis", [exchange.api])
        case.note("brokers", [exchange.connection.broker])
        if member is not None:
            if member.left_ns and member.connection == exchange.connection.id:
                self._came_back(exchange, member, place_of(exchange)[1])
            elif not member.left_ns:
                member.removed += 1
            member.errors.update(dict.fromkeys(names))

    def failure(self, exchange: Exchange) -> None:
        """Of other APIs that speak of members: TxnOffsetCommit, OffsetFetch."""
        if exchange.api_key in _APIS or not any(name in REMOVED for _, _, name, _ in exchange.errors):
            return
        request = exchange.request.body if exchange.request is not None else None
        if request and request.get("group_id"):
            self._failed(exchange, request)

    def _of(
        self, exchange: Exchange, request: Body, protocol: str, *, make: bool = True
    ) -> tuple[Group | None, Member | None]:
        group_id = _group_id(request)
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

    # -- what was seen --------------------------------------------------------------------------------------------

    def observations(self) -> Iterator[Observation]:
        """By group, and by client and group."""
        for group_id, group in self._groups.items():
            if group.case.count > 1:
                yield _generations(group_id, group)
        for group_id, _, case in self._long:
            waited = _waited_for(self._groups.get(group_id), case)
            yield observation_of(
                "long_rebalance",
                case,
                {f"group:{group_id}"},
                {"longest_ns": case.most, "waited_for": waited},
            )
        for client, group_id, case in self._outsiders:
            yield _told_off("commit_from_outside", client, group_id, case, "")
        for client, group_id, case in self._removed:
            of = self._groups.get(group_id)
            member = of.members.get(client) if of is not None else None
            yield _told_off("member_removed", client, group_id, case, _history(client, member) if member else "")


def _told_off(kind: str, client: str, group_id: str, case: Case, history: str) -> Observation:
    """A client whose requests are answered with errors that concern its membership."""
    errors = case.noted("errors")
    return observation_of(
        kind,
        case,
        {f"client:{client}", f"group:{group_id}"},
        {"errors": errors, "apis": case.noted("apis"), "history": history},
    )


def _generations(group_id: str, group: Group) -> Observation:
    """The generations of a group, and what its members did."""
    case = group.case
    members = sorted(group.members.items(), key=lambda one: -(one[1].left + one[1].removed + one[1].joined))
    return observation_of(
        "generations",
        case,
        {f"group:{group_id}", *(f"client:{client}" for client, _ in members[:100])},
        {
            "protocol": group.protocol,
            "generations": case.count,
            "largest": group.largest,
            "most": max(group.most, group.largest),
            "joins": sum(member.joined for _, member in members),
            "leaves": sum(member.left for _, member in members),
            "removals": sum(member.removed for _, member in members),
            "returns": sum(max(member.joined - 1, 0) for _, member in members),
            "restarts": sum(one.left for _, one in members if not one.overslept_ns and not one.returned),
            "worked": sum(member.worked for _, member in members),
            "overslept": [
                (client, member.overslept_ns, member.interval_ms * 1_000_000)
                for client, member in members
                if member.overslept_ns
            ],
            "returned": [
                (client, member.returned, member.interval_ms * 1_000_000)
                for client, member in members
                if member.returned and member.interval_ms and not member.overslept_ns
            ],
            "removed": [
                (client, member.removed) for client, member in members if member.removed and not member.overslept_ns
            ],
            "again": [(client, member.again) for client, member in members if member.again],
            "protocol_type": group.protocol_type,
            "reasons": list(dict.fromkeys(reason for _, member in members for reason in member.reasons)),
            "histories": [text for client, member in members[:MAX_LISTED] if (text := _history(client, member))],
            "members": [client for client, _ in members[:100]],
        },
        # Whoever goes round in a circle does no work.
        Harm(seconds_down=case.seconds) if any(member.again >= OFTEN_AGAIN for _, member in members) else HARMLESS,
    )


def _waited_for(group: Group | None, case: Case) -> str:
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


def _group_id(request: Body) -> str:
    return clipped(field_text(request.get("group_id")))
