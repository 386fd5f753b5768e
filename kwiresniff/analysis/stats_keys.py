"""Keys of the rows of statistics, and the functions that give an exchange's keys for each dimension."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from kwiresniff.analysis import body_entities
from kwiresniff.analysis import stats_dimensions as more
from kwiresniff.analysis.followed_sessions import MANY, SessionKeys
from kwiresniff.base.flows import host_of
from kwiresniff.base.placeholders import NO_CLIENT_ID, NO_REQUEST, NO_TOPIC
from kwiresniff.model import Exchange, TopicNames

#: A row's key: one value, or one for each dimension when there are several.
Key: TypeAlias = str | tuple[str, ...]

#: The values that an exchange has of one dimension.
Keys = Callable[[Exchange], Iterable[str]]


def key_parts(key: Key) -> tuple[str, ...]:
    """The value for each dimension."""
    return (key,) if isinstance(key, str) else key


def _by_api(exchange: Exchange) -> Sequence[str]:
    return (exchange.api or NO_REQUEST,)


def _by_client(exchange: Exchange) -> Sequence[str]:
    return (f"{exchange.client_id or NO_CLIENT_ID} {host_of(exchange.connection.client)}",)


def _by_broker(exchange: Exchange) -> Sequence[str]:
    return (exchange.connection.broker,)


def _by_connection(exchange: Exchange) -> Sequence[str]:
    connection = exchange.connection
    return (f"{connection.id} {connection.client} {connection.broker}",)


class TopicKeys:
    """Gives the topics of an exchange, by name where ``topic_name`` knows it; ``NO_TOPIC`` when it has none.

    Of a fetch session there are no more than the first ``most`` topics.
    """

    def __init__(self, topic_name: TopicNames | None, most: int | None = None) -> None:
        self._topic_name = topic_name
        self._most = most
        self._message_topics = body_entities.message_topics
        self._of_session = body_entities.session_topics
        self._earlier_session = body_entities.EARLIER_SESSION

    def __call__(self, exchange: Exchange) -> Sequence[str]:
        """All of the topics, each once."""
        found = self._named(exchange)
        fetched = exchange.fetched
        if fetched is not None:
            found = tuple(dict.fromkeys((*found, *self._of_session(exchange, self._topic_name, self._most))))
            if not found and not fetched.is_whole:
                return (self._earlier_session,)
        return found or (NO_TOPIC,)

    def of_session(self, exchange: Exchange) -> SessionKeys | None:
        """The topics of an exchange whose session has many."""
        fetched = exchange.fetched
        if fetched is None or fetched.names.count < MANY:
            return None
        return SessionKeys(fetched.session, fetched.names, self._name, self._named(exchange))

    def _named(self, exchange: Exchange) -> tuple[str, ...]:
        if exchange.topics:
            return exchange.topics
        topic_name = self._topic_name
        asked = self._message_topics(exchange.request, topic_name)
        return tuple(dict.fromkeys([*asked, *self._message_topics(exchange.response, topic_name)]))

    def _name(self, topic: str) -> str:
        return topic if self._topic_name is None else self._topic_name(topic) or topic


DIMENSIONS = (
    "api", "client", "topic", "broker", "connection", "host", "version", "principal", "error", "partition", "group",
)  # fmt: skip

#: Those that need decoded bodies.
OF_BODIES: Final = frozenset({"partition", "group"})


class TimeKeys:
    """Gives the slice of time in which an exchange began, as the nanoseconds of its beginning; slices begin at whole
    multiples of their width since the epoch.
    """

    def __init__(self, width_ns: int) -> None:
        self._width_ns = width_ns

    def __call__(self, exchange: Exchange) -> Sequence[str]:
        """One slice, or none of an exchange without messages."""
        message = exchange.request or exchange.response
        if message is None:
            return ()
        return (str(message.first_ns // self._width_ns * self._width_ns),)


def keys_of(name: str, topic_name: TopicNames | None) -> Keys:
    """A function that gives an exchange's values of a dimension."""
    usual: dict[str, Keys] = {
        "api": _by_api, "client": _by_client, "broker": _by_broker, "connection": _by_connection,
    }  # fmt: skip
    if name in usual:
        return usual[name]
    if name == "topic":
        return TopicKeys(topic_name)
    if name == "partition":
        return more.PartitionKeys(topic_name)
    others: dict[str, Keys] = {
        "host": more.by_host, "version": more.by_version, "principal": more.by_principal, "error": more.by_error,
        "group": more.GroupKeys(),
    }  # fmt: skip
    return others[name]
