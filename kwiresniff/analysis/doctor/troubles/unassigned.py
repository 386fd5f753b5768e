"""Groups that assign no partition to any member, and clients that never join a group whose coordinator they asked for.

The subscription mostly matches no topic: Java's clients join with an empty list, or with the pattern (KIP-848);
librdkafka does not join. Sources: SyncGroup of the leader of a classic group; heartbeats with a pattern;
FindCoordinator, and the connection to the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kwiresniff.analysis.doctor.assignments import opened_assignment, partitions_of
from kwiresniff.analysis.doctor.bodies import group_of, request_body, response_body
from kwiresniff.analysis.doctor.cause import Cause, Explanation, symptoms
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_NAMES, Case, client_of, client_text, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.subscriptions import subscribed_topics
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import (
    API_VERSIONS,
    CONSUMER_GROUP_DESCRIBE,
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_GROUPS,
    DESCRIBE_GROUPS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    LIST_GROUPS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_DELETE,
    OFFSET_FETCH,
    SHARE_GROUP_DESCRIBE,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_DESCRIBE,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.model import Connection, Exchange

#: A consumer with a subscription has joined in less time, and its group has assigned something.
LONG_NS: Final = 10_000_000_000
#: Clients and groups that are remembered.
MAX_CLIENTS = 2_000
MAX_GROUPS = 2_000
MAX_BROKERS = 10
#: APIs that do not concern a group and read nothing.
_OTHERS: Final = frozenset({API_VERSIONS, METADATA, FIND_COORDINATOR})
#: APIs that concern a group.
_OF_GROUPS: Final = frozenset({
    JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, OFFSET_FETCH, OFFSET_COMMIT, OFFSET_DELETE, TXN_OFFSET_COMMIT,
    CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT, DESCRIBE_GROUPS, LIST_GROUPS,
    DELETE_GROUPS, CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE,
})  # fmt: skip
#: What members send of their membership.
_OF_MEMBERS: Final = frozenset({JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, CONSUMER_GROUP_HEARTBEAT})
#: APIs at which a client is followed from.
_FIRST: Final = frozenset({FIND_COORDINATOR, JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT})
_GROUP: Final = 0


@dataclass(slots=True, eq=False)
class _Client:
    """A client that asked for the coordinator of a group, where that is, and who has answered it since."""

    case: Case
    group: str = ""
    coordinator: str = ""
    answered: set[str] = field(default_factory=set)
    does_more: bool = False


@dataclass(slots=True, eq=False)
class _Group:
    """The clients, topics and pattern of a group, and since when and until when it assigned nothing."""

    clients: list[str] = field(default_factory=list)
    topics: set[str] = field(default_factory=set)
    pattern: str = ""
    since_ns: int = 0
    last_ns: int = 0
    packet: int = 0

    def add_client(self, client: str) -> None:
        if client not in self.clients and len(self.clients) < MAX_NAMES:
            self.clients.append(client)


class UnassignedGroups(Observer):
    """``nothing_assigned``: for 10 s or more a group assigned no partition to any of its members; ``never_joined``: for
    10 s or more a client that asked for the coordinator of a group was connected to it and sent nothing that concerns a
    group, nor a Fetch.

    Numbers: ``group``, ``topics`` that members name, the ``pattern`` where the coordinator matches it, ``longest_ns``.
    """

    kinds = ("nothing_assigned", "never_joined")
    apis = _OTHERS | _OF_GROUPS | {FETCH}

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Client] = context.subjects(
            lambda: _Client(context.case()), MAX_BROKERS + 4, MAX_CLIENTS
        )
        self._groups: Subjects[str, _Group] = context.subjects(_Group, 4 * MAX_NAMES, MAX_GROUPS)

    def exchange(self, exchange: Exchange) -> None:
        api_key = exchange.api_key
        if not (self._clients or self._groups or api_key in _FIRST):
            return
        client = client_of(exchange)
        known = self._clients.get(client)
        if api_key == FIND_COORDINATOR:
            self._find(client, exchange)
        elif known is not None and not known.does_more:
            known.does_more = api_key not in _OTHERS
        if known is not None and not known.does_more and exchange.response is not None:
            known.case.add(*place_of(exchange))
            if len(known.answered) < MAX_BROKERS:
                known.answered.add(exchange.connection.broker)
        if api_key in _OF_MEMBERS:
            self._group(exchange)

    def connection(self, connection: Connection) -> None:
        known = self._clients.get(client_text(connection.client_id, connection.client)) if self._clients else None
        if known is not None and connection.broker == known.coordinator:
            until_ns = connection.closed_ns or self.context.end_ns
            known.case.add(connection.first_packet, connection.first_ns, until_ns=until_ns)

    def _find(self, client: str, exchange: Exchange) -> None:
        asked, told = request_body(exchange), response_body(exchange)
        if not asked or not told or exchange.errors or field_number(asked.get("key_type")) != _GROUP:
            return
        keys = asked.get("coordinator_keys") or [asked.get("key")]
        places = told.get("coordinators") or [told]
        known = self._clients.of(client)
        if known is not None and len(keys) == len(places) == 1 and not known.group:
            known.group = clipped(field_text(keys[0]))
            known.coordinator = f"{field_text(places[0].get('host'))}:{field_number(places[0].get('port'))}"

    def _group(self, exchange: Exchange) -> None:
        request = request_body(exchange)
        if not request or exchange.response is None or exchange.errors:
            return
        group_id, (packet, ns) = group_of(request), place_of(exchange)
        if exchange.api_key == CONSUMER_GROUP_HEARTBEAT:
            self._beat(exchange, group_id, request, (packet, ns))
            return
        joins = exchange.api_key == JOIN_GROUP and request.get("protocol_type") == "consumer"
        known = self._groups.of(group_id) if joins else self._groups.get(group_id)
        if known is None:
            return
        if joins:
            if len(known.topics) < MAX_NAMES:
                known.topics |= subscribed_topics(JOIN_GROUP, request)
            known.add_client(client_of(exchange))
        if exchange.api_key == SYNC_GROUP and request.get("assignments"):
            given = [opened_assignment(one) for one in request["assignments"]]
            known.since_ns = ns if not any(one is None or partitions_of(one) for one in given) else 0
            known.last_ns, known.packet = ns, packet
        elif known.since_ns and exchange.api_key in (HEARTBEAT, LEAVE_GROUP):
            known.last_ns = ns

    def _beat(self, exchange: Exchange, group_id: str, request: dict[str, Any], place: tuple[int, int]) -> None:
        """Takes in a heartbeat of a member whose coordinator matches the pattern (KIP-848)."""
        pattern, known = field_text(request.get("subscribed_topic_regex")), self._groups.get(group_id)
        if pattern and not request.get("subscribed_topic_names") and known is None:
            known = self._groups.of(group_id)
            if known is not None:
                known.pattern, known.packet, known.since_ns = clipped(pattern), *place
        if known is None or not known.pattern:
            return
        known.last_ns = place[1]
        known.add_client(client_of(exchange))
        assignment = response_body(exchange).get("assignment")
        if isinstance(assignment, dict) and assignment.get("topic_partitions"):
            known.since_ns = 0

    def observations(self) -> Iterator[Observation]:
        for group_id, group in self._groups.items():
            lasted_ns = group.last_ns - group.since_ns
            if not group.since_ns or lasted_ns < LONG_NS:
                continue
            case = self.context.case()
            case.note("clients", group.clients)
            case.add(group.packet, group.since_ns, lasted_ns, until_ns=group.last_ns)
            about = [f"topic:{topic}" for topic in group.topics]
            topics = sorted(group.topics)[:100]
            yield _lasting("nothing_assigned", case, group_id, about, lasted_ns, topics, group.pattern)
        for client, one in self._clients.items():
            lasted_ns = one.case.last_ns - one.case.first_ns
            if one.does_more or not one.group or one.coordinator not in one.answered or lasted_ns < LONG_NS:
                continue
            yield _lasting("never_joined", one.case, one.group, [f"client:{client}"], lasted_ns)


def _lasting(
    kind: str, case: Case, group: str, about: list[str], ns: int, topics: Sequence[str] = (), pattern: str = ""
) -> Observation:
    numbers = {"group": group, "topics": list(topics), "pattern": pattern, "longest_ns": ns}
    return observation_of(kind, case, [f"group:{group}", *about], numbers)


class NothingToRead(Cause):
    """`nothing_assigned` (warning): a group gives no partition to any of its members for 10 s and more, or a client
    that asked for its group's coordinator never joins: there is nothing that they subscribe to. Seen must be the
    assignment of the leader of a classic group, heartbeats with a pattern, or that the client reached the coordinator
    and sent nothing that concerns the group, nor a Fetch. A pattern that matches no topic, topics that do not exist
    yet, and rights that hide them look the same. Where Metadata says that a topic is missing,
    `unknown_topic_or_partition` is told.
    """

    codes = ("nothing_assigned",)
    explains = ("nothing_assigned", "never_joined")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for one in observed.of("nothing_assigned", "never_joined"):
            numbers, clients = one.numbers, one.named("client")
            lasted, topics = duration(numbers["longest_ns"]), numbers["topics"]
            if topics and not any(name in topics for _, name in self.context.existing):
                continue  # that they are missing is told
            if one.kind == "never_joined":
                title = f"{listed(clients)} looked for its coordinator, reached it, and has not joined for {lasted}"
            else:
                title = f"none of its members is assigned a partition, for {lasted} ({listed(clients)})"
            pattern = numbers["pattern"]
            title += (
                f": they subscribe to {listed(topics)}"
                if topics
                else f": the subscription{f' ({pattern})' if pattern else ''} matches no topic"
            )
            yield Explanation(
                code="nothing_assigned",
                subject=f"group {numbers['group']}",
                title=title,
                remedy=f"See whether {counted(len(topics), 'topic')} "
                f"{'has' if len(topics) == 1 else 'have'} partitions, and whether the user may describe them."
                if topics
                else "Compare the pattern with the names of the topics (kafka-topics --list), and see whether the user "
                "may describe them: topics that it may not see match no pattern.",
                explained=(one,),
                doubt="Members that are not in the capture may have all the partitions." if pattern else "",
                numbers=dict(numbers),
                severity="warning",
                explains=symptoms("client", clients, "metadata_storm"),
            )
