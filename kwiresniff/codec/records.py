"""Record sets: what a RECORDS field holds, to batch dicts and back.

A record set is any number of record batches (magic 2) and messages (magic 0 and 1) end to end; the magic is at
byte 16 of each. A fetch response may cut the last one short. Sources: protocol guide ("Record Batch", "Message
sets").
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kwiresniff.base.batch_layout import MAGIC_AT
from kwiresniff.codec.alignment import first_batch
from kwiresniff.codec.batch_header import LEAST_BYTES, batch_span, header_fields
from kwiresniff.codec.batch_nodes import are_too_many, node_count
from kwiresniff.codec.message_set import decode_message, encode_message
from kwiresniff.codec.record_batch import decode_batch
from kwiresniff.codec.record_batch_encoder import encode_batch
from kwiresniff.codec.record_dissector import dissect_record_set
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.record_values import plain_batches
from kwiresniff.errors import EncodeError
from kwiresniff.model import Problem, RecordsMode

__all__ = ["decode_record_set", "dissect_record_set", "encode_record_set", "plain_batches"]


def decode_record_set(
    buf: bytes,
    start: int,
    end: int,
    mode: RecordsMode,
    issues: list[Problem],
    budget: RecordBudget | None = None,
    *,
    unaligned: bool = False,
) -> list[dict[str, Any]] | dict[str, int]:
    """The batches of ``buf[start:end]``; never raises for bad bytes but appends problems to ``issues``.

    ``headers`` leaves records, CRCs and compressed data alone; ``skip`` gives only ``{"size_bytes": n}``. What
    cannot be decoded is still there with the fields that could be read, and its problem. A last batch that is cut
    short has ``truncated`` and is no problem; so has the rest of a batch at the start of an ``unaligned`` set. The
    record sets of one message share a ``budget``.
    """
    if mode == "skip":
        return {"size_bytes": end - start}
    full = mode == "full"
    budget = budget or RecordBudget(end - start)
    batches: list[dict[str, Any]] = []
    pos = first_batch(buf, start, end) if unaligned else start
    if pos > start:
        batches.append({"truncated": True, "size_bytes": pos - start})
    while pos < end:
        if too_many := budget.take_batch(pos):
            issues.append(too_many)
            batches.append({"size_bytes": end - pos})
            break
        stop, magic, trouble = batch_span(buf, pos, end)
        if trouble is not None:
            issues.append(trouble)
        if magic == 2:
            batches.append(decode_batch(buf, pos, stop, full, issues, budget))
        elif magic >= 0:
            batches.append(decode_message(buf, pos, stop, full, issues, budget))
        elif trouble is not None:
            batches.append({**_known(buf, pos, min(pos + MAGIC_AT + 1, stop)), "size_bytes": stop - pos})
        else:
            batches.append({"truncated": True, "size_bytes": stop - pos, **_known(buf, pos, stop)})
        pos = stop
    return batches


def decode_sound(
    buf: bytes, start: int, end: int, budget: RecordBudget, *, unaligned: bool = False
) -> tuple[list[dict[str, Any]], int] | None:
    """The batches of a record set with which nothing is wrong, and how many nodes the dissector makes of them; None,
    and the ``budget`` as it was, for any other.

    It reads messages of magic 0 and 1, control records, and sets of more nodes than it keeps, itself.
    """
    before = budget.state()
    issues: list[Problem] = []
    batches = decode_record_set(buf, start, end, "full", issues, budget, unaligned=unaligned)
    if not issues and isinstance(batches, list):
        counts = list(map(node_count, batches))
        if 0 not in counts and not are_too_many(sum(counts)):
            return batches, sum(counts)
    budget.restore(before)
    return None


def _known(buf: bytes, pos: int, end: int) -> dict[str, int]:
    return {name: value for name, _, _, _, value in header_fields(buf, pos, end)}


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
        if "records" not in batch or magic not in LEAST_BYTES:
            raise EncodeError(f"a batch of magic {magic} {'without records' if magic in LEAST_BYTES else ''}".rstrip())
        try:
            parts.append((encode_batch if magic == 2 else encode_message)(batch, keep_crc=keep_crc))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise EncodeError(f"a record batch that cannot be encoded: {error!r}") from error
    return b"".join(parts)
