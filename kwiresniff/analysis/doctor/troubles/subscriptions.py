"""Groups whose members have no subscribed topic in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kwiresniff.analysis.doctor.bodies import group_of, request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.troubles.rebalance_storms import is_storm
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP
from kwiresniff.base.body_members import DECODED
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange
from kwiresniff.results.findings import scope_of

#: Clients of a group whose subscriptions are remembered, and topics of each.
MAX_CLIENTS = 100
MAX_TOPICS = 20


@dataclass(slots=True, eq=False)
class _Subscriber:
    """A client of a group with its last subscription."""

    case: Case
    topics: frozenset[str] = frozenset()


class Subscriptions(Observer):
    """``subscriptions_differ``: members of a consumer group subscribe to topics of which they have none in common.

    Numbers: ``topics`` by client.
    """

    kinds = ("subscriptions_differ",)
    apis = frozenset({JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._groups: dict[str, dict[str, _Subscriber]] = {}

    def exchange(self, exchange: Exchange) -> None:
        request = request_body(exchange)
        if not request or exchange.errors:
            return
        topics = subscribed_topics(exchange.api_key, request)
        if not topics:
            return
        group_id, client = group_of(request), client_of(exchange)
        known = self._groups.get(group_id, {})
        one = known.get(client)
        if one is None:
            if not self.context.has_room(known, MAX_CLIENTS, group_id, client, *topics, entries=4):
                return
            one = self._groups.setdefault(group_id, {})[client] = _Subscriber(self.context.case())
        one.topics = topics
        one.case.add(*place_of(exchange))

    def observations(self) -> Iterator[Observation]:
        for group_id, clients in self._groups.items():
            kinds: dict[frozenset[str], list[str]] = {}
            for client, one in clients.items():
                kinds.setdefault(one.topics, []).append(client)
            if not any(topics.isdisjoint(other) for topics in kinds for other in kinds):
                continue
            case = self.context.case(one.case for one in clients.values())
            about = {f"group:{group_id}", *(f"client:{client}" for client in clients)}
            kinds_ = [{"clients": names, "topics": sorted(topics)} for topics, names in kinds.items()]
            yield observation_of("subscriptions_differ", case, about, {"group": group_id, "topics": kinds_})


def subscribed_topics(api_key: int, request: Body) -> frozenset[str]:
    """The topics that a member subscribes to; none where it is no consumer or does not repeat them."""
    if api_key == CONSUMER_GROUP_HEARTBEAT:
        names = request.get("subscribed_topic_names") or ()
    else:
        opened = [one.get(f"metadata{DECODED}") for one in request.get("protocols") or ()]
        data = [one.get("data") for one in opened if isinstance(one, dict)]
        names = [name for one in data if isinstance(one, dict) for name in one.get("topics") or ()]
    return frozenset([clipped(field_text(name)) for name in names[:MAX_TOPICS]])


@cause("shared_group", explains=("subscriptions_differ",))
def shared_group(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`shared_group` (info; warning where the group rebalances again and again): two applications have the same
    `group.id`: members subscribe to topics of which they have none in common. Each start and stop of one rebalances the
    other, its lag stands among theirs, and an assignor that expects equal subscriptions leaves partitions to nobody.
    A consumer that changes its subscription while others have not yet looks the same for a moment.
    """
    group, kinds = one.numbers["group"], one.numbers["topics"]
    said = [f"{listed(kind['clients'])} to {listed(kind['topics'])}" for kind in kinds]
    storms = [each for each in observed.about([f"group:{group}"], "generations") if is_storm(each)]
    return told(
        one,
        f"applications that have nothing in common share the group: {listed(said)}; each start and stop "
        "of one rebalances the others",
        f"Give each application a group.id of its own in place of {group}; set the offsets of the new "
        "group to those that were committed before it starts.",
        subject=f"group {group}",
        supports=tuple(each.sentence for each in storms),
        numbers={"group": group, "subscriptions": kinds},
        severity="warning" if storms else "info",
        explains={"rebalances": scope_of("group", [group])} if storms else {},
    )
