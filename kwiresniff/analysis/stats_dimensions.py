"""Dimensions of statistics beyond the usual ones, and the records in an exchange.

Partitions, groups and records are in bodies only, which must be decoded for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from kwiresniff.analysis.body_entities import (
    groups_of_member,
    names_of,
    record_sets,
    replica_id_of,
    session_topics,
    topic_of_struct,
)
from kwiresniff.analysis.followed_sessions import MANY, SessionKeys
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.record_counts import batches_in, records_in
from kwiresniff.base.api_keys import FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH, PRODUCE, SHARE_FETCH
from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.base.entities import PARTITION_FIELDS, PARTITION_LISTS
from kwiresniff.base.flows import host_of
from kwiresniff.base.placeholders import NO_REQUEST
from kwiresniff.model import Body, Exchange, TopicNames

NO_PARTITION: Final = "(no partition)"
NO_GROUP: Final = "(no group)"
#: Of a read that no more than its client id and address connect with a group, or with more than one.
BY_CLIENT_ID: Final = "(by its client id)"
SEVERAL_GROUPS: Final = "(one of several groups)"
#: APIs that members of groups use without naming the group.
_READS: Final = frozenset({FETCH, LIST_OFFSETS, OFFSET_FOR_LEADER_EPOCH})
#: Keys of clients and connections begin with what no group's name does.
_CLIENT: Final = "\0"
_CONNECTION: Final = "\1"
#: Bytes of what is remembered of the clients that are members of groups.
MAX_MEMBER_BYTES: Final = 8 << 20
NO_ERROR: Final = "(no error)"
NO_PRINCIPAL: Final = "(not authenticated)"
#: An incremental fetch of several topics does not tell which partition is of which topic.
SESSION: Final = "(partitions of the fetch session)"

Keys: TypeAlias = Callable[[Exchange], Iterable[str]]
#: Records in the request and in the response, by topic or partition where the table is by those, else under "".
RecordCounts: TypeAlias = tuple[dict[str, int], dict[str, int]]


def by_host(exchange: Exchange) -> tuple[str, ...]:
    """The client's address without its port."""
    return (host_of(exchange.connection.client),)


def by_version(exchange: Exchange) -> tuple[str, ...]:
    """The API with its version."""
    return (f"{exchange.api or NO_REQUEST} v{exchange.api_version}",)


def by_principal(exchange: Exchange) -> tuple[str, ...]:
    """The user that the connection has authenticated as by SASL."""
    return (str((exchange.connection.sasl or {}).get("principal") or NO_PRINCIPAL),)


def by_error(exchange: Exchange) -> Iterable[str]:
    """Each error code in the response once."""
    return dict.fromkeys(name for _, _, name, _ in exchange.errors) if exchange.errors else (NO_ERROR,)


class GroupKeys:
    """Gives the groups of exchanges: those that they name and, for reads, the group that their client is a member of.

    A member reads on another connection than the one on which it speaks of its group, under the same client id. So
    reads are counted under a key of their client, which ``resolve`` turns into a group once everything has been seen.
    Clients are remembered up to ``MAX_MEMBER_BYTES``; the reads of others are in no group.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[str, None]] = {}
        self._budget = MemoryBudget(MAX_MEMBER_BYTES)

    def __call__(self, exchange: Exchange) -> Iterable[str]:
        """The groups, or the key of the client."""
        found = dict.fromkeys(group for body in _bodies(exchange) for group in names_of(body).groups if group)
        if found:
            request = exchange.request.body if exchange.request is not None else None
            for group in groups_of_member(request or {}):
                self._note(_client_key(exchange), group)
                self._note(_connection_key(exchange), group)
            return found
        if exchange.api_key not in _READS or replica_id_of(exchange.request) >= 0:
            return (NO_GROUP,)
        own = self._groups.get(_connection_key(exchange), {})
        return own if len(own) == 1 else (_client_key(exchange),)

    def _note(self, key: str, group: str) -> None:
        known = self._groups.get(key)
        if known is None:
            if not self._budget.admit(CONTAINER_BYTES + ENTRY_BYTES + text_bytes(key)):
                return
            known = self._groups[key] = {}
        if group not in known and self._budget.admit(ENTRY_BYTES + text_bytes(group)):
            known[group] = None

    def resolve(self, key: str) -> str | None:
        """The group that the key of a client stands for; None for any other key."""
        if not key.startswith(_CLIENT):
            return None
        groups = self._groups.get(key, {})
        return f"{next(iter(groups))} {BY_CLIENT_ID}" if len(groups) == 1 else SEVERAL_GROUPS if groups else NO_GROUP


def _client_key(exchange: Exchange) -> str:
    return f"{_CLIENT}{exchange.client_id or ''} {exchange.connection.client.rpartition(':')[0]}"


def _connection_key(exchange: Exchange) -> str:
    return f"{_CONNECTION}{exchange.connection.id}"


class PartitionKeys:
    """Gives the partitions of an exchange as ``topic-number``."""

    def __init__(self, topic_name: TopicNames | None) -> None:
        self._topic_name = topic_name

    def __call__(self, exchange: Exchange) -> Iterable[str]:
        """All of the partitions, each once."""
        found = self._named(exchange)
        fetched = exchange.fetched
        if fetched is not None and not found:
            if fetched.names.count == 1:
                found.update((f"{self._topic(exchange)}-{partition}", None) for partition in fetched.partitions)
            if not found:
                return (SESSION,)
        return found or (NO_PARTITION,)

    def of_session(self, exchange: Exchange) -> SessionKeys | None:
        """The partitions of an exchange that names none, and whose session has many of one topic."""
        fetched = exchange.fetched
        if fetched is None or fetched.names.count != 1 or fetched.numbers.count < MANY or self._named(exchange):
            return None
        topic = self._topic(exchange)
        return SessionKeys((fetched.session, topic), fetched.numbers, lambda number: f"{topic}-{number}", ())

    def _named(self, exchange: Exchange) -> dict[str, None]:
        found: dict[str, None] = {}
        for body in _bodies(exchange):
            _find_pairs("", body, None, self._topic_name, found)
        return found

    def _topic(self, exchange: Exchange) -> str:
        return session_topics(exchange, self._topic_name)[0]


def record_counter(
    by: tuple[str, ...], topic_name: TopicNames | None
) -> tuple[int, Callable[[Exchange], RecordCounts]]:
    """Which dimension of a table says whose records they are (-1: none does), and what counts them."""
    kind = next((name for name in ("partition", "topic") if name in by), "")

    def count(exchange: Exchange) -> RecordCounts:
        request, response = exchange.request, exchange.response
        asked = request.body if request is not None and exchange.api_key == PRODUCE else None
        answered = response.body if response is not None and exchange.api_key in (FETCH, SHARE_FETCH) else None
        return _records(asked, kind, topic_name), _records(answered, kind, topic_name)

    return by.index(kind) if kind else -1, count


def _records(body: Body | None, kind: str, topic_name: TopicNames | None) -> dict[str, int]:
    counts: dict[str, int] = {}
    for topic, holder, _ in record_sets(body, topic_name):
        index = next((holder[name] for name in ("index", *PARTITION_FIELDS) if name in holder), -1)
        name = f"{topic}-{index}" if kind == "partition" else topic or "" if kind == "topic" else ""
        counts[name] = counts.get(name, 0) + sum(map(records_in, batches_in(holder)))
    return counts


def _bodies(exchange: Exchange) -> Iterator[Body]:
    for message in (exchange.request, exchange.response):
        if message is not None and message.body:
            yield message.body


def _find_pairs(
    parent: str, member: Body, topic: str | None, topic_name: TopicNames | None, found: dict[str, None]
) -> None:
    """The partitions of a structure with the topic that it or one above it is about."""
    topic = topic_of_struct(parent, member, topic_name) or topic
    for name, value in member.items():
        if isinstance(value, list):
            if name != "records":
                _find_in_list(name, value, topic, topic_name, found)
        elif isinstance(value, dict) and name != UNKNOWN_TAGS:
            _find_pairs(name, value, topic, topic_name, found)
        elif topic is not None and (name in PARTITION_FIELDS or (name == "index" and "partition" in parent)):
            found[f"{topic}-{value}"] = None


def _find_in_list(
    name: str, values: list[Any], topic: str | None, topic_name: TopicNames | None, found: dict[str, None]
) -> None:
    for value in values:
        if isinstance(value, dict):
            _find_pairs(name, value, topic, topic_name, found)
        elif topic is not None and isinstance(value, int) and name in PARTITION_LISTS:
            found[f"{topic}-{value}"] = None
