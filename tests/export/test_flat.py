"""Rows of CSV and Parquet say what the JSON of their exchange says."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.export.csv_lines import MAX_KEPT
from kwiresniff.export.encode import json_text
from kwiresniff.export.escaping import escape_cell
from kwiresniff.export.flat import COLUMNS
from kwiresniff.export.json_objects import exchange_json
from kwiresniff.export.writers import WRITERS
from kwiresniff.model import Exchange
from kwiresniff.session import Analyzer
from tests.support.events import analyze_with
from tests.support.exported import recorded
from tests.support.odd_exchanges import EXCHANGES, FILES


def flat(exchange: Exchange, files: tuple[str, ...]) -> dict[str, Any]:
    """The values of a row, taken from the JSON object member by member; None for what is not there."""
    whole = exchange_json(exchange, files)
    row: dict[str, Any] = {name: whole.get(name) for name, _ in COLUMNS}
    row["waiting"] = exchange.waiting or None
    row |= {name: whole["timing"][name] for name in ("queued_ns", "held_ns", "broker_ns")}
    for side in ("request", "response"):
        for name, value in (whole[side] or {}).items():
            row[f"{side}_{name}"] = value
        body = (whole[side] or {}).get("body")
        row[f"{side}_body"] = None if body is None else json.loads(json_text(body))
    row["error_count"] = len(whole["errors"])
    row["errors"] = " ".join(dict.fromkeys(one["name"] for one in whole["errors"])) or None
    row["problems"] = " ".join(dict.fromkeys(one["code"] for one in whole["problems"])) or None
    return row


def written(form: str, exchanges: list[Exchange], files: tuple[str, ...]) -> bytes:
    out = io.BytesIO()
    writer = WRITERS[form](out, files)
    for exchange in exchanges:
        writer.write(exchange)
    writer.close()
    return out.getvalue()


def check(exchanges: list[Exchange], files: tuple[str, ...]) -> None:
    expected = [flat(one, files) for one in exchanges]
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow([name for name, _ in COLUMNS])
    for row in expected:
        values = [row[name] for name, _ in COLUMNS]
        lines.writerow([escape_cell(value) if isinstance(value, str) else value for value in values])
    assert written("csv", exchanges, files) == text.getvalue().encode()
    table = pyarrow.parquet.read_table(io.BytesIO(written("parquet", exchanges, files)))
    table.validate(full=True)
    assert table.column_names == [*(name for name, _ in COLUMNS), "request_body", "response_body"]
    for found, row in zip(table.to_pylist(), expected, strict=True):
        bodies = {f"{side}_body": found.pop(f"{side}_body") for side in ("request", "response")}
        assert {name: text and json.loads(text) for name, text in bodies.items()} == {
            name: row[name] for name in bodies
        }
        assert found == {name: row[name] for name, _ in COLUMNS}


@pytest.mark.parametrize("files", [(), FILES[:1], FILES], ids=len)
def test_rows_say_what_the_objects_say(files: tuple[str, ...]) -> None:
    """Whatever is missing, out of order, quoted or escaped."""
    check([*EXCHANGES.values(), *reversed(EXCHANGES.values())], files)


@pytest.mark.parametrize("capture", recorded()[::8], ids=lambda path: path.name)
def test_rows_of_recordings_say_what_the_objects_say(capture: Path) -> None:
    """With bodies as text where the build has them so."""
    events = analyze_with(Analyzer(Needs("records", text=json_text)), open_captures([str(capture)]))
    check([event for event in events if isinstance(event, Exchange)], (str(capture),))


def test_a_time_that_no_column_holds_is_null() -> None:
    """A capture may claim any time; a number of more than 64 bits is no reason to lose the others."""
    one = EXCHANGES["usual"]
    for message in (one.request, one.response):
        assert message is not None
        message.first_ns += 1 << 64
        message.last_ns += 1 << 64
    try:
        (row,) = pyarrow.parquet.read_table(io.BytesIO(written("parquet", [one], ()))).to_pylist()
    finally:
        for message in (one.request, one.response):
            assert message is not None
            message.first_ns -= 1 << 64
            message.last_ns -= 1 << 64
    assert (row["request_timestamp_ns"], row["response_timestamp_ns"], row["latency_ns"]) == (None, None, 1_000_000)


def test_more_names_than_are_kept_are_written_all_the_same() -> None:
    """A client id that the writer no longer keeps in its encoded form is encoded again."""
    ids = [f"client-{number}" for number in range(MAX_KEPT + 5)] * 2
    one = EXCHANGES["usual"]
    before = one.client_id
    out = io.BytesIO()
    writer = WRITERS["csv"](out, ())
    for one.client_id in ids:
        writer.write(one)
    one.client_id = before
    rows = csv.DictReader(io.StringIO(out.getvalue().decode()))
    assert [row["client_id"] for row in rows] == ids
