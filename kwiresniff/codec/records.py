"""Record sets: what a RECORDS field holds, to batch dicts and back.

A record set is any number of record batches (magic 2) and messages (magic 0 and 1) end to end; the magic is at
byte 16 of each. A fetch response may cut the last one short. Sources: protocol guide ("Record Batch", "Message
sets").
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from kwiresniff.codec.batch import HEADER, HEADER_BYTES, LOG_OVERHEAD, decode_batch, encode_batch
from kwiresniff.codec.messageset import FRONT, MIN_MESSAGE_BYTES, decode_message, encode_message
from kwiresniff.codec.record_limits import MAX_BATCH_BYTES, Budget
from kwiresniff.errors import EncodeError
from kwiresniff.model import Problem, RecordsMode

MAGIC_OFFSET = 16

_LEAST_BYTES = {**MIN_MESSAGE_BYTES, 2: HEADER_BYTES}
_offset_and_size = struct.Struct(">qi").unpack_from


def decode_record_set(
    buf: bytes, start: int, end: int, mode: RecordsMode, issues: list[Problem]
) -> list[dict[str, Any]] | dict[str, int]:
    """The batches of ``buf[start:end]``; never raises for bad bytes but appends problems to ``issues``.

    ``headers`` leaves records, CRCs and compressed data alone; ``skip`` gives only ``{"size_bytes": n}``. What
    cannot be decoded is still there with the fields that could be read, and its problem. A last batch that is cut
    short has ``truncated`` and is no problem.
    """
    if mode == "skip":
        return {"size_bytes": end - start}
    full = mode == "full"
    budget = Budget()
    batches: list[dict[str, Any]] = []
    pos = start
    while pos < end:
        stop, magic, trouble = batch_span(buf, pos, end)
        if trouble is not None:
            issues.append(trouble)
        if magic == 2:
            batches.append(decode_batch(buf, pos, stop, full, issues, budget))
        elif magic >= 0:
            batches.append(decode_message(buf, pos, stop, full, issues, budget))
        elif trouble is not None:
            batches.append({**known_fields(buf, pos, min(pos + MAGIC_OFFSET + 1, stop)), "size_bytes": stop - pos})
        else:
            batches.append({"truncated": True, "size_bytes": stop - pos, **known_fields(buf, pos, stop)})
        pos = stop
    return batches


def batch_span(buf: bytes, pos: int, end: int) -> tuple[int, int, Problem | None]:
    """Where the batch at ``pos`` ends, and its magic; -1 when it cannot be decoded, with the problem unless it is
    merely cut short. Without a usable length the batch takes the rest of the set."""
    if end - pos < LOG_OVERHEAD:
        return end, -1, None
    _, size = _offset_and_size(buf, pos)
    stop = pos + LOG_OVERHEAD + size
    magic = buf[pos + MAGIC_OFFSET] if pos + MAGIC_OFFSET < end else None
    least = MIN_MESSAGE_BYTES[0] if magic is None else _LEAST_BYTES.get(magic, MAGIC_OFFSET + 1)
    if stop - pos < least or size > MAX_BATCH_BYTES:
        return end, -1, Problem("bad_batch_length", f"a batch of {size} bytes", pos + 8)
    if magic is not None and magic not in _LEAST_BYTES:
        return min(stop, end), -1, Problem("unknown_magic", f"magic {magic} is not known", pos + MAGIC_OFFSET)
    if stop > end:
        return end, -1, None
    assert magic is not None  # the least size reaches past it
    return stop, magic, None


_FRONT_NAMES = ("base_offset", "message_size", "crc", "magic", "attributes")
_HEADER_NAMES = (
    "base_offset", "batch_length", "partition_leader_epoch", "magic", "crc", "attributes", "last_offset_delta",
    "base_timestamp", "max_timestamp", "producer_id", "producer_epoch", "base_sequence", "records_count",
)  # fmt: skip


def known_fields(buf: bytes, pos: int, end: int) -> dict[str, int]:
    """The header fields that lie completely inside ``buf[pos:end]``, whichever format it is."""
    legacy = end - pos > MAGIC_OFFSET and buf[pos + MAGIC_OFFSET] < 2
    layout, names = (FRONT, _FRONT_NAMES) if legacy else (HEADER, _HEADER_NAMES)
    fields: dict[str, int] = {}
    at = pos
    for name, code in zip(names, layout.format[1:], strict=True):
        size = struct.calcsize(">" + code)
        if at + size > end:
            break
        (fields[name],) = struct.unpack_from(">" + code, buf, at)
        at += size
    return fields


def encode_record_set(batches: Iterable[dict[str, Any]], *, keep_crc: bool = False) -> bytes:
    """The record set as bytes, from dicts as ``decode_record_set`` gives them in full mode.

    Uncompressed batches come back byte for byte, unless a broker has replaced their timestamps. Batches that were
    cut short have nothing to write and are left out. ``keep_crc`` writes the CRCs that are given instead of the
    right ones. Raises EncodeError for a batch without records or with an unknown magic.
    """
    parts: list[bytes] = []
    for batch in batches:
        if batch.get("truncated"):
            continue
        magic = batch.get("magic", 2)
        if "records" not in batch or magic not in _LEAST_BYTES:
            raise EncodeError(f"a batch of magic {magic} {'without records' if magic in _LEAST_BYTES else ''}".rstrip())
        try:
            parts.append((encode_batch if magic == 2 else encode_message)(batch, keep_crc=keep_crc))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EncodeError(f"a record batch that cannot be encoded: {error!r}") from error
    return b"".join(parts)
