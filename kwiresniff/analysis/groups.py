"""The events of each group: joins, generations, assignments, commits and leaves in all rebalance protocols.

Heartbeats that say nothing new are left out, commits of one member in a row are one event. Bounded, see
``group_events``: the newest events are kept, what was older is counted in ``left_out``.
"""

from __future__ import annotations

from typing import Any, ClassVar

from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.group_events import EventLog, LastKnown, Member, Partitions, new_member_budget
from kwiresniff.analysis.late_names import renamer
from kwiresniff.base.api_keys import (
    HEARTBEAT,
    HEARTBEAT_PROTOCOLS,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
    TXN_OFFSET_COMMIT,
)
from kwiresniff.base.body_members import DECODED
from kwiresniff.base.field_values import field_text, name_text
from kwiresniff.base.needs import Needs
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Body, Exchange, TopicNames
from kwiresniff.results.groups import GroupEvent

CLASSIC = "classic"

#: Members that leave by one request and have an event, of whom nothing was known: an administrator removes as many as
#: there are in a group. A request has room for one in four bytes, and an event takes half a kilobyte.
MAX_LEAVING = 1000
#: ``member_epoch`` of a member that leaves, and of a static one that will be back.
LEAVING, LEAVING_FOR_A_WHILE = -1, -2

#: The member of a JoinGroup request with a protocol's decoded metadata.
_OPENED = f"metadata{DECODED}"

#: The tasks of a streams group's member, and what their subtopologies are called here.
_TASKS = {"active_tasks": "subtopology", "standby_tasks": "standby", "warmup_tasks": "warmup"}

#: Errors that are steps of the protocol: the first join without a member id (KIP-394), and every rebalance.
STEPS = frozenset({"MEMBER_ID_REQUIRED", "REBALANCE_IN_PROGRESS"})


class GroupTimeline:
    """Collects the events of groups from exchanges with decoded bodies, in the order in which they are answered."""

    NEEDS: ClassVar[Needs] = Needs("bodies", clusters=True, digests=True)

    def __init__(self, topic_name: TopicNames | None = None, clusters: Clusters | None = None) -> None:
        """``clusters`` are those of other analyses of the same exchanges."""
        self._topic_name = topic_name
        self._clusters = clusters or Clusters()
        self._node = self._cluster = 0  # of the exchange that is looked at
        self._rename = renamer(topic_name)
        self._log = EventLog()
        budget = new_member_budget()
        self._assigned: LastKnown[Partitions] = LastKnown(budget)
        self._epochs: LastKnown[int] = LastKnown(budget)
        #: The protocol of members by their heartbeats; their commits do not have it.
        self._protocols: LastKnown[str] = LastKnown(budget)
        self._handlers = {
            JOIN_GROUP: self._join,
            SYNC_GROUP: self._sync,
            HEARTBEAT: self._heartbeat,
            LEAVE_GROUP: self._leave,
            OFFSET_COMMIT: self._commit,
            TXN_OFFSET_COMMIT: self._commit,
            **dict.fromkeys(HEARTBEAT_PROTOCOLS, self._new_heartbeat),
        }

    def add(self, exchange: Exchange) -> None:
        """Take in an exchange; most are about no group."""
        node = cluster_of(self._clusters, exchange)
        handler = self._handlers.get(exchange.api_key)
        if handler is None or exchange.request is None or exchange.request.body is None:
            return
        answer = exchange.response.body if exchange.response is not None else None
        if exchange.outcome != "unanswered" and answer is None and exchange.response is not None:
            return  # an answer that could not be read does not say what happened
        self._node, self._cluster = node, self._clusters.scope(node)
        handler(exchange, exchange.request.body, answer or {})

    @property
    def left_out(self) -> int:
        """Events that are no longer known, because newer ones took their place."""
        return self._log.left_out

    @property
    def forgotten(self) -> int:
        """How often what a member had was forgotten, so that what it gets next looks all new."""
        return self._assigned.forgotten + self._epochs.forgotten

    def events(self) -> list[GroupEvent]:
        """Everything found, by cluster and group, then by time; the groups in the order in which they appeared."""
        groups: dict[tuple[int, str], list[GroupEvent]] = {}
        labels = self._clusters.labels()
        for event in self._log:
            cluster = self._clusters.scope(event.node)
            event.cluster = labels.get(cluster)
            if event.protocol == CLASSIC:
                member = cluster, event.group, event.instance_id or event.member_id
                event.protocol = self._protocols.get(member) or CLASSIC
            event.details = self._rename(event.details)
            groups.setdefault((cluster, event.group), []).append(event)
        return [event for found in groups.values() for event in sorted(found, key=lambda one: one.timestamp_ns)]

    # -- the classic protocol ------------------------------------------------------------------------------------

    def _join(self, exchange: Exchange, request: Body, answer: Body) -> None:
        if self._failed(exchange, request, answer, CLASSIC):
            return
        details: dict[str, Any] = {"wait_ns": exchange.latency_ns, "reason": name_text(request.get("reason")) or None}
        details["protocol"] = name_text(answer.get("protocol_name"))
        details["leader"] = bool(answer.get("leader")) and answer.get("leader") == answer.get("member_id")
        if details["leader"]:
            details["members"] = len(answer.get("members") or ())
        details["topics"] = subscribed_topics(request)
        event = self._event(exchange, request, CLASSIC, "join", details, answer.get("generation_id"))
        event.member_id = field_text(answer.get("member_id")) or event.member_id

    def _sync(self, exchange: Exchange, request: Body, answer: Body) -> None:
        if self._failed(exchange, request, answer, CLASSIC):
            return
        opened = answer.get(f"assignment{DECODED}")
        data = opened.get("data", {}) if isinstance(opened, dict) else {}
        partitions = data.get("assigned_partitions")
        if partitions is not None or not answer.get("assignment"):
            self._assign(exchange, request, CLASSIC, partitions or [], request.get("generation_id"))
        else:
            details = {"assignment": data or None}
            self._event(exchange, request, CLASSIC, "assigned", details, request.get("generation_id"))

    def _heartbeat(self, exchange: Exchange, request: Body, answer: Body) -> None:
        self._failed(exchange, request, answer, CLASSIC)

    def _leave(self, exchange: Exchange, request: Body, answer: Body) -> None:
        if self._failed(exchange, request, answer, CLASSIC):
            return
        members = request.get("members") or [request]
        if len(members) > MAX_LEAVING:
            members = self._worth_reporting(field_text(request.get("group_id")), members)
        for member in members:
            details = {"reason": name_text(member.get("reason")) or None}
            self._depart(exchange, {**request, **member}, CLASSIC, details)

    # -- the protocols of KIP-848, KIP-932 and KIP-1071 -------------------------------------------------------------

    def _new_heartbeat(self, exchange: Exchange, request: Body, answer: Body) -> None:
        protocol = HEARTBEAT_PROTOCOLS[exchange.api_key]
        if self._failed(exchange, request, answer, protocol):
            return
        asked = request.get("member_epoch")
        if asked in (LEAVING, LEAVING_FOR_A_WHILE):
            self._depart(exchange, request, protocol, {"static": asked == LEAVING_FOR_A_WHILE})
            return
        member_id = field_text(answer.get("member_id")) or field_text(request.get("member_id"))
        member = self._member({**request, "member_id": member_id})
        if self._protocols.get(member) != protocol:
            self._protocols.put(member, protocol)
        epoch = answer.get("member_epoch")
        known = self._epochs.get(member)
        if asked == 0:
            topics = request.get("subscribed_topic_names")
            details = {
                "wait_ns": exchange.latency_ns,
                "topics": [field_text(topic) for topic in topics or ()],
                "topic_regex": name_text(request.get("subscribed_topic_regex")),
                "assignor": name_text(request.get("server_assignor")),
            }
            event = self._event(exchange, request, protocol, "join", details, epoch)
            event.member_id = member_id
        if isinstance(epoch, int):
            self._epochs.put(member, epoch)
        given = answer.get("assignment", answer if protocol == "streams" else None)
        if isinstance(given, dict) and (partitions := _given(given)) is not None:
            self._assign(exchange, {**request, "member_id": member_id}, protocol, partitions, epoch)
        elif asked != 0 and known is not None and epoch != known:
            event = self._event(exchange, request, protocol, "epoch", {"from": known}, epoch)
            event.member_id = member_id

    # -- what they have in common -----------------------------------------------------------------------------------

    def _failed(self, exchange: Exchange, request: Body, answer: Body, protocol: str) -> bool:
        """Adds an event for a response that is an error or missing, or that sends the member back to join again."""
        if exchange.outcome == "unanswered":
            kind = "error"
            details: dict[str, Any] = {"api": exchange.api, "error": None, "message": "unanswered"}
        elif exchange.errors:
            _, code, name, retriable = exchange.errors[0]
            kind = "rejoin" if name in STEPS else "error"
            details = {"api": exchange.api, "error": name, "code": code, "retriable": retriable}
            details["message"] = name_text(answer.get("error_message"))
        else:
            return False
        members = request.get("members") or [{}]
        event = self._event(exchange, {**request, **members[0]}, protocol, kind, details, _generation(request))
        event.member_id = field_text(answer.get("member_id")) or event.member_id
        return True

    def _depart(self, exchange: Exchange, request: Body, protocol: str, details: dict[str, Any]) -> None:
        member = self._member(request)
        self._epochs.pop(member)
        details["partitions"] = self._assigned.pop(member) or {}
        self._event(exchange, request, protocol, "leave", details, _generation(request))

    def _worth_reporting(self, group: str, leaving: list[Body]) -> list[Body]:
        """The first of the members that leave, and those behind them of whom anything is known."""
        shown = leaving[:MAX_LEAVING]
        known = self._known_of(group, leaving)
        known.difference_update(map(_member_name, shown))
        for member in leaving[MAX_LEAVING:] if known else ():
            name = member.get("group_instance_id") or member.get("member_id")
            if name.__class__ is not str:
                name = _member_name(member)
            if name in known:
                known.discard(name)
                shown.append(member)
        self._log.left_out += len(leaving) - len(shown)
        return shown

    def _known_of(self, group: str, members: list[Body]) -> set[str]:
        """Of whom anything is known: of these members of a group, or of all that it has, whichever are fewer."""
        epochs, assigned = self._epochs, self._assigned
        if len(members) < len(epochs) + len(assigned):
            names = map(_member_name, members)
            at = self._cluster
            return {name for name in names if (at, group, name) in epochs or (at, group, name) in assigned}
        return {name for known in (epochs, assigned) for *of, name in known if of == [self._cluster, group]}

    def _assign(self, exchange: Exchange, request: Body, protocol: str, given: list[Body], generation: Any) -> None:
        now: Partitions = {}
        for topic in given:
            now.setdefault(self._topic(topic), []).extend(topic.get("partitions") or ())
        member = self._member(request)
        before = self._rename(self._assigned.get(member) or {})
        self._assigned.put(member, now)
        details = {
            "wait_ns": exchange.latency_ns,
            "partitions": now,
            "added": _less(now, before),
            "removed": _less(before, now),
        }
        self._event(exchange, request, protocol, "assigned", details, generation)

    def _commit(self, exchange: Exchange, request: Body, answer: Body) -> None:
        log, group, member_id = self._log, field_text(request.get("group_id")), field_text(request.get("member_id"))
        last = log.open_commit((self._cluster, group))
        if last is None or (last.event.member_id, last.event.client) != (member_id, exchange.connection.client):
            details: dict[str, Any] = {
                "count": 0,
                "last_timestamp_ns": 0,
                "transactional_id": name_text(request.get("transactional_id")),
                "offsets": {},
                "errors": {},
            }
            last = log.add_commit(
                _event(exchange, request, CLASSIC, "commit", details, _generation(request), self._node), self._cluster
            )
        details = last.event.details
        assert exchange.request is not None
        details["count"] += 1
        details["last_timestamp_ns"] = exchange.request.first_ns
        for _, _, name, _ in exchange.errors[:1]:
            log.count_error(last, name)
        if exchange.outcome == "unanswered":
            log.count_error(last, "unanswered")
        for topic in request.get("topics") or ():
            named = self._topic(topic)
            for partition in topic.get("partitions") or ():
                if "committed_offset" in partition:  # else the request is cut off before it
                    log.count_offset(last, named, partition.get("partition_index"), partition["committed_offset"])

    def _member(self, request: Body) -> Member:
        """A member by cluster, group and id; a static one by its instance id, which stays when its member id changes
        (KIP-345)."""
        return self._cluster, field_text(request.get("group_id")), _member_name(request)

    def _topic(self, topic: Body) -> str:
        topic_id = topic.get("topic_id")
        name = topic.get("topic") or topic.get("name") or topic.get("topic_name")
        if name:
            return field_text(name)
        return (self._topic_name(topic_id) if self._topic_name and topic_id else None) or field_text(topic_id)

    def _event(
        self, exchange: Exchange, request: Body, protocol: str, event: str, details: dict[str, Any], generation: Any
    ) -> GroupEvent:
        found = _event(exchange, request, protocol, event, details, generation, self._node)
        self._log.add(found, self._cluster)
        return found


def _event(
    exchange: Exchange, request: Body, protocol: str, event: str, details: dict[str, Any], generation: Any, node: int
) -> GroupEvent:
    assert exchange.request is not None
    found = GroupEvent(
        group=field_text(request.get("group_id")),
        protocol=protocol,
        event=event,
        timestamp_ns=exchange.request.first_ns,
        packet=exchange.request.first_packet,
        client_id=exchange.client_id,
        client=exchange.connection.client,
        broker=exchange.connection.broker,
        member_id=field_text(request.get("member_id")),
        instance_id=name_text(request.get("group_instance_id") or request.get("instance_id")),
        generation=generation if isinstance(generation, int) and generation >= 0 else None,
        details=details,
    )
    found.node = node
    return found


def _member_name(member: Body) -> str:
    static = member.get("group_instance_id") or member.get("instance_id")
    return field_text(static) or field_text(member.get("member_id"))


def _generation(request: Body) -> Any:
    for name in ("generation_id", "generation_id_or_member_epoch", "member_epoch"):
        if name in request:
            return request[name]
    return None


def subscribed_topics(request: Body) -> list[str]:
    """The topics that a JoinGroup request's subscriptions name."""
    topics: dict[str, None] = {}
    protocols = request.get("protocols") or ()
    for opened in [protocol[_OPENED] for protocol in protocols if _OPENED in protocol]:
        data = opened.get("data") if isinstance(opened, dict) else None
        topics.update(dict.fromkeys((data or {}).get("topics") or ()))
    return [field_text(topic) for topic in topics]


def _given(assignment: Body) -> list[Body] | None:
    """The topics of an assignment, those of all kinds of tasks of a streams group; None when there is nothing new."""
    if "topic_partitions" in assignment:
        return list(assignment["topic_partitions"] or ())
    if all(assignment.get(kind) is None for kind in _TASKS):
        return None
    return [
        {"topic": f"{name} {field_text(task.get('subtopology_id'))}", "partitions": task.get("partitions")}
        for kind, name in _TASKS.items()
        for task in assignment.get(kind) or ()
    ]


def _less(these: Partitions, those: Partitions) -> Partitions:
    """The partitions of the first assignment that the second lacks."""
    found: Partitions = {}
    for topic, partitions in these.items():
        others = set(those.get(topic, ()))
        if less := [one for one in partitions if one not in others]:
            found[topic] = less
    return found
