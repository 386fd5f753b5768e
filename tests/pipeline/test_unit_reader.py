"""Units to rows, without Spark."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.export.table_columns import READABLE, arrow_schema
from kwiresniff.pipeline.batches import table_batches
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.plan import WorkUnit, find_sources
from kwiresniff.pipeline.task import settings_text
from kwiresniff.pipeline.unit_reader import Settings
from tests.support.exported import details_of, exchange_of, exchanges, export, packets, recorded, rotate
from tests.support.paths import CAPTURES
from tests.support.sample import mostly_slow, one_in, slow_if
from tests.support.wrapped_recording import TRAILER, capture, udp

SETTINGS = Settings()


def rows(table: str, unit: WorkUnit, settings: Settings = SETTINGS) -> list[dict[str, Any]]:
    return [row for batch in table_batches(table, unit, settings) for row in batch.to_pylist()]


def unit_of(*paths: Path) -> WorkUnit:
    (source,) = find_sources([str(path) for path in paths])
    return WorkUnit(source)


@pytest.mark.parametrize("capture", mostly_slow(one_in(2, recorded()), 5), ids=lambda path: path.name)
def test_rows_say_what_export_says(capture: Path, tmp_path: Path) -> None:
    """Exchange for exchange, in the same order, and connection for connection."""
    objects = export(tmp_path / "out.jsonl", capture)
    unit = unit_of(capture)
    assert [exchange_of(row) for row in rows("exchanges", unit)] == exchanges(objects)
    connections = [value for value in objects if value["kind"] == "connection"]
    assert [details_of(row) for row in rows("connections", unit)] == connections
    problems = [value for value in objects if value["kind"] == "problem"]
    assert [details_of(row) for row in rows("problems", unit)] == problems


def without_places(value: dict[str, Any]) -> dict[str, Any]:
    """An exchange without its packet numbers, which count from 1 in every file."""
    for direction in ("request", "response"):
        if value[direction] is not None:
            value[direction] = {k: v for k, v in value[direction].items() if not k.endswith("_packet") and k != "file"}
    return value


@pytest.mark.parametrize("name", slow_if(["java-sasl-plain.pcap", "first-look.pcap"], "first-look.pcap"))
def test_a_capture_split_at_any_packet_into_two_files_gives_the_same_exchanges(name: str, tmp_path: Path) -> None:
    """Connections go on from the first file to the second."""
    capture = CAPTURES / name
    whole = [without_places(value) for value in exchanges(export(tmp_path / "out.jsonl", capture))]
    count = len(packets(capture.read_bytes())) - 1
    assert count > 20
    for first in range(1, count):
        unit = unit_of(*rotate(capture, tmp_path, first))
        assert [without_places(exchange_of(row)) for row in rows("exchanges", unit)] == whole, f"split after {first}"


def test_places_in_rotated_files_are_those_of_export(tmp_path: Path) -> None:
    """File and packet number of every message."""
    files = rotate(CAPTURES / "first-look.pcap", tmp_path, 30)
    found = [exchange_of(row, files=True) for row in rows("exchanges", unit_of(*files))]
    assert found == exchanges(export(tmp_path / "out.jsonl", *files))


@pytest.mark.parametrize("name", ["java-group-classic.pcap", "librdkafka-group-consumer.pcapng", "franz-go.pcap"])
def test_shards_together_give_what_the_whole_gives(name: str, tmp_path: Path) -> None:
    """Every exchange once; connections keep numbers of their own.

    But for what one connection tells of another: a topic's name, and what a fetch session is about (KIP-227) that goes
    on over a second connection.
    """
    source = unit_of(CAPTURES / name).source
    whole = rows("exchanges", WorkUnit(source))
    parts = [rows("exchanges", WorkUnit(source, shard, 3)) for shard in range(3)]
    assert sum(bool(part) for part in parts) > 1
    together = [row for part in parts for row in part]

    def key(row: dict[str, Any]) -> str:
        return json.dumps(
            {name: value for name, value in row.items() if name not in ("connection_id", "topics", "partitions")},
            default=str,
        )

    assert sorted(map(key, together)) == sorted(map(key, whole))
    numbers = {(row["client"], row["broker"]): row["connection_id"] for row in together}
    assert len(set(numbers.values())) == len(numbers)


@pytest.mark.parametrize("table", READABLE)
def test_rows_fit_the_columns_of_their_table(table: str, tmp_path: Path) -> None:
    """Every table turns into Arrow, and has something in it; the capture is cut short so that there is a problem."""
    capture = tmp_path / "cut.pcap"
    capture.write_bytes((CAPTURES / "java-transactions.pcap").read_bytes()[:-7])
    found = list(table_batches(table, unit_of(capture), SETTINGS))
    assert sum(batch.num_rows for batch in found) > 0
    for batch in found:
        batch.validate(full=True)
        assert batch.schema == arrow_schema(table)


def test_columns_to_filter_by_say_who_and_what() -> None:
    """Values known from the recipe of the capture: topic and group names are the recipe's own."""
    found = rows("exchanges", unit_of(CAPTURES / "java-group-classic.pcap"))
    commits = [row for row in found if row["api"] == "OffsetCommit"]
    body = json.loads(commits[0]["request_body"])
    assert commits[0]["groups"] == [body["group_id"]]
    assert commits[0]["topics"] == [topic["name"] for topic in body["topics"]]
    assert str(commits[0]["date"]) == commits[0]["time"].date().isoformat()
    assert commits[0]["time"].timestamp() == pytest.approx(commits[0]["request_timestamp_ns"] / 1e9, abs=1e-6)


@pytest.mark.parametrize("shards", slow_if([1, 2], 2))
def test_tls_is_decrypted_with_a_key_log(shards: int, tmp_path: Path) -> None:
    """Exchange for exchange what export says with the same keys, in whatever shards."""
    capture, keylog = CAPTURES / "kafka-python-tls.pcap", str(CAPTURES / "keys" / "kafka-python-tls.log")
    expected = exchanges(export(tmp_path / "out.jsonl", capture, options=["--keylog", keylog]))
    source = unit_of(capture).source
    found = []
    for shard in range(shards):
        found += rows("exchanges", WorkUnit(source, shard, shards), Settings(keylog=keylog))

    def key(value: dict[str, Any]) -> str:
        return repr({**value, "connection": 0})

    assert sorted(key(exchange_of(row)) for row in found) == sorted(map(key, expected))
    assert len(expected) > 20


def test_without_its_key_log_there_is_a_row_that_says_so(tmp_path: Path) -> None:
    """Connections are reported as TLS even where they cannot be decrypted."""
    unit = unit_of(CAPTURES / "kafka-python-tls.pcap")
    settings = Settings(keylog=str(tmp_path / "none.log"))
    assert [row["code"] for row in rows("problems", unit, settings)] == ["not_decrypted"]
    assert {row["protocol"] for row in rows("connections", unit, settings)} == {"tls"}


def test_records_are_those_in_the_bodies() -> None:
    """One row for each record of each batch, with its bytes."""
    unit = unit_of(CAPTURES / "java-produce.pcap")
    found = rows("records", unit)
    bodies = [json.loads(row["request_body"]) for row in rows("exchanges", unit) if row["api"] == "Produce"]
    batches = [b for body in bodies for t in body["topic_data"] for p in t["partition_data"] for b in p["records"]]
    produced = [row for row in found if row["api"] == "Produce"]
    assert len(produced) == sum(len(batch["records"]) for batch in batches) > 0
    assert {row["compression"] for row in produced} == {batch["compression"] for batch in batches}
    assert all(row["topic"] and row["partition"] is not None for row in produced)


def test_redaction_reaches_bodies_and_records() -> None:
    """No value is left readable, and equal values have equal hashes in every unit of a run."""
    unit = unit_of(CAPTURES / "java-produce.pcap")
    plain = {row["value"] for row in rows("records", unit) if row["value"]}
    hidden = rows("records", unit, Settings(redact_key="k"))
    assert plain and hidden
    assert all(set(json.loads(row["value"])) == {"redacted", "size_bytes", "hash"} for row in hidden if row["value"])
    assert [row["value"] for row in hidden] == [row["value"] for row in rows("records", unit, Settings(redact_key="k"))]


def test_a_corrupt_file_is_a_problem_and_the_rest_of_its_series_is_read(tmp_path: Path) -> None:
    """Named by the user, so it is told; the other file gives its exchanges."""
    capture = CAPTURES / "first-look.pcap"
    (tmp_path / "t.pcap").write_bytes(capture.read_bytes())
    (tmp_path / "t.pcap1").write_bytes(b"\xd4\xc3\xb2\xa1 not a capture after all, but it began like one")
    (tmp_path / "t.pcap2").write_bytes(b"hello")
    unit = unit_of(*(tmp_path / name for name in ("t.pcap", "t.pcap1", "t.pcap2")))
    assert len(rows("exchanges", unit)) == len(rows("exchanges", unit_of(capture)))
    problems = {Path(row["file"]).name: row["code"] for row in rows("problems", unit)}
    assert problems["t.pcap2"] == "capture_unreadable"
    assert "t.pcap1" in problems


def test_rules_of_decoding_hold_in_every_shard_and_are_settings_of_a_run(tmp_path: Path) -> None:
    """A tunnel that has to be named gives the rows of the recording without it; other rules are another output."""
    path = tmp_path / "wrapped.pcap"
    capture(path, lambda frame: udp(b"\xff" * 8 + frame + TRAILER, 8473))
    (source,) = find_sources([str(path)])
    settings = Settings(decode_as=("udp.port==8473,vxlan",))
    assert rows("exchanges", WorkUnit(source)) == []
    wanted = [row["api"] for row in rows("exchanges", WorkUnit(source), settings)]
    shards = [row["api"] for shard in range(2) for row in rows("exchanges", WorkUnit(source, shard, 2), settings)]
    assert len(wanted) > 3 and sorted(shards) == sorted(wanted)
    assert settings_text(settings, ["exchanges"]) != settings_text(Settings(), ["exchanges"])
    assert from_plain(Settings, json.loads(json.dumps(asdict(settings)))) == settings


def test_what_is_no_capture_in_a_folder_is_passed_over(tmp_path: Path) -> None:
    """A folder of captures may hold notes too."""
    (tmp_path / "t.pcap").write_bytes((CAPTURES / "first-look.pcap").read_bytes())
    (tmp_path / "notes.txt").write_text("broker three is slow", encoding="utf-8")
    found = [rows("problems", WorkUnit(source)) for source in find_sources([str(tmp_path)])]
    assert found == [[], []]
