"""Record sets: what a RECORDS field holds, as batch dicts.

A record set is any number of record batches (magic 2) and messages (magic 0 and 1) end to end; the magic is at
byte 16 of each. A fetch response may cut the last one short. Sources: protocol guide ("Record Batch", "Message
sets").
"""

from __future__ import annotations

from typing import Any

from kwiresniff.base.batch_layout import MAGIC_AT
from kwiresniff.codec.alignment import first_batch
from kwiresniff.codec.batch_header import batch_span, header_fields
from kwiresniff.codec.batch_nodes import are_too_many, node_count
from kwiresniff.codec.message_set import decode_message
from kwiresniff.codec.record_batch import decode_batch
from kwiresniff.codec.record_dissector import dissect_record_set
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.record_values import plain_batches
from kwiresniff.model import Problem, RecordsMode

__all__ = ["decode_record_set", "dissect_record_set", "plain_batches"]


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
    """The batches of ``buf[start:end]``; problems go to ``issues``. ``headers`` leaves records, CRCs and compressed
    data alone; ``skip`` gives ``{"size_bytes": n}``. Fields that could be read are kept; a cut last batch, or first one
    of an ``unaligned`` set, has ``truncated`` and is no problem. The sets of one message share a ``budget``.
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
    """The batches of a sound record set and the number of its nodes; None, with the ``budget`` restored, for any set
    with problems, messages, control records or too many nodes.
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
