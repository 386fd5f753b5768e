"""Names of topic ids (KIP-516), learned from messages, and configs that brokers have called sensitive."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from sys import getsizeof
from typing import ClassVar, NamedTuple

from kwiresniff import schema
from kwiresniff.base.api_keys import (
    CREATE_TOPICS,
    DELETE_TOPICS,
    DESCRIBE_CONFIGS,
    DESCRIBE_TOPIC_PARTITIONS,
    LEADER_AND_ISR,
    METADATA,
    UPDATE_METADATA,
)
from kwiresniff.base.entities import TOPIC_ID
from kwiresniff.base.known_ids import METADATA_TOPIC, METADATA_TOPIC_ID, ZERO_UUID
from kwiresniff.model import Body, Direction
from kwiresniff.session.secret_configs import SensitiveNames

#: Names remembered per run; a cluster has at most some 10,000s of topics, an attacker has any number.
MAX_TOPIC_NAMES = 100_000
#: Memory of names and ids. Kafka's names have up to 249 characters, usual ones some tens; 300 bytes each fit.
MAX_TOPIC_NAME_BYTES = 32 << 20
#: What an entry takes beside its texts.
_ENTRY_BYTES = 100

#: Where a message carries both: (api_key, direction) -> (array field, field of the name).
_NAMING: dict[tuple[int, str], tuple[str, str]] = {
    (METADATA, "response"): ("topics", "name"),
    (LEADER_AND_ISR, "request"): ("topic_states", "topic_name"),
    (UPDATE_METADATA, "request"): ("topic_states", "topic_name"),
    (CREATE_TOPICS, "response"): ("topics", "name"),
    (DELETE_TOPICS, "response"): ("responses", "name"),
    (DESCRIBE_TOPIC_PARTITIONS, "response"): ("topics", "name"),
}
#: Read in any case, for what they teach of others: names of topics, and which configs are sensitive.
NAMING_APIS = frozenset({DESCRIBE_CONFIGS, *(api_key for api_key, direction in _NAMING if direction == "response")})
NAMING_RESPONSES = frozenset(api_key for api_key, direction in _NAMING if direction == "response")


def names_topics(api_key: int, direction: str) -> bool:
    """Whether such a message carries both ids and names."""
    return (api_key, direction) in _NAMING


def carries_ids(api_key: int, version: int, direction: Direction) -> bool:
    """Whether a message that ``names_topics`` has topic ids at this version: older versions have none (KIP-516)."""
    array, _ = _NAMING[api_key, direction]
    fields = schema.message(api_key, version, direction).fields
    return any(one.name == TOPIC_ID for field in fields if field.name == array for one in field.fields)


class SavedTopics(NamedTuple):
    """The content of a topic name table: names by id, and sensitive configs (or that all may be)."""

    names: dict[str, str]
    sensitive: tuple[str, ...]
    all_sensitive: bool


class TopicNameTable:
    """A bounded map from topic id (Kafka's base64 text) to topic name. ``sensitive_configs`` are the configs that a
    broker has called so."""

    STATE: ClassVar[tuple[str, ...]] = ("_bytes", "_names", "forgotten", "sensitive_configs")

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._bytes = 0
        self.sensitive_configs = SensitiveNames()
        self.forgotten = 0  # names evicted because there were too many

    def name(self, topic_id: str) -> str | None:
        """The name of ``topic_id``, None where the traffic has not shown it; the metadata log's is always known."""
        return METADATA_TOPIC if topic_id == METADATA_TOPIC_ID else self._names.get(topic_id)

    @property
    def changes(self) -> int:
        """A number that changes when a topic name or a sensitive config is learned or evicted."""
        return len(self._names) + 2 * self.forgotten + len(self.sensitive_configs)

    def saved(self) -> SavedTopics:
        """All that is known, for another table."""
        return SavedTopics(dict(self._names), *self.sensitive_configs.saved())

    def restore(self, saved: SavedTopics) -> None:
        """Takes over what another table knows."""
        self.add(saved.names)
        self.sensitive_configs.restore(saved.sensitive, saved.all_sensitive)

    def add(self, names: Mapping[str, str]) -> None:
        """Adds names by id that come from elsewhere."""
        for topic_id, name in names.items():
            self._remember(topic_id, name)

    def learn(self, api_key: int, direction: str, body: Body) -> None:
        """Learns names, and sensitive configs, from a decoded body; bodies that have none are ignored."""
        place = _NAMING.get((api_key, direction))
        if place is None:
            return
        array, name_field = place
        for topic in body.get(array) or ():
            topic_id, name = topic.get(TOPIC_ID), topic.get(name_field)
            if topic_id and topic_id != ZERO_UUID and isinstance(name, str):
                self._remember(topic_id, name)

    def _remember(self, topic_id: str, name: str) -> None:
        self._forget(topic_id)
        self._names[topic_id] = name
        self._bytes += _entry_bytes(topic_id, name)
        if len(self._names) > MAX_TOPIC_NAMES or self._bytes > MAX_TOPIC_NAME_BYTES:
            self._make_room()

    def _make_room(self) -> None:
        """Forget the oldest names, some at once: the first of a dict is found behind the places of all before it."""
        for topic_id in list(islice(self._names, max(len(self._names) // 16, 1))):
            self._forget(topic_id)
            self.forgotten += 1

    def _forget(self, topic_id: str) -> None:
        name = self._names.pop(topic_id, None)
        if name is not None:
            self._bytes -= _entry_bytes(topic_id, name)


def _entry_bytes(topic_id: str, name: str) -> int:
    return getsizeof(topic_id) + getsizeof(name) + _ENTRY_BYTES
