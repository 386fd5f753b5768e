"""Topics, groups, transactional ids and partitions that a decoded body names.

Works on any body by the names Kafka gives its fields, so it needs no table per API and keeps working for APIs that
come later. Record batches are not entered: names are never inside them.
"""

from __future__ import annotations

from typing import Any, Final

from kwiresniff.base.api_keys import FETCH
from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.base.entities import (
    GROUP_FIELDS,
    GROUP_LISTS,
    PARTITION_LISTS,
    RECORD_SETS,
    RESOURCE_FIELD,
    RESOURCE_NAME,
    TOPIC_FIELDS,
    TOPIC_ID,
    TOPIC_LISTS,
    TOPIC_RESOURCE,
    TRANSACTION_FIELDS,
    TRANSACTION_LISTS,
    holds_topics,
    is_partition,
)
from kwiresniff.base.field_values import field_number, name_text
from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.model import Body, Exchange, Message, TopicNames

#: Members that hold no names of ours: record batches, and tagged fields of which nothing but the number is known.
_NAMELESS: Final = frozenset({"records", UNKNOWN_TAGS})
#: Fields that are no containers and name something, alone or with others of their structure.
_TELLING: Final = frozenset({*TOPIC_FIELDS, "name", TOPIC_ID, RESOURCE_FIELD, *GROUP_FIELDS, *TRANSACTION_FIELDS})
#: The coordinator key types of FindCoordinator.
_GROUP_KEY = 0
_TRANSACTION_KEY = 1


class Names:
    """The topics, groups and transactional ids that a body names, each once, in order."""

    __slots__ = ("groups", "topics", "transactional_ids")

    def __init__(self) -> None:
        self.topics: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.transactional_ids: dict[str, None] = {}


def names_of(body: Body | None, topic_name: TopicNames | None = None) -> Names:
    """The names in a body. A topic id stands for its name when ``topic_name`` knows it, else for itself."""
    found = Names()
    if body is not None:
        _find_names("", body, topic_name, found)
        if "key" in body or "coordinator_keys" in body:
            _find_keys(body, found)
    return found


def message_names(message: Message | None, topic_name: TopicNames | None = None) -> Names:
    """The names in a message, decoded or not."""
    digest = message.digest if message is not None else None
    if digest is None:
        return names_of(message.body if message is not None else None, topic_name)
    found = Names()
    for topic in digest.topics or ():
        found.topics[topic] = None
    for topic_id in digest.topic_ids or ():
        found.topics[(topic_name(topic_id) if topic_name is not None else None) or topic_id] = None
    for group in digest.groups or ():
        found.groups[group] = None
    for transactional_id in digest.transactional_ids or ():
        found.transactional_ids[transactional_id] = None
    return found


def message_topics(message: Message | None, topic_name: TopicNames | None = None) -> list[str]:
    """The topics that a message names, each once, decoded or not."""
    return list(message_names(message, topic_name).topics)


def message_groups(message: Message | None) -> list[str]:
    """The groups that a message names, each once, decoded or not."""
    return list(message_names(message).groups)


def message_transactional_ids(message: Message | None) -> list[str]:
    """The transactional ids that a message names, each once, decoded or not."""
    return list(message_names(message).transactional_ids)


def replica_id_of(request: Message | None) -> int:
    """The node id that a follower gives in a request, -1 where there is none."""
    if request is None:
        return -1
    if request.digest is not None:
        return request.digest.replica_id
    body = request.body or {}
    state = body.get("replica_state")
    replica_id = body.get("replica_id", state.get("replica_id", -1) if isinstance(state, dict) else -1)
    return replica_id if isinstance(replica_id, int) else -1


#: ``isolation_level`` of consumers that read what is committed.
READ_COMMITTED: Final = 1


def is_transactional(request: Message | None, api_key: int) -> bool:
    """Whether a Produce request may be part of a transaction, or a Fetch request reads committed records only."""
    if request is None:
        return False
    if api_key == FETCH:
        return isolation_level(request) == READ_COMMITTED
    return request.digest is None or bool(request.digest.transactional_ids)


def isolation_level(request: Message) -> int:
    """``isolation_level`` of a Fetch, which stands behind numbers; -1 where it has none (before version 4)."""
    frame, at = request.frame, request.body_offset + (12 if request.version >= 15 else 16)
    if frame is None:
        return int((request.body or {}).get("isolation_level", -1))
    return frame[at] if request.version >= 4 and at < len(frame) else -1


def throttle_ms_of(response: Message | None) -> int:
    """``throttle_time_ms`` of a response, 0 where it has none."""
    if response is None:
        return 0
    if response.digest is not None:
        return response.digest.throttle_time_ms
    body = response.body
    return field_number(body.get("throttle_time_ms")) if body is not None else 0


def acks_of(produce: Message | None) -> int:
    """``acks`` of a Produce request, 0 where it is not known."""
    if produce is None:
        return 0
    if produce.digest is not None:
        return produce.digest.acks
    return field_number((produce.body or {}).get("acks"))


#: Stands for the topics of a session nothing of which has been named yet.
EARLIER_SESSION = "(session from before the capture)"


def session_topics(exchange: Exchange, topic_name: TopicNames | None = None, most: int | None = None) -> list[str]:
    """The first ``most`` topics, or all, of the fetch session that an exchange belongs to."""
    fetched = exchange.fetched
    if fetched is None:
        return []
    topics = fetched.topics[:most]
    return topics if topic_name is None else [topic_name(topic) or topic for topic in topics]


def _find_names(parent: str, member: Body, topic_name: TopicNames | None, found: Names) -> None:
    """One pass in one function: this is asked of every body that has no digest, and generators cost three times as
    much. Of a structure its topic comes first, then all in the order of its fields.

    Recursion is as deep as the message definitions, which do not recurse.
    """
    may_be_topic = True
    for name, value in member.items():
        kind = value.__class__
        if kind is list or kind is dict:
            if not value or name in _NAMELESS:
                continue
            if may_be_topic:
                _find_topic(parent, member, topic_name, found)
                may_be_topic = False
            if kind is dict:
                _find_names(name, value, topic_name, found)
            elif value[0].__class__ is dict:
                for item in value:
                    if item.__class__ is dict:
                        _find_names(name, item, topic_name, found)
            elif name in TOPIC_LISTS:
                _find_texts(value, found.topics)  # some are indexes into another array
            elif name in GROUP_LISTS:
                _find_texts(value, found.groups)
            elif name in TRANSACTION_LISTS:
                _find_texts(value, found.transactional_ids)
        elif name in _TELLING:
            if name in GROUP_FIELDS:
                if text := name_text(value):
                    found.groups[text] = None
            elif name in TRANSACTION_FIELDS:
                if text := name_text(value):
                    found.transactional_ids[text] = None
            elif may_be_topic:
                _find_topic(parent, member, topic_name, found)
                may_be_topic = False


def _find_topic(parent: str, member: Body, topic_name: TopicNames | None, found: Names) -> None:
    topic = topic_of_struct(parent, member, topic_name)
    if topic is not None:
        found.topics[topic] = None


def _find_keys(body: Body, found: Names) -> None:
    """The keys of FindCoordinator, groups or transactions; before version 1 there are only groups. Quotas
    have a field of that name too, but never at the root.
    """
    key_type = body.get("key_type", _GROUP_KEY)
    asked = found.groups if key_type == _GROUP_KEY else found.transactional_ids
    if key_type in (_GROUP_KEY, _TRANSACTION_KEY):
        _find_texts([body.get("key")], asked)
        keys = body.get("coordinator_keys")
        if isinstance(keys, list):
            _find_texts(keys, asked)


def topic_of_struct(parent: str, member: Body, topic_name: TopicNames | None) -> str | None:
    """The topic that a structure in the array ``parent`` is about."""
    for field in TOPIC_FIELDS:
        if field in member and (text := name_text(member[field])):
            return text
    if "name" in member and holds_topics(parent) and (text := name_text(member["name"])):
        return text
    if "topic_id" in member:
        topic_id = member["topic_id"]
        if topic_id.__class__ is str and topic_id != ZERO_UUID:
            return (topic_name(topic_id) if topic_name is not None else None) or str(topic_id)
    if RESOURCE_FIELD in member and member[RESOURCE_FIELD] == TOPIC_RESOURCE:
        return name_text(member.get(RESOURCE_NAME))
    return None


def groups_of_member(request: Body) -> list[str]:
    """The group that a request names which a member of it sends; an admin client names groups, and is in none."""
    if "member_id" not in request:
        return []
    return [text for name in GROUP_FIELDS if (text := name_text(request.get(name)))]


def partitions_of(body: Body | None) -> list[int]:
    """The partition numbers in a body, each once, in order."""
    found: dict[int, None] = {}
    if body is not None:
        _find_partitions("", body, found)
    return list(found)


def _find_partitions(parent: str, member: Body, found: dict[int, None]) -> None:
    """In one function, as ``_find_names`` is: a third of what generators cost."""
    for name, value in member.items():
        kind = value.__class__
        if kind is int:
            if is_partition(name, parent, is_list=False):
                found[value] = None
        elif kind is list:
            if not value or name == "records":
                continue
            if value[0].__class__ is dict:
                for item in value:
                    if item.__class__ is dict:
                        _find_partitions(name, item, found)
            elif name in PARTITION_LISTS:
                for item in value:
                    if item.__class__ is int:
                        found[item] = None
        elif kind is dict and name != UNKNOWN_TAGS:
            _find_partitions(name, value, found)


def _find_texts(values: list[Any], found: dict[str, None]) -> None:
    for value in values:
        text = name_text(value)
        if text is not None:
            found[text] = None


def record_sets(body: Body | None, topic_name: TopicNames | None = None) -> list[tuple[str | None, Body, Any]]:
    """Every record set of a body: the topic's name as far as it is known, the structure that holds it, and
    the list of batches (or whatever else stands there)."""
    found: list[tuple[str | None, Body, Any]] = []
    todo: list[tuple[str, Body, str | None]] = [] if body is None else [("", body, None)]
    while todo:
        parent, member, topic = todo.pop()
        topic = topic_of_struct(parent, member, topic_name) or topic
        for name, value in member.items():
            if name in RECORD_SETS:
                found.append((topic, member, value))
            elif isinstance(value, list) and value and isinstance(value[0], dict):
                todo += [(name, item, topic) for item in value if isinstance(item, dict)]
    return found
