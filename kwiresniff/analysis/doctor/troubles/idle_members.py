"""Members of a group without partitions, while others have some: more members than partitions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kwiresniff.analysis.doctor.assignments import assignment_in, partitions_of
from kwiresniff.analysis.doctor.bodies import group_of, is_answered, request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import counted, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CONSUMER_GROUP_HEARTBEAT, HEARTBEAT, JOIN_GROUP, SYNC_GROUP
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: Members that are remembered.
MAX_MEMBERS = 10_000
#: A member without partitions for so long is not just being given some.
LASTING_NS: Final = 5_000_000_000


@dataclass(slots=True, eq=False)
class _Member:
    """A member: how many partitions it was assigned last, when, and how long it had none."""

    client: str
    partitions: int = 0
    since_ns: int = 0
    seen_ns: int = 0
    packet: int = 0
    idle_ns: int = 0


class IdleMembers(Observer):
    """``idle_members``: members of a consumer group have no partitions while others have some.

    Numbers: ``idle``, ``members``, ``partitions``, ``longest_ns``, and the ``assignor`` of a classic group.
    """

    kinds = ("idle_members",)
    apis = frozenset({JOIN_GROUP, SYNC_GROUP, HEARTBEAT, CONSUMER_GROUP_HEARTBEAT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._groups: dict[str, dict[str, _Member]] = {}
        self._assignors: dict[str, str] = {}
        self._count = 0

    def exchange(self, exchange: Exchange) -> None:
        request, answer = request_body(exchange), response_body(exchange)
        if not request or not is_answered(exchange) or exchange.errors:
            return
        packet, ns = place_of(exchange)
        group_id = group_of(request)
        if exchange.api_key == JOIN_GROUP:
            # The leader is told who is in the new generation.
            told = {clipped(field_text(one.get("member_id"))) for one in answer.get("members") or ()}
            if told:
                members = self._groups.get(group_id, {})
                self._groups[group_id] = {name: one for name, one in members.items() if name in told}
                self._assignors[group_id] = clipped(field_text(answer.get("protocol_name")))
            return
        assigned = assignment_in(exchange.api_key, answer)
        partitions = None if assigned is None else partitions_of(assigned)
        member_id = clipped(field_text(answer.get("member_id")) or field_text(request.get("member_id")))
        if partitions is None and exchange.api_key == SYNC_GROUP:  # what it has now is not known
            self._groups.get(group_id, {}).pop(member_id, None)
        known = self._groups.get(group_id, {}).get(member_id)
        if known is None and partitions is not None:
            known = self._new(group_id, member_id, client_of(exchange))
        if known is None:
            return
        known.seen_ns = ns
        if partitions is not None:
            known.partitions, known.since_ns, known.packet = partitions, ns, packet
        elif not known.partitions and known.since_ns:
            known.idle_ns = max(known.idle_ns, ns - known.since_ns)

    def _new(self, group_id: str, member_id: str, client: str) -> _Member | None:
        if self._count >= MAX_MEMBERS or not self.context.budget.admit(
            4 * ENTRY_BYTES + text_bytes(group_id, member_id, client)
        ):
            return None
        self._count += 1
        return self._groups.setdefault(group_id, {}).setdefault(member_id, _Member(client))

    def observations(self) -> Iterator[Observation]:
        for group_id, members in self._groups.items():
            idle = [one for one in members.values() if one.idle_ns >= LASTING_NS and not one.partitions]
            busy = [one for one in members.values() if one.partitions]
            if not idle or not busy:
                continue
            case = self.context.case()
            for one in idle:
                case.add(one.packet, one.since_ns or one.seen_ns, one.idle_ns, until_ns=one.seen_ns)
            numbers = {
                "group": group_id,
                "idle": len(idle),
                "members": len(idle) + len(busy),
                "partitions": sum(one.partitions for one in busy),
                "longest_ns": case.most,
                "assignor": self._assignors.get(group_id, ""),
            }
            about = {f"group:{group_id}", *(f"client:{one.client}" for one in idle)}
            yield observation_of("idle_members", case, about, numbers)


@cause("idle_members", "uneven_assignment", explains=("idle_members",))
def too_many_members(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`idle_members` (info): a group has more members than partitions, and those without any have nothing to do. Seen
    must be an assignment without partitions that lasts for 5 s. Assignors that add data of their own (Kafka Streams:
    standby tasks) are left out. They may be kept in reserve on purpose. `uneven_assignment` (warning where a member
    falls behind meanwhile, which is a symptom, else info): there are partitions enough for all members for 5 s and
    more, and some have none: the `range` assignor deals out each topic by itself, so that topics with fewer partitions
    than there are members all go to the same ones. Seen must be that this is the group's assignor; members that
    subscribe to other topics look the same.
    """
    numbers = one.numbers
    if numbers["members"] <= numbers["partitions"]:
        return _uneven(one, observed)
    return told(
        one,
        f"{numbers['idle']} of {numbers['members']} members have nothing to do: the group has "
        f"{counted(numbers['partitions'], 'partition')} for them ({listed(one.named('client'))})",
        "More members than partitions add no speed, only rebalances and requests: run as many as there "
        "are partitions, or add partitions where more are needed.",
        subject=f"group {numbers['group']}",
        doubt="They may be kept in reserve.",
        severity="info",
    )


def _uneven(one: Observation, observed: Observed) -> Explanation | None:
    numbers, group = one.numbers, scope_of("group", one.named("group"))
    if numbers["longest_ns"] < LASTING_NS or numbers["assignor"] != "range":
        return None
    late = observed.about(group, "lag_grows")
    return told(
        one,
        f"{numbers['idle']} of {numbers['members']} members have nothing to do ({listed(one.named('client'))}), though "
        f"there are {counted(numbers['partitions'], 'partition')}: the range assignor, which deals out each topic by "
        "itself, gives all of them to the others",
        "Set partition.assignment.strategy to cooperative-sticky or roundrobin, which deal out the partitions of all "
        "topics together, or group.protocol=consumer.",
        code="uneven_assignment",
        subject=f"group {numbers['group']}",
        supports=tuple(each.sentence for each in late),
        doubt="They may subscribe to other topics.",
        severity="warning" if late else "info",
        explains={"consumer_lag": group},
    )
