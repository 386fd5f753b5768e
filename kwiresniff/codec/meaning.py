"""What a person wants to read beside a value: names of codes, times, durations, sizes, special numbers.

The field's enumeration comes first where the definitions name one; otherwise its name and type decide. A meaning
is one short phrase, or empty when the value speaks for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from kwiresniff import schema
from kwiresniff.model import TopicNames
from kwiresniff.schema.types import WireField

Meaning = Callable[[Any], str]

NO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
NO_OPERATIONS_ASKED = -(2**31)

#: Durations below this read well enough in milliseconds.
SHORTEST_READABLE_MS = 1000
#: Sizes below this read well enough in bytes.
SMALLEST_READABLE_SIZE = 1024

#: Unit, its milliseconds, and from how many milliseconds on it is used.
_DURATION_UNITS = (
    ("days", 86_400_000, 2 * 86_400_000),
    ("h", 3_600_000, 3_600_000),
    ("min", 60_000, 60_000),
    ("s", 1000, SHORTEST_READABLE_MS),
)
_SIZE_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: 9999-12-31: the last day a calendar can name.
_LAST_TIMESTAMP_MS = 253_402_300_799_999

#: Points in time whose names do not contain "timestamp".
_TIMES = frozenset({"log_append_time_ms", "transaction_start_time_ms"})

#: Names that stand for a position in a log.
_OFFSETS = frozenset({"offset", "high_watermark", "low_watermark", "last_stable_offset"})

#: Numbers with a meaning of their own, by field name. Sources: KIP-32 and KIP-79 (timestamps), KIP-98 (producer
#: ids), KIP-227 (fetch sessions), KIP-345 and KIP-848 (generations and member epochs), KIP-392 (read replica).
_SPECIAL: dict[str, dict[int, str]] = {
    "replica_id": {-1: "a consumer", -2: "a debugging consumer"},
    "session_epoch": {-1: "no fetch session", 0: "starts a fetch session"},
    "session_id": {0: "no fetch session"},
    "share_session_epoch": {-1: "closes the share session", 0: "starts a share session"},
    "preferred_read_replica": {-1: "the leader"},
    "generation_id": {-1: "no generation"},
    "generation_id_or_member_epoch": {-1: "no generation"},
    "member_epoch": {-2: "leaves, stays a static member", -1: "leaves the group", 0: "joins the group"},
    "producer_id": {-1: "none"},
    "producer_epoch": {-1: "none"},
    "leader_id": {-1: "no leader"},
    "controller_id": {-1: "no controller"},
    "committed_offset": {-1: "nothing committed"},
    "timestamp": {-1: "latest", -2: "earliest", -3: "largest timestamp", -4: "earliest local", -5: "latest tiered"},
    "num_partitions": {-1: "the broker's default"},
    "replication_factor": {-1: "the broker's default"},
    "retention_time_ms": {-1: "the broker's default"},
    "max_lifetime_ms": {-1: "the broker's default"},
}

#: Kafka's AclOperation codes, which number the bits of the authorized operations (KIP-430).
_OPERATIONS = {
    1: "ANY", 2: "ALL", 3: "READ", 4: "WRITE", 5: "CREATE", 6: "DELETE", 7: "ALTER", 8: "DESCRIBE",
    9: "CLUSTER_ACTION", 10: "DESCRIBE_CONFIGS", 11: "ALTER_CONFIGS", 12: "IDEMPOTENT_WRITE", 13: "CREATE_TOKENS",
    14: "DESCRIBE_TOKENS", 15: "TWO_PHASE_COMMIT",
}  # fmt: skip


def meaning_of(field: WireField, value: Any, topic_name: TopicNames | None = None) -> str:
    """The meaning of one value of a field; ``topic_name`` knows what topic ids the capture has told about."""
    if field.type == "UUID":
        return _uuid_meaning(field.name, value, topic_name)
    find = _meaning_by(field.name, field.type, field.enum)
    return find(value) if find else ""


@lru_cache(4096)  # distinct (name, type, enumeration) triples; all definitions together have about a thousand
def _meaning_by(name: str, wire_type: str, enum: str) -> Meaning | None:
    """How to tell the meaning of a field's values, or None when they never have one."""
    if enum == "error_code":
        return error_meaning
    if enum:
        return lambda value: schema.enum_value(enum, value) or _special(name, value)
    if wire_type not in ("INT8", "INT16", "INT32", "INT64"):
        return None
    if name == "api_key":
        return lambda value: schema.API_NAMES.get(value, "")
    if name.endswith("authorized_operations"):
        return operations_meaning
    by_size = _number_meaning(name, wire_type)
    if by_size is None and name not in _SPECIAL:
        return None
    return lambda value: _special(name, value) or (by_size(value) if by_size else "")


def _number_meaning(name: str, wire_type: str) -> Meaning | None:
    if wire_type == "INT64" and ("timestamp" in name or name in _TIMES):
        return time_meaning
    if name.endswith("_ms"):
        return duration_meaning
    if name.endswith("_bytes") or name in ("size", "partition_size"):
        return size_meaning
    if wire_type == "INT64" and (name in _OFFSETS or name.endswith("_offset")):
        return lambda value: "unknown" if value == -1 else ""
    if name.endswith("_epoch"):
        return lambda value: "unknown" if value == -1 else ""
    return None


def _special(name: str, value: Any) -> str:
    return _SPECIAL.get(name, {}).get(value, "")


def _uuid_meaning(name: str, value: str, topic_name: TopicNames | None) -> str:
    if value == NO_UUID:
        return "none"
    if topic_name and "topic" in name:
        return topic_name(value) or ""
    return ""


def error_meaning(code: int) -> str:
    """``NOT_LEADER_OR_FOLLOWER (retriable)``."""
    error = schema.error(code)
    return f"{error.name} (retriable)" if error.retriable else str(error.name)


def operations_meaning(bits: int) -> str:
    """The names of the operations whose bits are set; bits without a name by their number."""
    if bits == NO_OPERATIONS_ASKED:
        return "not asked for"
    return ", ".join(_OPERATIONS.get(bit, f"operation {bit}") for bit in range(32) if bits >> bit & 1)


def time_meaning(milliseconds: int) -> str:
    """Milliseconds since 1970 as a time in UTC; -1 is none, what no calendar holds is left alone."""
    if milliseconds == -1:
        return "none"
    if not 0 < milliseconds <= _LAST_TIMESTAMP_MS:
        return ""
    time = _EPOCH + timedelta(milliseconds=milliseconds)
    return f"{time:%Y-%m-%d %H:%M:%S}.{milliseconds % 1000:03d} UTC"


def duration_meaning(milliseconds: int) -> str:
    """A duration of a second or more in the largest units that tell it: ``1.5 s``, ``5 min``, ``7 days``."""
    if milliseconds in (INT32_MAX, INT64_MAX):
        return "no limit"
    for unit, size, least in _DURATION_UNITS:
        if milliseconds >= least:
            number = milliseconds / size
            return f"{number:.4g} {unit}" if number < 1000 else f"{number:.0f} {unit}"
    return ""


def size_meaning(size: int) -> str:
    """A size of a kibibyte or more: ``50 MiB``."""
    if size in (INT32_MAX, INT64_MAX):
        return "no limit"
    if size < SMALLEST_READABLE_SIZE:
        return ""
    power = min(len(_SIZE_UNITS), (size.bit_length() - 1) // 10)
    return f"{size / 1024**power:.4g} {_SIZE_UNITS[power - 1]}"
