"""Keys of the rows of statistics, and the functions that give an exchange's keys for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain

from kwiresniff.base.flows import host_of
from kwiresniff.base.light_typing import Final, TypeAlias
from kwiresniff.base.placeholders import NO_CLIENT_ID, NO_REQUEST, NO_TOPIC
from kwiresniff.model import Exchange, FetchedTopics, TopicNames

#: Topics of a fetch session that are counted as one at first, and the sessions of which that is remembered.
MANY: Final = 16
MAX_SHARED = 64
#: Changes of a session that are remembered.
MAX_LOGGED: Final = 16_384

#: A row's key: one value, or one for each dimension when there are several.
Key: TypeAlias = str | tuple[str, ...]

#: The values that an exchange has of one dimension.
Keys = Callable[[Exchange], Iterable[str]]


def key_parts(key: Key) -> tuple[str, ...]:
    """The value for each dimension."""
    return (key,) if isinstance(key, str) else key


class SharedKeys:
    """Keys of many exchanges: the topics of a fetch session, which a fetch is about without naming them.

    ``changes`` tells of each key that has come, or gone, in this order, since the session was met; the exchanges
    before are not about a new one, those behind are not about one that is gone. ``besides`` are further keys that the
    exchange has for which they were asked: a fetch names the topics that its session is to forget.
    """

    __slots__ = ("_topics", "besides", "changes", "fetched", "names", "taken")

    def __init__(self) -> None:
        self.names: dict[str, int] = {}  # with the number of topics that go by it: one may be there by its id as well
        self.besides: list[str] = []
        self.changes: list[tuple[str, bool]] = []
        self.fetched: list[str] = []  # as the session has them, of whose list it is
        self.taken = 0  # of them
        self._topics: dict[str, str] = {}  # with the name of each

    def __iter__(self) -> Iterator[str]:
        return chain(self.names, self.besides)

    def with_besides(self, names: Iterable[str]) -> SharedKeys:
        """The keys of an exchange that names these."""
        self.besides = [name for name in dict.fromkeys(names) if name not in self.names]
        return self

    def extend(self, fetched: FetchedTopics, topic_name: TopicNames | None) -> bool:
        """Takes in what a session has now; False for one that has lost most of its topics, or is another."""
        if fetched.names is self.fetched and fetched.topic_count <= self.taken:
            return fetched.topic_count == self.taken
        gone, new = fetched.changes_since(self.fetched, self.taken)
        if len(gone) > self.taken // 2 or len(self.changes) > MAX_LOGGED:
            return False
        self.fetched = fetched.names
        self.taken = fetched.topic_count
        for topic in gone:
            self._count(self._topics.pop(topic), -1)
        for topic in new:
            name = topic if topic_name is None else topic_name(topic) or topic
            self._topics[topic] = name
            self._count(name, 1)
        return True

    def _count(self, name: str, by: int) -> None:
        before = self.names.get(name, 0)
        if before + by:
            self.names[name] = before + by
        else:
            del self.names[name]
        if not before or not before + by:
            self.changes.append((name, not before))


class SessionTopics:
    """The topics of fetch sessions, each session's as one object for as long as it only grows."""

    __slots__ = ("_by_connection", "_topic_name")

    def __init__(self, topic_name: TopicNames | None) -> None:
        self._topic_name = topic_name
        self._by_connection: dict[int, SharedKeys] = {}

    def of(self, connection: int, fetched: FetchedTopics) -> SharedKeys | None:
        """The topics of the session that is used on a connection; None for one that is seen for the first time."""
        keys = self._by_connection.get(connection)
        if keys is not None and keys.extend(fetched, self._topic_name):
            return keys
        if len(self._by_connection) >= MAX_SHARED:
            self._by_connection.clear()
        keys = self._by_connection[connection] = SharedKeys()
        keys.extend(fetched, self._topic_name)
        return None


def _by_api(exchange: Exchange) -> Sequence[str]:
    return (exchange.api or NO_REQUEST,)


def _by_client(exchange: Exchange) -> Sequence[str]:
    return (f"{exchange.client_id or NO_CLIENT_ID} {host_of(exchange.connection.client)}",)


def _by_broker(exchange: Exchange) -> Sequence[str]:
    return (exchange.connection.broker,)


def _by_connection(exchange: Exchange) -> Sequence[str]:
    connection = exchange.connection
    return (f"{connection.id} {connection.client} {connection.broker}",)


def topics_in(topic_name: TopicNames | None) -> Keys:
    """A function that gives the topics of an exchange, by name where ``topic_name`` knows it; ``NO_TOPIC`` when it has
    none.
    """
    from kwiresniff.analysis.body_entities import (  # imported when topics are asked for
        EARLIER_SESSION,
        message_topics,
        session_topics,
    )

    sessions = SessionTopics(topic_name)

    def topics(exchange: Exchange) -> Iterable[str]:
        found = exchange.topics
        if not found:
            asked, answered = (
                message_topics(exchange.request, topic_name),
                message_topics(exchange.response, topic_name),
            )
            found = tuple(dict.fromkeys([*asked, *answered]))
        fetched = exchange.fetched
        if fetched is not None:
            if fetched.topic_count >= MANY:
                keys = sessions.of(exchange.connection.id, fetched)
                if keys is not None:
                    return keys.with_besides(found)
            found = tuple(dict.fromkeys((*found, *session_topics(exchange, topic_name))))
            if not found and not fetched.is_whole:
                return (EARLIER_SESSION,)
        return found or (NO_TOPIC,)

    return topics


DIMENSIONS = (
    "api", "client", "topic", "broker", "connection", "host", "version", "principal", "error", "partition", "group",
)  # fmt: skip

#: Those that need decoded bodies.
OF_BODIES: Final = frozenset({"partition", "group"})


def keys_of(name: str, topic_name: TopicNames | None) -> Keys:
    """A function that gives an exchange's values of a dimension."""
    usual: dict[str, Keys] = {
        "api": _by_api, "client": _by_client, "broker": _by_broker, "connection": _by_connection,
    }  # fmt: skip
    if name in usual:
        return usual[name]
    if name == "topic":
        return topics_in(topic_name)
    from kwiresniff.analysis import stats_dimensions as more  # few ask for these

    if name == "partition":
        return more.partitions_in(topic_name)
    others: dict[str, Keys] = {
        "host": more.by_host, "version": more.by_version, "principal": more.by_principal, "error": more.by_error,
        "group": more.GroupKeys(),
    }  # fmt: skip
    return others[name]
