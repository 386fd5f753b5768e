"""Exchanges that are not wanted are not read, and the others are what they are without a choice."""

from __future__ import annotations

import datetime
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.errors import KwiresniffError
from kwiresniff.export.table_columns import HEADER_COLUMNS, TABLES
from kwiresniff.pipeline import software as software_module
from kwiresniff.pipeline.batches import table_batches
from kwiresniff.pipeline.choice import Condition, conditions
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.plan import WorkUnit, file_at, find_sources
from kwiresniff.pipeline.software import check_software, software
from kwiresniff.pipeline.unit_reader import Settings
from tests.support.exported import exchange_of, exchanges, export, recorded
from tests.support.paths import CAPTURES

CAPTURE = CAPTURES / "java-group-classic.pcap"


def rows(table: str, capture: Path, settings: Settings, names: list[str] | None = None) -> list[dict[str, Any]]:
    (source,) = find_sources([str(capture)])
    return [row for batch in table_batches(table, WorkUnit(source), settings, names or ()) for row in batch.to_pylist()]


@pytest.mark.parametrize("capture", recorded()[::5], ids=lambda path: path.name)
def test_columns_that_need_no_body_are_the_same_without_one(capture: Path) -> None:
    """So a count, or a sum of sizes, decodes nothing."""
    names = [column.name for column in TABLES["exchanges"] if column.name in HEADER_COLUMNS]
    whole = rows("exchanges", capture, Settings())
    assert rows("exchanges", capture, Settings(depth="headers"), names) == [
        {name: row[name] for name in names} for row in whole
    ]


@pytest.mark.parametrize(
    "where", ["api == JoinGroup", "latency > 1ms and topic == orders", "error != 0", "request.body.group_id ~ 'a'"]
)
def test_an_expression_lets_through_what_export_lets_through(where: str, tmp_path: Path) -> None:
    """Whether it asks for headers, errors or bodies."""
    objects = export(tmp_path / "out.jsonl", CAPTURE, options=["-Y", where])
    settings = Settings(where=where)
    assert [exchange_of(row) for row in rows("exchanges", CAPTURE, settings)] == exchanges(objects)
    connections = [value["connection"] for value in objects if value["kind"] == "connection"]
    assert [row["connection_id"] for row in rows("connections", CAPTURE, settings)] == connections


def test_conditions_leave_what_fulfils_all_of_them() -> None:
    """On each column, one value or several; exchanges that tell names of topics are looked at in any case."""
    whole = rows("exchanges", CAPTURE, Settings())
    assert len({row["client_id"] for row in whole}) > 1
    for column in ("api", "client", "broker", "client_id", "date"):
        values = sorted({str(row[column]) for row in whole if row[column] is not None})
        for chosen in (values[:1], values[-2:], ["nothing"]):
            settings = Settings(pushed=(Condition(column, tuple(chosen)), Condition("api", ("Fetch", "Metadata"))))
            expected = [row for row in whole if str(row[column]) in chosen and row["api"] in ("Fetch", "Metadata")]
            assert rows("exchanges", CAPTURE, settings) == expected


def test_filters_of_spark_become_conditions_where_headers_tell() -> None:
    """The others are left to Spark, which asks everything once more."""
    source = pytest.importorskip("pyspark.sql.datasource")
    day = datetime.date(2026, 1, 2)
    given = [
        source.EqualTo(("api",), "Fetch"),
        source.In(("broker",), ("a:1", "b:2")),
        source.IsNotNull(("api",)),
        source.GreaterThanOrEqual(("date",), day),
        source.LessThan(("date",), day),
        source.EqualTo(("outcome",), "error"),
        source.Not(source.EqualTo(("api",), "Fetch")),
        source.GreaterThan(("latency_ns",), 5),
    ]
    assert conditions(given) == [
        Condition("api", ("Fetch",)),
        Condition("broker", ("a:1", "b:2")),
        Condition("date", ("2026-01-02", "9999-12-31"), True),
        Condition("date", ("0001-01-01", "2026-01-02"), True),
    ]


def test_settings_survive_the_way_to_an_executor() -> None:
    """Settings are plain values, which pickle and come back equal."""
    settings = Settings(
        ports=(1, 2),
        where="api == Fetch",
        pushed=(Condition("api", ("a",)),),
        software=software(),
        topics=file_at(str(CAPTURE)),
    )
    assert from_plain(Settings, json.loads(json.dumps(asdict(settings)))) == settings


def test_a_worker_that_lacks_something_refuses_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker without a library would read less of a capture, so it refuses and names what it lacks."""
    planned = software()
    assert {"cramjam", "google_crc32c"} <= set(planned)
    check_software(planned)
    check_software(())
    is_there = software_module._is_there
    monkeypatch.setattr(software_module, "_is_there", lambda name: name != "cramjam" and is_there(name))
    with pytest.raises(KwiresniffError, match="lacks cramjam"):
        rows("exchanges", CAPTURE, Settings(software=planned))
