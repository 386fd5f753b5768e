"""How records of Kafka Connect's config, offset and status topics are told from others; the topics may have any name.

Sources: KafkaConfigBackingStore, KafkaStatusBackingStore and OffsetStorageWriter of Kafka Connect.
"""

from __future__ import annotations

from typing import Any, Final

#: How the keys of source offsets begin.
_LIST: Final = b'["'
#: How the keys of config and status records begin.
KEYS: Final = (
    b"connector-", b"task-", b"commit-", b"target-state-", b"tasks-fencing-", b"restart-connector-", b"logger-cluster-",
    b"session-key", b"status-connector-", b"status-task-", b"status-topic-", _LIST,
)  # fmt: skip
#: How the values of configs begin, with and without a schema.
VALUES: Final = (b'{"properties"', b'{"schema"')
#: What is in the value of every config, and in the key of every source offset: ``["connector",{...}]``.
_PROPERTIES: Final = b'"properties"'
_PARTITION: Final = b'",{'
#: Whether the key of such a record may begin with a byte, by its number, and the byte that its value begins with.
KEY_BEGINS: Final = bytes(any(key[0] == byte for key in KEYS) for byte in range(256))
VALUE_BEGINS: Final = 0x7B


def may_be_connects(key: Any, value: Any) -> bool:
    """Whether a record may be one of Connect's."""
    if isinstance(key, bytes) and key.startswith(KEYS) and (_PARTITION in key or not key.startswith(_LIST)):
        return True
    return isinstance(value, bytes) and value.startswith(VALUES) and _PROPERTIES in value


def may_be_opened(batches: Any) -> bool:
    """Whether a decoded record set has a record that may be one of Connect's, or bytes that could not be read."""
    for batch in batches if isinstance(batches, list) else ():
        if any(isinstance(value, bytes) for value in batch.values()):
            return True
        for record in batch.get("records") or ():
            if may_be_connects(record.get("key"), record.get("value")):
                return True
    return False


def is_config_topic(name: Any) -> bool:
    """Whether a topic has a name such as Connect's config topic has in its examples and in most installations."""
    return isinstance(name, str) and "connect" in name.lower() and "config" in name.lower()
