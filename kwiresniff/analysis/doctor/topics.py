"""Topics that do not exist, and topics that are deleted while they are used: by whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from kwiresniff.analysis.doctor.cause import ERROR, INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped, is_replica
from kwiresniff.analysis.doctor.observers.throttling import ANONYMOUS, user_of
from kwiresniff.analysis.doctor.rule import Rule, found
from kwiresniff.analysis.doctor.wording import clock, duration, listed, times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.negotiation import ADMIN_APIS
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    DELETE_TOPICS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    LIST_OFFSETS,
    METADATA,
    OFFSET_COMMIT,
    OFFSET_FETCH,
    PRODUCE,
    SHARE_FETCH,
    SHARE_GROUP_HEARTBEAT,
    STREAMS_GROUP_HEARTBEAT,
    SYNC_GROUP,
)
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding, scope_of

#: Whoever sends one of these consumes.
_CONSUMING = frozenset({
    FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT,
    SHARE_GROUP_HEARTBEAT, SHARE_FETCH, STREAMS_GROUP_HEARTBEAT,
})  # fmt: skip
#: A client that sends one of these may write.
_WRITING = frozenset({"Metadata", "Produce", "InitProducerId", "AddPartitionsToTxn"})
UNKNOWN = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID"})
#: Whoever asks so often, for so long, without the topic coming into being, means to use it.
OFTEN = 3
LASTING_NS = 1_000_000_000
#: So long it may take until all brokers know of a topic that is made or deleted.
YOUNG_NS = 10_000_000_000
#: Clients whose way of working is remembered, topics that were seen to exist, and deletions.
MAX_CLIENTS = 5_000
MAX_TOPICS = 20_000
MAX_DELETIONS = 1_000


#: The id of a cluster, empty where that is not known, and the name of a topic.
_Topic: TypeAlias = tuple[str, str]


class _Deletion(NamedTuple):
    client: str
    user: str
    packet: int
    ns: int


BEFORE = "before it was there"
PASSED = "which did not exist then"
ENDED = "which does not exist, or not yet: the capture ends"
_YOUNG = "Normal while a topic is made, by auto.create.topics.enable for instance: it was there soon afterwards."
_MISSING = (
    "Its name is misspelt, it was not created (auto.create.topics.enable is off), it was deleted, or the user has no "
    "right to see it."
)

_DELETED = (
    "If that was not meant: create it again and restore what it held; deletions can be forbidden by ACLs. Else stop or "
    "reconfigure the clients named here, which go on asking."
)
_MADE_ANEW = (
    "What it held is gone, and offsets that groups have committed are those of the topic before: restore what is "
    "needed, and reset the groups (kafka-consumer-groups --reset-offsets). Deletions can be forbidden by ACLs."
)


class TopicRule(Rule):
    """UNKNOWN_TOPIC_OR_PARTITION and its like, by topic and client: never there, not there yet, or deleted.

    `unknown_topic_or_partition` (error when it is produced to, warning when consumed for long, else info): a topic or
    partition that is not there.

    `topic_deleted` (error; warning where the deletion is not in the capture): a topic was deleted while in use: by
    whom, who still asks for it, and whether it was made anew.
    """

    codes = ("unknown_topic_or_partition", "topic_deleted")
    apis = frozenset({
        METADATA, DELETE_TOPICS, INIT_PRODUCER_ID, FIND_COORDINATOR, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH,
        JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT,
    })  # fmt: skip
    judges = UNKNOWN

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._kinds: dict[str, str] = {}
        #: By cluster and topic, when it was last seen to exist; and those seen before anybody missed them.
        self._exists = context.existing
        self._existed: set[_Topic] = set()
        self._deleted: dict[str, _Deletion] = {}
        self._asked: dict[int, int] = {}
        self._midway: set[str] = set()
        self._open: set[str] = set()

    def exchange(self, exchange: Exchange) -> None:
        """What exists, what is deleted, and who consumes."""
        api_key = exchange.api_key
        body = exchange.response.body if exchange.response is not None else None
        if api_key in _CONSUMING:
            self._remember_kind(client_of(exchange), "consumer")
        elif api_key == INIT_PRODUCER_ID:
            self._remember_kind(client_of(exchange), "producer")
        elif api_key == FIND_COORDINATOR:
            asked = exchange.request.body if exchange.request is not None else None
            if asked is not None and not asked.get("key_type"):  # of a group, as all are in v0
                self._remember_kind(client_of(exchange), "consumer")
        elif body is None:
            return
        elif api_key == METADATA:
            ns, cluster = place_of(exchange)[1], self.context.cluster.of(exchange.connection.broker)
            for topic in body.get("topics") or ():
                if not topic.get("error_code"):
                    self._seen((cluster, clipped(self.context.topic_of(topic))), ns)
        else:
            self._delete(exchange, body)

    def connection(self, connection: Connection) -> None:
        """Notes what the capture has no beginning of, or no end."""
        number = str(connection.id)
        for numbers, so in ((self._midway, not connection.handshake_seen), (self._open, not connection.closed_by)):
            if so and len(numbers) < MAX_CLIENTS:
                numbers.add(number)
        if connection.id in self._asked:
            self._asked[connection.id] = connection.last_ns

    def failure(self, exchange: Exchange) -> None:
        """Somebody asks for what is not there."""
        names = [name for _, _, name, _ in exchange.errors if name in UNKNOWN]
        if not names:
            return
        client = client_of(exchange)
        if exchange.api_key in (PRODUCE, FETCH):
            self._remember_kind(client, "producer" if exchange.api_key == PRODUCE else "consumer")
        packet, ns = place_of(exchange)
        counted: set[str] = set()
        replica = is_replica(exchange)
        for place in error_places(exchange, self.context):
            if place.name not in UNKNOWN:
                continue
            topic = place.topic or "(topic not told)"
            case = self._cases.case(client, topic)
            if topic not in counted:
                case.add(packet, ns)
                counted.add(topic)
            case.note("errors", [place.name])
            case.note("apis", [exchange.api])
            if not replica:
                case.note("used", ["yes"])
            case.note("concerns", [place.what] if place.what else [])
            case.note("brokers", [exchange.connection.broker])
            case.note("messages", [place.message] if place.message else [])
            if exchange.api_key in ADMIN_APIS:
                case.note("admin", ["yes"])
            case.note("connections", [str(exchange.connection.id)])
            if len(self._asked) < MAX_CLIENTS:
                self._asked.setdefault(exchange.connection.id, 0)
            if exchange.connection.sasl:
                case.note("users", [user_of(exchange.connection)])

    def _remember_kind(self, client: str, kind: str) -> None:
        if client not in self._kinds and len(self._kinds) < MAX_CLIENTS:
            if self.context.budget.admit(ENTRY_BYTES + text_bytes(client)):
                self._kinds[client] = kind
        elif kind == "producer" and client in self._kinds:
            self._kinds[client] = kind

    def _seen(self, topic: _Topic, ns: int) -> None:
        if topic in self._exists:
            self._exists[topic] = max(ns, self._exists[topic])
        elif (
            topic[1] and len(self._exists) < MAX_TOPICS and self.context.budget.admit(ENTRY_BYTES + text_bytes(*topic))
        ):
            self._exists[topic] = ns
            if (case_ns := self._first_missed(topic[1])) is None or ns < case_ns:
                self._existed.add(topic)

    def _first_missed(self, topic: str) -> int | None:
        return min((case.first_ns for _, name, case in self._cases if name == topic), default=None)

    def _cluster_of(self, case: Case) -> str:
        """The cluster in which a topic is missing, empty where its brokers have not said which they belong to."""
        known = (self.context.cluster.of(broker) for broker in case.noted("brokers"))
        return next(filter(None, known), "")

    def _elsewhere(self, topic: str, case: Case) -> list[str]:
        """What there is to say of a topic that another cluster of the capture has."""
        cluster = self._cluster_of(case)
        others = [one for one, name in self._exists if name == topic and one and cluster and one != cluster]
        return [
            f"the cluster {cluster} does not have it, another one does: {one} "
            f"({listed(self.context.cluster.addresses(one), 3)}); compare the client's bootstrap.servers"
            for one in others[:1]
        ]

    def _delete(self, exchange: Exchange, body: dict[str, object]) -> None:
        packet, ns = place_of(exchange)
        responses = body.get("responses")
        for topic in responses if isinstance(responses, list) else ():
            name = clipped(self.context.topic_of(topic))
            if name and not topic.get("error_code") and len(self._deleted) < MAX_DELETIONS:
                self._deleted[name] = _Deletion(client_of(exchange), user_of(exchange.connection), packet, ns)

    # -- what is said -------------------------------------------------------------------------------------------

    def findings(self) -> Iterator[Finding]:
        """Deleted topics one by one with all their users, the others by client."""
        deleted: dict[str, list[tuple[str, Case]]] = {}
        for client, topic, case in self._cases:
            gone = self._deleted.get(topic)
            here = self._cluster_of(case), topic
            came = self._exists.get(here, 0)
            if not case.noted("used"):
                yield self._unknown(client, topic, case, "info", "as a follower that has not learnt of a change yet")
            elif gone is not None and case.last_ns >= gone.ns:
                deleted.setdefault(topic, []).append((client, case))
            elif came > case.last_ns:
                yield self._unknown(client, topic, case, "info", BEFORE)
            elif here in self._existed and case.count >= OFTEN and "Metadata" in case.noted("apis"):
                deleted.setdefault(topic, []).append((client, case))
            elif came and case.last_ns - case.first_ns < YOUNG_NS:
                yield self._unknown(client, topic, case, "info", "which not every broker knows yet, or any more")
            else:
                yield self._missing(client, topic, case)
        for topic, users in deleted.items():
            yield self._deletion(topic, users)

    def _missing(self, client: str, topic: str, case: Case) -> Finding:
        kind = self._kinds.get(client, "")
        produces = kind == "producer" or "Produce" in case.noted("apis")
        lasting = case.count >= OFTEN and case.last_ns - case.first_ns >= LASTING_NS
        if case.noted("admin") and not produces and not lasting:
            return self._unknown(client, topic, case, "info", "which does not exist")
        on = set(case.noted("connections"))
        if not lasting and not on.isdisjoint(self._open) and self.context.end_ns - case.last_ns < LASTING_NS:
            return self._unknown(client, topic, case, "info", ENDED)
        went_on = any(self._asked.get(int(one), 0) - case.last_ns >= LASTING_NS for one in on)
        if not lasting and (went_on or any(int(one) in self.context.cut for one in on)):
            return self._unknown(client, topic, case, "info", PASSED)
        writes = produces or not _WRITING.isdisjoint(case.noted("apis"))
        if produces or (lasting and kind != "consumer" and writes):
            then = "nothing is delivered" if produces else "if it produces, nothing is delivered"
            return self._unknown(client, topic, case, "error", f"which does not exist: {then}")
        severity = "warning" if lasting else "info"
        return self._unknown(client, topic, case, severity, "which does not exist")

    def _unknown(self, client: str, topic: str, case: Case, severity: str, how: str) -> Finding:
        errors = case.noted("errors")
        partitions = [one for one in case.noted("concerns") if one != topic]
        what = f"topic {topic}"
        if len(partitions) == 1:
            what = f"partition {partitions[0]}"
        elif partitions:
            what, how = f"partitions {listed(partitions)}", how.replace("which does not", "which do not")
        lasted = case.last_ns - case.first_ns
        over = f" in {duration(lasted)}" if lasted >= 1_000_000 else ""
        return found(
            "unknown_topic_or_partition",
            severity,
            client,
            f"{listed(errors)}: asks for {what}, {how}, {times(case.count)}{over}",
            _YOUNG if how == BEFORE else _MISSING,
            case,
            {
                "error": errors[0] if errors else "",
                "concerns": [*case.noted("apis"), f"topic {topic}", *partitions],
                "error_messages": case.noted("messages"),
                "users": case.noted("users"),
            },
            details=self._elsewhere(topic, case),
            clients=[client],
            topics=[topic],
            explains={"metadata_storm": scope_of("client", [client])} if severity != "info" else {},
            rank=INCIDENT if severity == "error" else ERROR,
        )

    def _deletion(self, topic: str, users: list[tuple[str, Case]]) -> Finding:
        gone = self._deleted.get(topic)
        case = self.context.case()
        if gone is not None:
            case.add(gone.packet, gone.ns)
            case.count = 0
        for _, one in users:
            case.merge(one)
        clients = list(dict.fromkeys(client for client, _ in users))
        kinds = {client: self._kinds.get(client, "") for client in clients}
        used = [f"{client} ({kind})" if (kind := kinds[client]) else client for client in clients]
        here = self._cluster_of(users[0][1]), topic
        again = gone is not None and self._exists.get(here, 0) > max(one.last_ns for _, one in users)
        produced = any(kind == "producer" for kind in kinds.values())
        if gone is None:
            by = "by whom is not in the capture"
        else:
            user = f", user {gone.user}" if gone.user != ANONYMOUS else ""
            by = f"by {gone.client}{user} at {clock(gone.ns)}"
        return found(
            "topic_deleted",
            "error" if produced or gone is not None else "warning",
            f"topic {topic}",
            f"was deleted while in use, {by}; {listed(used)} still asked for it"
            + ("; it was made anew afterwards, without what it held" if again else ""),
            _MADE_ANEW if again else _DELETED,
            case,
            {
                "topic": topic,
                "deleted_by": gone.client if gone is not None else None,
                "user": gone.user if gone is not None else None,
                "clients": clients,
                "concerns": [*dict.fromkeys(api for _, one in users for api in one.noted("apis")), f"topic {topic}"],
                "errors": list(dict.fromkeys(name for _, one in users for name in one.noted("errors"))),
            },
            clients=[*clients, *([gone.client] if gone is not None else [])],
            topics=[topic],
            explains={
                "metadata_storm": scope_of("client", clients),
                "unanswered": scope_of("client", clients),
                "not_leader_or_follower": scope_of("topic", [topic]),
                "records_lost": scope_of("topic", [topic]),
                "offset_out_of_range": scope_of("topic", [topic]),
                "rebalances": scope_of("topic", [topic]),
            },
            rank=INCIDENT,
        )
