"""Records of Kafka's internal topics: what their keys and values hold.

Coordinators (``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``) write an INT16 record type
before the key and an INT16 version before the value. The metadata log has no keys; its values, and those of the
remote log metadata, begin with three varints: the version of this frame, the record type and its version (KIP-631).
A type or version that is not known stays bytes. What a coordinator wrote in another shape while it was on trial is
tried in that shape when it does not fit the later one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from kwiresniff import schema
from kwiresniff.base.api_keys import FETCH, FETCH_SNAPSHOT, PRODUCE, SHARE_FETCH
from kwiresniff.base.connect_records import is_config_topic, may_be_opened
from kwiresniff.base.known_ids import METADATA_TOPIC, METADATA_TOPIC_ID
from kwiresniff.codec.embedded.connect import open_connect_record
from kwiresniff.codec.embedded.embedded_format import VERSION_BYTES, Content
from kwiresniff.codec.embedded.groups import open_group_record
from kwiresniff.codec.embedded.openers import Openers, QuickLooks
from kwiresniff.codec.embedded.struct_view import StructView
from kwiresniff.codec.primitives import read_uvarint
from kwiresniff.errors import DecodeError
from kwiresniff.model import Body, Exchange, TopicNames

_REMOTE_LOG_TOPIC = "__remote_log_metadata"

#: How the names of the records in each topic begin; in ``__consumer_offsets`` they are those of no other.
_NAMES: dict[str, tuple[str, ...]] = {
    "__transaction_state": ("TransactionLog",),
    "__share_group_state": ("ShareSnapshot", "ShareUpdate"),
    _REMOTE_LOG_TOPIC: ("RemoteLog", "RemotePartition"),
    "__consumer_offsets": (),
    METADATA_TOPIC: (),
}
_PREFIXES = tuple(prefix for prefixes in _NAMES.values() for prefix in prefixes)
INTERNAL_TOPICS = frozenset(_NAMES)
_METADATA_LOGS = frozenset({METADATA_TOPIC, _REMOTE_LOG_TOPIC})
#: The only version that the frame of metadata records has had.
_FRAME_VERSION = 1


@lru_cache(None)
def _records(topic: str, role: str) -> dict[int, str]:
    """The names of the messages that play a role in the records of a topic, by record type."""
    prefixes = _NAMES[topic]
    return {
        record.number: name
        for name, record in schema.stored_records().items()
        if record.role == role and (name.startswith(prefixes) if prefixes else not name.startswith(_PREFIXES))
    }


def open_batches(struct: StructView, field: str, topic: str) -> None:
    """Opens the records of an internal ``topic``; ``field`` is the record set's name."""
    metadata = topic in _METADATA_LOGS
    for record in struct.records(field):
        if metadata:
            _open_metadata(record, topic)
        else:
            _open_coordinator(record, topic)


def _open_coordinator(record: StructView, topic: str) -> None:
    key, value = record.get("key"), record.get("value")
    if not isinstance(key, bytes) or len(key) < VERSION_BYTES:
        return
    number = int.from_bytes(key[:VERSION_BYTES], "big", signed=True)
    name = _records(topic, "coordinator-key").get(number)
    if name is not None:
        record.open("key", Content(name, 0, VERSION_BYTES))
    name = _records(topic, "coordinator-value").get(number)
    if name is None or not isinstance(value, bytes):
        return
    content = _known(name, int.from_bytes(value[:VERSION_BYTES], "big", signed=True), VERSION_BYTES)
    shapes = schema.earlier_shapes(name)
    if content is not None and shapes:
        for shape in (name, *shapes):
            if record.open("value", content._replace(message=shape, sure=False)) is not None:
                return
    inner = record.open("value", content)
    if inner is not None and name == "GroupMetadataValue":
        open_group_record(inner)


def _open_metadata(record: StructView, topic: str) -> None:
    value = record.get("value")
    if not isinstance(value, bytes):
        return
    try:
        frame_version, at = read_uvarint(value, 0)
        number, at = read_uvarint(value, at)
        version, at = read_uvarint(value, at)
    except DecodeError:
        return
    name = _records(topic, "metadata").get(number)
    if frame_version == _FRAME_VERSION and name is not None:
        record.open("value", _known(name, version, at))


def _known(name: str, version: int, start: int) -> Content | None:
    low, high = schema.data_versions(name)
    return Content(name, version, start) if low <= version <= high else None


def _fetch(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    for topic in struct.each("responses"):
        name = topic.get("topic") or _named(topic.get("topic_id"), topic_name)
        for partition in topic.each("partitions"):
            _open_batches(partition, name)


def _produce(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    for topic in struct.each("topic_data"):
        name = topic.get("name") or _named(topic.get("topic_id"), topic_name)
        for partition in topic.each("partition_data"):
            _open_batches(partition, name)


def _open_batches(partition: StructView, topic: Any) -> None:
    if topic in INTERNAL_TOPICS:
        open_batches(partition, "records", topic)
    else:
        for record in partition.records("records"):
            open_connect_record(record)


def _fetch_snapshot(struct: StructView, exchange: Exchange, topic_name: TopicNames) -> None:
    for topic in struct.each("topics"):
        name = topic.get("name")
        if name in INTERNAL_TOPICS:
            for partition in topic.each("partitions"):
                open_batches(partition, "unaligned_records", name)


def _named(topic_id: Any, topic_name: TopicNames) -> str | None:
    if not isinstance(topic_id, str):
        return None
    return METADATA_TOPIC if topic_id == METADATA_TOPIC_ID else topic_name(topic_id)


OPENERS: Openers = {
    (PRODUCE, "request"): _produce,
    (FETCH, "response"): _fetch,
    (FETCH_SNAPSHOT, "response"): _fetch_snapshot,
    (SHARE_FETCH, "response"): _fetch,
}


def _has_internal_topic(array: str, field: str) -> Callable[[Body, TopicNames], bool]:
    def has_internal_topic(body: Body, topic_name: TopicNames) -> bool:
        for topic in body.get(array) or ():
            name = topic.get(field)
            if name is None:
                name = _named(topic.get("topic_id"), topic_name)
            if name in INTERNAL_TOPICS or is_config_topic(name) or _has_connect_records(topic):
                return True
        return False

    return has_internal_topic


def _has_connect_records(topic: Body) -> bool:
    partitions = topic.get("partitions") or topic.get("partition_data") or ()
    return any(may_be_opened(partition.get("records")) for partition in partitions)


#: Nearly all of these messages are about users' topics: comparing names costs less than trying each.
QUICK_LOOKS: QuickLooks = {
    (PRODUCE, "request"): _has_internal_topic("topic_data", "name"),
    (FETCH, "response"): _has_internal_topic("responses", "topic"),
    (SHARE_FETCH, "response"): _has_internal_topic("responses", "topic"),
}
