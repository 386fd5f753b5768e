"""Records of Kafka Connect's internal topics: configs of connectors and tasks, states, source offsets, session keys.

Each is JSON; a key says what its value is. Source: KafkaConfigBackingStore, KafkaStatusBackingStore and
OffsetStorageWriter of Kafka Connect; KIP-507 (session keys).
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, NamedTuple

from kwiresniff.base.connect_records import may_be_connects
from kwiresniff.codec.embedded.struct_view import StructView
from kwiresniff.model import Body

#: The longest key or value that is read. Connect's producers send no more (``max.request.size``).
MAX_CONNECT_BYTES: Final = 1 << 20

SESSION_KEY: Final = "SessionKey"
_CONFIG: Final = "ConnectorConfig"
#: What a key looks like, what its value is called, and which fields that has: some of these and no others.
_SHAPES: Final = (
    (rb"connector-.", _CONFIG, {"properties"}),
    (rb"task-.+-\d+$", "TaskConfig", {"properties"}),
    (rb"commit-.", "TasksCommit", {"tasks"}),
    (rb"target-state-.", "TargetState", {"state", "state.v2"}),
    (rb"tasks-fencing-.", "TaskCount", {"task-count"}),
    (rb"restart-connector-.", "RestartRequest", {"include-tasks", "only-failed"}),
    (rb"logger-cluster-.", "LoggerLevel", {"level"}),
    (rb"session-key$", SESSION_KEY, {"key", "algorithm", "creation-timestamp"}),
    (rb"status-connector-.", "ConnectorStatus", {"state", "trace", "msg", "worker_id", "generation", "version"}),
    (rb"status-task-.+-\d+$", "TaskStatus", {"state", "trace", "msg", "worker_id", "generation", "version"}),
    (rb"status-topic-.+:connector-.", "TopicStatus", {"topic"}),
)


class ConnectRecord(NamedTuple):
    """The content of a Connect record: ``key`` of a source offset alone, ``value`` None for a tombstone."""

    message: str
    key: Body | None
    value: Body | None


def read_connect_record(key: Any, value: Any) -> ConnectRecord | None:
    """The content of a Connect record; None for any other record."""
    if not may_be_connects(key, value):
        return None
    data = _json(value)
    data = data["payload"] if isinstance(data, dict) and data.keys() == {"schema", "payload"} else data
    if value is not None and not isinstance(data, dict):
        return None
    if isinstance(key, bytes):
        for shape, message, fields in _SHAPES:
            if re.match(shape, key):
                told = data if data is None or (data.keys() and data.keys() <= fields) else None
                return ConnectRecord(message, None, told) if told is not None else None
        source = _json(key)
        if isinstance(source, dict) and source.keys() == {"schema", "payload"}:
            source = source["payload"]
        if isinstance(source, list) and [type(part) for part in source] == [str, dict]:
            return ConnectRecord("SourceOffset", {"connector": source[0], "partition": source[1]}, data)
    if data is not None and data.keys() == {"properties"} and _is_map(data["properties"]):
        return ConnectRecord(_CONFIG, None, data)
    return None


def _is_map(value: Any) -> bool:
    return isinstance(value, dict) and all(each is None or isinstance(each, str) for each in value.values())


def _json(raw: Any) -> Any:
    """The value of a JSON text; None for other bytes, and for too many."""
    if not isinstance(raw, bytes) or len(raw) > MAX_CONNECT_BYTES:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def open_connect_record(record: StructView) -> None:
    """Opens a record of any topic that is one of Connect's."""
    found = read_connect_record(record.get("key"), record.get("value"))
    if found is None:
        return
    for name, data in (("key", found.key), ("value", found.value)):
        if data is not None:
            title = found.message
            record.put(name, {"message": title, "version": None, "data": data}, title, _no_meaning)


def _no_meaning(name: str, value: Any) -> str:
    return ""
