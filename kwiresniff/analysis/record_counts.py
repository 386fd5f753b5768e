"""Counts and offsets of records, from the headers of record batches alone.

Sources: the protocol guide, "Record Batch" and "Message sets". Of a compressed message set of before Kafka 0.11 only
its content would show how many records it has; it counts as one.
"""

from __future__ import annotations

from kwiresniff.digest import offset_behind
from kwiresniff.model import Body


def batches_in(part: Body) -> list[Body]:
    """The record batches, or messages of before Kafka 0.11, of a partition that are whole."""
    records = part.get("records")
    batches = records if isinstance(records, list) else [records]
    return [batch for batch in batches if isinstance(batch, dict) and not batch.get("truncated")]


def records_in(batch: Body) -> int:
    """How many records a batch has; the marks of transactions are none."""
    if batch.get("is_control"):
        return 0
    count = batch.get("records_count")
    return count if isinstance(count, int) else 1


def base_of(batch: Body) -> int:
    """The offset of a batch's first record, -1 where it does not say."""
    offset = batch.get("base_offset", batch.get("offset", -1))
    return offset if isinstance(offset, int) else -1


def oldest_ms_of(batch: Body) -> int:
    """The timestamp of a batch's first record in milliseconds, -1 where it has none. A broker that stamps records when
    it appends them stamps all of a batch alike (KIP-32)."""
    field = "max_timestamp" if batch.get("timestamp_type") == "log_append_time" else "base_timestamp"
    found = batch.get(field, batch.get("timestamp", -1))
    return found if isinstance(found, int) else -1


def end_of(batch: Body) -> int:
    """The offset behind a batch's last record."""
    delta = batch.get("last_offset_delta", 0)
    return offset_behind(base_of(batch), delta if isinstance(delta, int) else 0)
