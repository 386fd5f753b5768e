"""What statistics can be counted by beyond the usual, and the records in an exchange.

Partitions, groups and records are in bodies only, which must be decoded for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, TypeAlias

from kwiresniff.analysis.body_entities import groups_of, record_sets, session_topics, topic_of_struct
from kwiresniff.analysis.record_counts import batches_in, records_in
from kwiresniff.base.api_keys import FETCH, PRODUCE, SHARE_FETCH
from kwiresniff.base.entities import PARTITION_FIELDS, PARTITION_LISTS
from kwiresniff.model import Body, Exchange, TopicNames

NO_PARTITION: Final = "(no partition)"
NO_GROUP: Final = "(no group)"
NO_ERROR: Final = "(no error)"
NO_PRINCIPAL: Final = "(not authenticated)"
#: An incremental fetch of several topics: which of its partitions is whose, nobody says.
SESSION: Final = "(partitions of the fetch session)"

Keys: TypeAlias = Callable[[Exchange], Iterable[str]]
#: Records in the request and in the response, by topic or partition where the table is by those, else under "".
RecordCounts: TypeAlias = tuple[dict[str, int], dict[str, int]]


def by_host(exchange: Exchange) -> tuple[str, ...]:
    """The client's address without its port."""
    return (exchange.connection.client.rpartition(":")[0],)


def by_version(exchange: Exchange) -> tuple[str, ...]:
    """The API with its version."""
    return (f"{exchange.api or '(request missing)'} v{exchange.api_version}",)


def by_principal(exchange: Exchange) -> tuple[str, ...]:
    """The user that the connection has authenticated as by SASL."""
    return (str((exchange.connection.sasl or {}).get("principal") or NO_PRINCIPAL),)


def by_error(exchange: Exchange) -> Iterable[str]:
    """Each error code in the response once."""
    return dict.fromkeys(name for _, _, name, _ in exchange.errors) if exchange.errors else (NO_ERROR,)


def by_group(exchange: Exchange) -> Iterable[str]:
    """The groups that the exchange names: a member's Fetch names none."""
    return dict.fromkeys(group for body in _bodies(exchange) for group in groups_of(body) if group) or (NO_GROUP,)


def partitions_in(topic_name: TopicNames | None) -> Keys:
    """What gives the partitions of an exchange as ``topic-number``."""

    def partitions(exchange: Exchange) -> Iterable[str]:
        found: dict[str, None] = {}
        for body in _bodies(exchange):
            _find_pairs("", body, None, topic_name, found)
        fetched = exchange.fetched
        if fetched is not None and not found:
            topics = session_topics(exchange, topic_name)
            if len(topics) == 1:
                found.update((f"{topics[0]}-{partition}", None) for partition in fetched.partitions)
            if not found:
                return (SESSION,)
        return found or (NO_PARTITION,)

    return partitions


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
        elif isinstance(value, dict):
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
