"""Groups that give no partition to anybody, and clients that never join the group whose coordinator they asked for.

In both cases there is mostly nothing to read: a pattern that matches no topic. Java's clients join with a list of
topics that is empty, or with the pattern (KIP-848); librdkafka does not join. Sources: what the leader of a classic
group assigns to all its members in SyncGroup; heartbeats with a pattern; FindCoordinator, with requests that concern a
group and the connection to the coordinator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.assignments import opened_assignment, partitions_of
from kwiresniff.analysis.doctor.cause import Cause, Explanation
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
from kwiresniff.results.findings import scope_of

#: A consumer that has subscribed to anything has joined long before, and its group has assigned it something.
LONG_NS: Final = 10_000_000_000
#: Clients and groups that are remembered.
MAX_CLIENTS = 2_000
MAX_GROUPS = 2_000
MAX_BROKERS = 10
#: What a client asks that does not concern a group and reads nothing.
_OTHERS: Final = frozenset({API_VERSIONS, METADATA, FIND_COORDINATOR})
#: What it asks of a group that it belongs to, reads for or looks at.
_OF_GROUPS: Final = frozenset({
    JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, OFFSET_FETCH, OFFSET_COMMIT, OFFSET_DELETE, TXN_OFFSET_COMMIT,
    CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT, DESCRIBE_GROUPS, LIST_GROUPS,
    DELETE_GROUPS, CONSUMER_GROUP_DESCRIBE, SHARE_GROUP_DESCRIBE, STREAMS_GROUP_DESCRIBE,
})  # fmt: skip
#: What is followed begins with one of these.
_FIRST: Final = frozenset({FIND_COORDINATOR, JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT})
_GROUP: Final = 0


@dataclass(slots=True, eq=False)
class _Client:
    """A client that asked for the coordinator of a group, where that is, and who answered it since."""

    case: Case
    group: str = ""
    coordinator: str = ""
    answered: set[str] = field(default_factory=set)
    does_more: bool = False


@dataclass(slots=True, eq=False)
class _Group:
    """Since when a group has assigned nothing, the topics or the pattern that its members name, how long it lasted."""

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
    """``nothing_assigned``: for 10 s and more a group assigned no partition to any of its members; ``never_joined``:
    for 10 s and more a client that asked for the coordinator of a group was connected to it and sent nothing that
    concerns a group, nor a Fetch: who assigns partitions to itself joins no group.

    Numbers: ``group``, ``topics`` that members name, the ``pattern`` where the coordinator matches it, ``longest_ns``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("nothing_assigned", "never_joined")
    apis: ClassVar[frozenset[int] | None] = _OTHERS | _OF_GROUPS | {FETCH}

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Client] = context.subjects(
            lambda: _Client(context.case()), MAX_BROKERS + 4, MAX_CLIENTS
        )
        self._groups: Subjects[str, _Group] = context.subjects(_Group, 4 * MAX_NAMES, MAX_GROUPS)

    def exchange(self, exchange: Exchange) -> None:
        """Follows clients that look for a coordinator, and what groups assign."""
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
        if api_key in (JOIN_GROUP, SYNC_GROUP, HEARTBEAT, LEAVE_GROUP, CONSUMER_GROUP_HEARTBEAT):
            self._group(exchange)

    def connection(self, connection: Connection) -> None:
        """One to a coordinator that has ended, or that the capture ended with."""
        known = self._clients.get(client_text(connection.client_id, connection.client)) if self._clients else None
        if known is not None and connection.broker == known.coordinator:
            until_ns = connection.closed_ns or self.context.end_ns
            known.case.add(connection.first_packet, connection.first_ns, until_ns=until_ns)

    def _find(self, client: str, exchange: Exchange) -> None:
        asked = exchange.request.body if exchange.request is not None else None
        told = exchange.response.body if exchange.response is not None else None
        if not asked or not told or exchange.errors or field_number(asked.get("key_type")) != _GROUP:
            return
        keys = asked.get("coordinator_keys") or [asked.get("key")]
        places = told.get("coordinators") or [told]
        known = self._clients.of(client)
        if known is not None and len(keys) == len(places) == 1 and not known.group:
            known.group = clipped(field_text(keys[0]))
            known.coordinator = f"{field_text(places[0].get('host'))}:{field_number(places[0].get('port'))}"

    def _group(self, exchange: Exchange) -> None:
        request = exchange.request.body if exchange.request is not None else None
        if not request or exchange.response is None or exchange.errors:
            return
        group_id, (packet, ns) = clipped(field_text(request.get("group_id"))), place_of(exchange)
        if exchange.api_key == CONSUMER_GROUP_HEARTBEAT:
            self._beat(exchange, group_id, request, (packet, ns))
            return
        known = self._groups.get(group_id)
        if exchange.api_key == JOIN_GROUP and request.get("protocol_type") == "consumer":
            known = self._groups.of(group_id)
            if known is not None:
                if len(known.topics) < MAX_NAMES:
                    known.topics |= subscribed_topics(JOIN_GROUP, request)
                known.add_client(client_of(exchange))
        if known is None:
            return
        if exchange.api_key == SYNC_GROUP and request.get("assignments"):
            given = [opened_assignment(one) for one in request["assignments"]]
            known.since_ns = ns if not any(one is None or partitions_of(one) for one in given) else 0
            known.last_ns, known.packet = ns, packet
        elif known.since_ns and exchange.api_key in (HEARTBEAT, LEAVE_GROUP):
            known.last_ns = ns

    def _beat(self, exchange: Exchange, group_id: str, request: dict[str, Any], place: tuple[int, int]) -> None:
        """A member whose group's coordinator matches the pattern and assigns (KIP-848)."""
        answer = exchange.response.body if exchange.response is not None else None
        pattern, known = field_text(request.get("subscribed_topic_regex")), self._groups.get(group_id)
        if pattern and not request.get("subscribed_topic_names") and known is None:
            known = self._groups.of(group_id)
            if known is not None:
                known.pattern, known.packet, known.since_ns = clipped(pattern), *place
        if known is None or not known.pattern:
            return
        known.last_ns = place[1]
        known.add_client(client_of(exchange))
        assignment = (answer or {}).get("assignment")
        if isinstance(assignment, dict) and assignment.get("topic_partitions"):
            known.since_ns = 0

    def observations(self) -> Iterator[Observation]:
        """By group; by client."""
        for group_id, group in self._groups.items():
            lasted_ns = group.last_ns - group.since_ns
            if not group.since_ns or lasted_ns < LONG_NS:
                continue
            case = self.context.case()
            case.note("clients", group.clients)
            case.add(group.packet, group.since_ns, lasted_ns, until_ns=group.last_ns)
            topics = sorted(group.topics)
            yield observation_of(
                "nothing_assigned",
                case,
                {f"group:{group_id}", *(f"topic:{topic}" for topic in topics)},
                {"group": group_id, "topics": topics[:100], "pattern": group.pattern, "longest_ns": lasted_ns},
            )
        for client, one in self._clients.items():
            lasted_ns = one.case.last_ns - one.case.first_ns
            if one.does_more or not one.group or one.coordinator not in one.answered or lasted_ns < LONG_NS:
                continue
            yield observation_of(
                "never_joined",
                one.case,
                {f"client:{client}", f"group:{one.group}"},
                {"group": one.group, "topics": [], "pattern": "", "longest_ns": lasted_ns},
            )


class NothingToRead(Cause):
    """`nothing_assigned` (warning): a group gives no partition to any of its members for 10 s and more, or a client
    that asked for its group's coordinator never joins: there is nothing that they subscribe to. Seen must be the
    assignment of the leader of a classic group, heartbeats with a pattern, or that the client reached the coordinator
    and sent nothing that concerns the group, nor a Fetch. A pattern that matches no topic, topics that do not exist
    yet, and rights that hide them look the same. Where Metadata says that a topic is missing,
    `unknown_topic_or_partition` is told.
    """

    codes: ClassVar[tuple[str, ...]] = ("nothing_assigned",)
    explains: ClassVar[tuple[str, ...]] = ("nothing_assigned", "never_joined")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By group."""
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
                explains={"metadata_storm": scope_of("client", clients)},
            )
