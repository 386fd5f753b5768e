"""Record sets written by Kafka's Java clients, with what those clients read back (record_vectors/regenerate.sh)."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from functools import cache
from typing import Any

from tests.support.paths import TESTS

PATH = TESTS / "codec" / "data" / "record_vectors.jsonl.gz"


@cache
def vectors() -> tuple[dict[str, Any], ...]:
    with gzip.open(PATH, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        row["wire"] = b64decode(row["wire"])
        row["control"] = row.get("control")
        for batch in [row, *row.get("batches", ())]:
            if "records" in batch:
                batch["records"] = [_record(*record) for record in batch["records"]]
    return tuple(rows)


def vector(name: str) -> dict[str, Any]:
    return next(row for row in vectors() if row["name"] == name)


def all_records(row: dict[str, Any]) -> list[dict[str, Any]]:
    """The records of a vector, over all its batches."""
    return row["records"] if "records" in row else [record for batch in row["batches"] for record in batch["records"]]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _record(
    offset: int, timestamp: int | None, key: str | None, value: str | None, headers: list[Any]
) -> dict[str, Any]:
    pairs = [{"key": b64decode(k).decode(), "value": _bytes(v)} for k, v in headers]
    return {"offset": offset, "timestamp": timestamp, "key": _bytes(key), "value": _bytes(value), "headers": pairs}
