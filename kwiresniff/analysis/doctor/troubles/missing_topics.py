"""Topics that do not exist, and topics that are deleted while in use, with the clients concerned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped, is_replica
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.troubles.throttling import user_of
from kwiresniff.analysis.doctor.wording import listed
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

#: APIs of consumers.
_CONSUMING = frozenset({
    FETCH, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH, JOIN_GROUP, HEARTBEAT, SYNC_GROUP, CONSUMER_GROUP_HEARTBEAT,
    SHARE_GROUP_HEARTBEAT, SHARE_FETCH, STREAMS_GROUP_HEARTBEAT,
})  # fmt: skip
NOT_TOLD = "(topic not told)"
UNKNOWN = frozenset({"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID", "INCONSISTENT_TOPIC_ID"})
#: A client whose connection goes on for so long after its last question has stopped asking.
LASTING_NS = 1_000_000_000
#: Clients whose role is remembered, topics that were seen to exist, and deletions.
MAX_CLIENTS = 5_000
MAX_TOPICS = 20_000
MAX_DELETIONS = 1_000
#: Cluster id (empty where not known) and topic.
_Topic: TypeAlias = tuple[str, str]


class MissingTopics(CountingObserver):
    """``topic_missing``: a client asked for a topic or partition and was told that it does not exist;
    ``topic_deletion``: a client deleted a topic.

    Notes: ``errors``, ``apis``, ``concerns``, ``brokers``, ``messages``, ``users``; ``used`` where a request is no
    follower's, ``admin`` where one is an administrator's. Numbers: ``role`` (``producer``, ``consumer`` or empty),
    ``seen_ns`` when the topic was last seen to exist, whether it ``existed`` before, whether a connection ``is_open``
    at the end, whether the client ``went_on`` without asking again or may have, where answers are cut off, and a
    sentence on a topic that exists ``elsewhere``. Of a deletion: ``user``.
    """

    kinds = ("topic_missing", "topic_deletion")
    entities = ("client", "topic")
    apis = frozenset({
        METADATA, DELETE_TOPICS, INIT_PRODUCER_ID, FIND_COORDINATOR, LIST_OFFSETS, OFFSET_COMMIT, OFFSET_FETCH,
        JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT,
    })  # fmt: skip
    judges = UNKNOWN

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._roles: dict[str, str] = {}
        #: When topics were last seen to exist, and those seen before anybody missed them.
        self._exists = context.existing
        self._existed: set[_Topic] = set()
        self._deleted: dict[str, Observation] = {}
        self._asked: dict[int, int] = {}
        self._open: set[str] = set()

    def exchange(self, exchange: Exchange) -> None:
        api_key = exchange.api_key
        body = response_body(exchange)
        if api_key in _CONSUMING:
            self._remember_role(client_of(exchange), "consumer")
        elif api_key == INIT_PRODUCER_ID:
            self._remember_role(client_of(exchange), "producer")
        elif api_key == FIND_COORDINATOR:
            asked = request_body(exchange)
            if asked is not None and not asked.get("key_type"):  # of a group, as all are in v0
                self._remember_role(client_of(exchange), "consumer")
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
        """Notes connections that are open at the end of the capture, and how long others went on."""
        if not connection.closed_by and len(self._open) < MAX_CLIENTS:
            self._open.add(str(connection.id))
        if connection.id in self._asked:
            self._asked[connection.id] = connection.last_ns

    def failure(self, exchange: Exchange) -> None:
        places = error_places(exchange, self.context, UNKNOWN)
        if not places:
            return
        client = client_of(exchange)
        if exchange.api_key in (PRODUCE, FETCH):
            self._remember_role(client, "producer" if exchange.api_key == PRODUCE else "consumer")
        if len(self._asked) < MAX_CLIENTS:
            self._asked.setdefault(exchange.connection.id, 0)
        for topic in dict.fromkeys(place.topic or NOT_TOLD for place in places):
            case = self.cases.case(client, topic)
            case.add(*place_of(exchange))
            case.note("apis", [exchange.api])
            case.note("used", ["yes"] * (not is_replica(exchange)))
            case.note("brokers", [exchange.connection.broker])
            case.note("admin", ["yes"] * (exchange.api_key in ADMIN_APIS))
            case.note("connections", [str(exchange.connection.id)])
            case.note("users", [user_of(exchange.connection)] if exchange.connection.sasl else [])
        for place in places:
            place.note(self.cases.case(client, place.topic or NOT_TOLD))

    def _remember_role(self, client: str, kind: str) -> None:
        known = client in self._roles
        if (known and kind == "producer") or (not known and self.context.has_room(self._roles, MAX_CLIENTS, client)):
            self._roles[client] = kind

    def _seen(self, topic: _Topic, ns: int) -> None:
        if topic in self._exists:
            self._exists[topic] = max(ns, self._exists[topic])
        elif topic[1] and self.context.has_room(self._exists, MAX_TOPICS, *topic):
            self._exists[topic] = ns
            if (case_ns := self._first_missed(topic[1])) is None or ns < case_ns:
                self._existed.add(topic)

    def _first_missed(self, topic: str) -> int | None:
        return min((case.first_ns for _, name, case in self.cases if name == topic), default=None)

    def _cluster_of(self, case: Case) -> str:
        """The cluster that lacks a topic, empty where it is not known."""
        known = (self.context.cluster.of(broker) for broker in case.noted("brokers"))
        return next(filter(None, known), "")

    def _elsewhere(self, topic: str, case: Case) -> list[str]:
        """A sentence on a missing topic that another cluster has."""
        cluster = self._cluster_of(case)
        others = [one for one, name in self._exists if name == topic and one and cluster and one != cluster]
        return [
            f"the cluster {cluster} does not have it, another one does: {one} "
            f"({listed(self.context.cluster.addresses(one), 3)}); compare the client's bootstrap.servers"
            for one in others[:1]
        ]

    def _delete(self, exchange: Exchange, body: dict[str, object]) -> None:
        responses = body.get("responses")
        for topic in responses if isinstance(responses, list) else ():
            name = clipped(self.context.topic_of(topic))
            if name and not topic.get("error_code") and len(self._deleted) < MAX_DELETIONS:
                case, about = self.context.case(), {f"client:{client_of(exchange)}", f"topic:{name}"}
                case.add(*place_of(exchange))
                numbers = {"user": user_of(exchange.connection)}
                self._deleted[name] = observation_of("topic_deletion", case, about, numbers)

    def observations(self) -> Iterator[Observation]:
        for client, topic, case in self.cases:
            here, on = (self._cluster_of(case), topic), case.noted("connections")
            cut = any(int(one) in self.context.cut for one in on)
            yield self.observed(
                client,
                topic,
                case,
                role=self._roles.get(client, ""),
                seen_ns=self._exists.get(here, 0),
                existed=here in self._existed,
                is_open=not self._open.isdisjoint(on),
                went_on=cut or any(self._asked.get(int(one), 0) - case.last_ns >= LASTING_NS for one in on),
                elsewhere=self._elsewhere(topic, case),
            )
        yield from self._deleted.values()
