"""Control records, which transaction coordinators and KRaft write between the records of users.

The key is two INT16, version and type. The value begins with its own INT16 version. A type or a value that is not
understood keeps its bytes. Sources: protocol guide ("Control Batches"), KIP-98, KIP-595, KIP-630, KIP-853.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kwiresniff import schema
from kwiresniff.codec.value_reader import message_decoder
from kwiresniff.errors import KwiresniffError

if TYPE_CHECKING:
    from kwiresniff.codec.value_reader import Decoder

#: Type number to (name, the stored message that the value holds).
CONTROL_TYPES: dict[int, tuple[str, str]] = {
    0: ("abort", "EndTxnMarker"),
    1: ("commit", "EndTxnMarker"),
    2: ("leader_change", "LeaderChangeMessage"),
    3: ("snapshot_header", "SnapshotHeaderRecord"),
    4: ("snapshot_footer", "SnapshotFooterRecord"),
    5: ("kraft_version", "KRaftVersionRecord"),
    6: ("kraft_voters", "VotersRecord"),
}

#: Decoders kept; the six messages above have had fewer than ten versions together.
KEPT = 64

_KEY = struct.Struct(">hh")
_MARKER = struct.Struct(">hi")


def control_of(key: bytes | None, value: bytes | None) -> dict[str, Any]:
    """The ``type``, ``version`` and fields of a control record; ``unknown`` or the bytes where unreadable."""
    if key is None or len(key) < _KEY.size:
        return {"type": "unknown", "version": None}
    version, number = _KEY.unpack_from(key)
    name, message = CONTROL_TYPES.get(number, (f"unknown({number})", ""))
    if value is None or len(value) < 2:
        return {"type": name, "version": version}
    control: dict[str, Any] = {"type": name, "version": int.from_bytes(value[:2], "big", signed=True)}
    if message == "EndTxnMarker":
        if len(value) >= _MARKER.size:
            control["coordinator_epoch"] = _MARKER.unpack_from(value)[1]
        return control
    fields = _stored_message(message, control["version"], value) if message else None
    return {**control, **fields} if fields is not None else {**control, "value": value}


def _stored_message(name: str, version: int, value: bytes) -> dict[str, Any] | None:
    try:
        fields, end = _decoder(name, version)(value, 0, [])
    except KwiresniffError:
        return None
    return fields if end == len(value) else None


@lru_cache(KEPT)
def _decoder(name: str, version: int) -> Decoder:
    """The decoder of a stored message; raises SchemaError for any other."""
    return message_decoder(schema.data_message(name, version))
