"""Records of Kafka's internal topics.

Coordinators (``__consumer_offsets``, ``__transaction_state``, ``__share_group_state``) write an INT16 record type
before the key and an INT16 version before the value. The metadata log has no keys; its values, and those of the
remote log metadata, begin with three varints: the version of this frame, the record type and its version (KIP-631).
A type or version that is not known stays bytes. What a coordinator wrote in another shape while it was on trial is
tried in that shape when it does not fit the later one.
"""

from __future__ import annotations

from functools import lru_cache

from kwiresniff import schema
from kwiresniff.base.known_ids import METADATA_TOPIC
from kwiresniff.codec.embedded.content import VERSION_BYTES, Content
from kwiresniff.codec.embedded.groups import open_group_record
from kwiresniff.codec.embedded.holder import Holder
from kwiresniff.codec.primitives import read_uvarint
from kwiresniff.errors import DecodeError

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


def open_batches(holder: Holder, field: str, topic: str) -> None:
    """The records of an internal topic; ``field`` is the record set's name."""
    metadata = topic in _METADATA_LOGS
    for record in holder.records(field):
        if metadata:
            _open_metadata(record, topic)
        else:
            _open_coordinator(record, topic)


def _open_coordinator(record: Holder, topic: str) -> None:
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


def _open_metadata(record: Holder, topic: str) -> None:
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
