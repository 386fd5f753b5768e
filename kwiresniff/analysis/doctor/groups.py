"""Groups that rebalance again and again, in all four protocols, with what each member did.

Classic groups have generations (KIP-62, KIP-345, KIP-800 for the reasons that members give), consumer, share and
streams groups member epochs (KIP-848, KIP-932, KIP-1071). Where nobody gives a reason, the order of events does.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_meanings import MEANINGS
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, clipped
from kwiresniff.analysis.doctor.group_members import REBALANCES, Group, Member, history, is_storm, waited_for
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, found
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import (
    HEARTBEAT,
    HEARTBEAT_PROTOCOLS,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.model import Body, Connection, Exchange
from kwiresniff.results.findings import Finding, scope_of

#: How long one join may take.
LONG_REBALANCE_NS = 10_000_000_000
#: Members of a group that are kept apart, all groups together, and those named in a finding.
MAX_MEMBERS = 10_000
MAX_LISTED = 10
#: Once may be the end of a membership that a restart left behind.
OFTEN_REMOVED = 2
#: Codes by which a member learns that the group goes on without it.
REMOVED = frozenset({"UNKNOWN_MEMBER_ID", "ILLEGAL_GENERATION", "FENCED_MEMBER_EPOCH", "STALE_MEMBER_EPOCH"})


#: What makes rebalances rarer or shorter, by the protocol of the group.
_HELPS = {
    "classic": " Static membership (group.instance.id) or the consumer protocol (group.protocol=consumer) help.",
    "consumer": " Static membership (group.instance.id) helps members that are restarted.",
}


class GroupRule(Rule):
    """Rebalance storms and long rebalances."""

    codes = ("rebalances", "long_rebalance", "member_removed", "commit_from_outside")
    apis = frozenset({OFFSET_COMMIT, JOIN_GROUP, LEAVE_GROUP, SYNC_GROUP, HEARTBEAT, *HEARTBEAT_PROTOCOLS})
    judges = REMOVED

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
        self._generation(group, generation, exchange)
        latency_ns = exchange.latency_ns or 0
        group.join(generation, client_of(exchange), _request_place(exchange)[1], latency_ns)
        if latency_ns >= LONG_REBALANCE_NS:
            case = self._long.case(_group_id(request))
            case.add(*_request_place(exchange), latency_ns)
            case.note("clients", [client_of(exchange)])
            case.note("generations", [str(generation)])
        if member is None:
            return
        # A member that is in the group joins again with its id at every rebalance; with a new id it is new.
        member_id = field_text(answer.get("member_id"))
        if group.epochs.get(member_id) is None:
            member.joined += 1
            self._came_back(exchange, member, _request_place(exchange)[1])
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
        ns = _request_place(exchange)[1]
        member.left += 1
        member.leaving_id, member.left_ns, member.connection = member_id, ns, exchange.connection.id
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

    def _heartbeat(self, exchange: Exchange, request: Body, answer: Body) -> None:
        group, member = self._of(exchange, request, HEARTBEAT_PROTOCOLS[exchange.api_key])
        if group is None or member is None:
            return
        asked, epoch = request.get("member_epoch"), answer.get("member_epoch")
        member.interval_ms = max(field_number(request.get("rebalance_timeout_ms")), 0) or member.interval_ms
        if isinstance(asked, int) and asked < 0:
            member.left += 1
            member.left_ns, member.connection = _request_place(exchange)[1], exchange.connection.id
            return
        if asked == 0:
            member.joined += 1
            self._came_back(exchange, member, _request_place(exchange)[1])
            self._follow(exchange, member)
        if isinstance(epoch, int):
            self._generation(group, max(epoch, group.newest), exchange)
        member.last_ns = place_of(exchange)[1]

    def _failed(self, exchange: Exchange, request: Body) -> None:
        names = [name for _, _, name, _ in exchange.errors if name in REMOVED]
        if not names:
            return
        if exchange.api_key == OFFSET_COMMIT and not request.get("member_id"):
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
        if exchange.api_key in self.apis or not any(name in REMOVED for _, _, name, _ in exchange.errors):
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
            size = 12 * ENTRY_BYTES + text_bytes(group_id)
            if not make or len(self._groups) >= MAX_SUBJECTS or not self.context.budget.admit(size):
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
        return group, member

    def _generation(self, group: Group, generation: int, exchange: Exchange) -> None:
        if generation != group.newest:
            group.newest = generation
            group.case.add(*_request_place(exchange))

    # -- what is said -------------------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """By group."""
        storms: set[str] = set()
        for group_id, group in self._groups.items():
            if is_storm(group):
                storms.add(group_id)
                yield self._storm(group_id, group)
        for group_id, _, case in self._long:
            yield found(
                "long_rebalance",
                "warning",
                f"group {group_id}",
                f"a rebalance took {duration(case.most)}{waited_for(self._groups.get(group_id), case)}",
                "The whole group stands still until its slowest member polls again, or max.poll.interval.ms is over: "
                "look at what that member does between two polls, or lower max.poll.records or the interval.",
                case,
                {"longest_ns": case.most},
                groups=[group_id],
            )
        for client, group_id, case in self._outsiders:
            yield found(
                "commit_from_outside",
                "warning",
                client,
                f"{listed(case.noted('errors'))}: commits offsets for group {group_id}, which has members, without "
                f"being one of them, {times(case.count)}: none of it is stored",
                "Offsets of a group can be set from outside while it has no members: stop them first, or wait until "
                "their sessions are over. A consumer that assigns its partitions itself needs a group.id of its own.",
                case,
                {"error": case.noted("errors")[0], "group": group_id},
                clients=[client],
                groups=[group_id],
            )
        for client, group_id, case in self._removed:
            if group_id not in storms:
                yield self._removal(client, group_id, case)

    def _storm(self, group_id: str, group: Group) -> Finding:
        case = group.case
        members = sorted(group.members.items(), key=lambda one: -(one[1].left + one[1].removed + one[1].joined))
        details = [text for client, member in members[:MAX_LISTED] if (text := history(client, member))]
        joined = sum(member.joined for member in group.members.values())
        left = sum(member.left for member in group.members.values())
        removed = sum(member.removed for member in group.members.values())
        overslept = [(client, member) for client, member in members if member.overslept_ns]
        causes = [f"{counted(joined, 'join')}, {counted(left, 'leave')}" + (f", {removed} removed" if removed else "")]
        causes += [
            f"{client} was longer between polls ({duration(member.overslept_ns)}) than max.poll.interval.ms "
            f"({duration(member.interval_ms * 1_000_000)})"
            for client, member in overslept[:3]
        ]
        causes += [
            f"{client} left and came back on the same connection {times(member.returned)}, as one does that is longer "
            f"between polls than max.poll.interval.ms ({duration(member.interval_ms * 1_000_000)})"
            for client, member in members
            if member.returned and member.interval_ms and not member.overslept_ns
        ][:3]
        causes += [
            f"{client} was removed {times(member.removed)}, as one is that sends no heartbeat for as long as its "
            "session lasts (a process that stands still, a network that is cut)"
            for client, member in members
            if member.removed >= OFTEN_REMOVED and not member.overslept_ns
        ][:3]
        reasons = list(dict.fromkeys(reason for _, member in members for reason in member.reasons))
        word = "generations" if group.protocol == "classic" else "epochs"
        kind = "" if group.protocol == "classic" else f"{group.protocol} "
        return found(
            "rebalances",
            "warning",
            f"group {group_id}",
            f"the {kind}group rebalances again and again: {case.count} {word} in "
            f"{duration(case.last_ns - case.first_ns)}; {'; '.join(causes)}",
            "Look at who comes and goes, and why (kwiresniff groups): members that are restarted, polls longer than "
            f"max.poll.interval.ms.{_HELPS.get(group.protocol, '')}",
            case,
            {
                "protocol": group.protocol,
                "generations": case.count,
                "joins": joined,
                "leaves": left,
                "removals": removed,
                "reasons": reasons or details[:MAX_LISTED],
                "members": [client for client, _ in members[:100]],
            },
            details=details,
            clients=[client for client, _ in members[:100]],
            groups=[group_id],
            explains={
                "long_rebalance": scope_of("group", [group_id]),
                "member_removed": scope_of("group", [group_id]),
                "unanswered": scope_of("group", [group_id]),
            },
            rank=INCIDENT,
        )

    def _removal(self, client: str, group_id: str, case: Case) -> Finding:
        errors = case.noted("errors")
        group = self._groups.get(group_id)
        member = group.members.get(client) if group is not None else None
        what_it_did = history(client, member) if member is not None else ""
        return found(
            "member_removed",
            "info" if case.count <= REBALANCES else "warning",
            client,
            f"{listed(errors)}: acts on a membership that its group has given up, {times(case.count)}",
            MEANINGS["UNKNOWN_MEMBER_ID"].remedy,
            case,
            {"error": errors[0] if errors else "", "concerns": [*case.noted("apis"), f"group {group_id}"]},
            details=[what_it_did] if what_it_did else [],
            clients=[client],
            groups=[group_id],
        )


def _group_id(request: Body) -> str:
    return clipped(field_text(request.get("group_id")))


def _request_place(exchange: Exchange) -> tuple[int, int]:
    assert exchange.request is not None
    return exchange.request.first_packet, exchange.request.first_ns
