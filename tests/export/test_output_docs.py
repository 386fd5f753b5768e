"""The description of the output names every member there is."""

from __future__ import annotations

from pathlib import Path

from kwiresniff.export.flat import COLUMNS
from kwiresniff.export.json_objects import connection_json, exchange_json, stat_json
from kwiresniff.export.parquet import BODY_COLUMNS
from kwiresniff.results.stats import LatencySummary, StatRow
from tests.support.exchanges import connection, exchange

TEXT = (Path(__file__).parents[2] / "docs" / "output.md").read_text()


def test_every_member_is_described() -> None:
    behind = connection()
    behind.proxied = {"client": None, "broker": None, "by": ""}
    summary = LatencySummary(1, 1, 1, 1, 1, 1, 1, 1, ((1_000, 1),))
    made = exchange_json(exchange(notes=[{}]), ["a", "b"])
    row = stat_json(StatRow((), (), 1, 0, 0, 1, 1, summary, (("long poll", summary),), summary, summary, summary))
    names = {*made, *made["request"], *made["timing"], *connection_json(behind), *row, *row["latency"]}
    assert [name for name in sorted(names) if f"`{name}`" not in TEXT and f'"{name}"' not in TEXT] == []


def test_every_column_is_described() -> None:
    columns = {*[name for name, _ in COLUMNS], *BODY_COLUMNS}
    responses = {name for name in columns if name.startswith("response_")} - set(BODY_COLUMNS)
    assert [name for name in sorted(columns - responses) if f"`{name}`" not in TEXT] == []
