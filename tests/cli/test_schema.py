"""``kwiresniff schema``: the protocol as data."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.support.command import Run

HEARTBEAT_4 = {
    "apiKey": 12,
    "type": "response",
    "name": "HeartbeatResponse",
    "validVersions": "0-4",
    "flexibleVersions": "4+",
    "fields": [
        {"name": "ThrottleTimeMs", "type": "int32", "versions": "1+"},
        {"name": "ErrorCode", "type": "int16", "versions": "0+"},
    ],
}


def jar(path: Path, *definitions: object) -> str:
    with zipfile.ZipFile(path, "w") as archive:
        for number, definition in enumerate(definitions):
            archive.writestr(f"common/message/{number}.json", json.dumps(definition))
    return str(path)


def test_list_shows_every_api_with_its_versions_and_releases(kwiresniff: Run) -> None:
    done = kwiresniff("schema", "list")
    assert done.code == 0
    (line,) = [line for line in done.out.splitlines() if "LeaderAndIsr" in line]
    assert line.split() == ["4", "LeaderAndIsr", "0-7", "4+", "0.8.2", "4.0"]


def test_list_as_json_lines_has_one_api_a_line(kwiresniff: Run) -> None:
    rows = [json.loads(line) for line in kwiresniff("schema", "list", "-o", "jsonl").out.splitlines()]
    assert [row["api_key"] for row in rows] == list(range(len(rows)))
    assert rows[2] == {
        "api_key": 2,
        "api": "ListOffsets",
        "versions": [0, 11],
        "flexible_from": 6,
        "listeners": ["broker"],
        "added": "0.8.2",
        "removed": None,
        "aliases": ["ListOffset", "Offsets"],
    }


def test_show_prints_a_grammar(kwiresniff: Run) -> None:
    done = kwiresniff("schema", "show", "heartbeat", "--version", "4", "--response")
    assert done.out == (
        "Heartbeat Response (Version: 4) => throttle_time_ms error_code TAG_BUFFER\n"
        "  throttle_time_ms => INT32\n"
        "  error_code => INT16\n"
    )


def test_show_prints_json_as_the_contract_has_it(kwiresniff: Run) -> None:
    done = kwiresniff("schema", "show", "Metadata", "--version", "9", "--request", "-o", "jsonl")
    shown = json.loads(done.out)
    topics = shown.pop("fields")[0]
    assert shown == {
        "api": "Metadata",
        "api_key": 3,
        "direction": "request",
        "version": 9,
        "flexible": True,
        "header_version": 2,
    }
    name = {"name": "name", "type": "COMPACT_STRING", "array": False, "nullable": False, "tag": None, "fields": []}
    assert topics == {
        "name": "topics",
        "type": "STRUCT",
        "array": True,
        "nullable": True,
        "tag": None,
        "fields": [name],
    }


def test_show_of_both_directions_is_what_it_shows_unasked(kwiresniff: Run) -> None:
    both = kwiresniff("schema", "show", "Fetch", "--version", "4", "--request", "--response")
    assert both == kwiresniff("schema", "show", "Fetch", "--version", "4")
    assert "Fetch Request" in both.out
    assert "Fetch Response" in both.out


def test_show_without_an_api_prints_them_all(kwiresniff: Run) -> None:
    rows = json.loads(kwiresniff("schema", "show", "-o", "json").out)
    assert len(rows) == 736
    assert {row["direction"] for row in rows} == {"request", "response"}


def test_show_knows_what_is_stored_in_logs(kwiresniff: Run) -> None:
    done = kwiresniff("schema", "show", "EndTxnMarker")
    assert done.out == "EndTxnMarker (Version: 0) => coordinator_epoch\n  coordinator_epoch => INT32\n"


def test_show_knows_the_headers(kwiresniff: Run) -> None:
    done = kwiresniff("schema", "show", "ResponseHeader", "--version", "1")
    assert done.out == "Response Header v1 => correlation_id TAG_BUFFER\n  correlation_id => INT32\n"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["Fetsh"], "no API is named 'Fetsh'; did you mean Fetch?"),
        (["Fetch", "--version", "99"], "Fetch request has no version 99, it has 0 to "),
        (["999"], "no API has key 999"),
        (["--version", "99"], "no API has a version 99"),
    ],
)
def test_show_says_in_one_line_what_there_is_instead(kwiresniff: Run, arguments: list[str], complaint: str) -> None:
    done = kwiresniff("schema", "show", *arguments)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("kwiresniff: ")
    assert complaint in done.err
    assert done.err.count("\n") == 1


def test_check_finds_nothing_in_a_release_that_agrees(kwiresniff: Run, tmp_path: Path) -> None:
    done = kwiresniff("schema", "check", jar(tmp_path / "kafka.jar", HEARTBEAT_4))
    assert (done.code, done.out) == (0, "")
    assert done.err == "1 messages in 5 versions, 0 differences\n"


def test_check_prints_what_differs_and_fails(kwiresniff: Run, tmp_path: Path) -> None:
    done = kwiresniff("schema", "check", jar(tmp_path / "kafka.jar", HEARTBEAT_4 | {"flexibleVersions": "none"}))
    assert done.code == 1
    assert done.out == "Heartbeat response version 4: flexible is True, in the release False\n"


def test_check_keeps_what_is_known_to_itself_until_asked(kwiresniff: Run, tmp_path: Path) -> None:
    epoch = {"name": "Epoch", "type": "int32", "versions": "0+"}
    older = {"type": "data", "name": "ConsumerGroupMetadataValue", "validVersions": "0", "flexibleVersions": "0+"}
    source = jar(tmp_path / "kafka.jar", {**older, "fields": [epoch]})
    done = kwiresniff("schema", "check", source)
    assert (done.code, done.out) == (0, "")
    assert done.err == "1 messages in 1 versions, 0 differences, 1 more that later releases made in place (-v)\n"
    told = kwiresniff("schema", "check", "-v", source)
    assert (told.code, "metadata_hash: tag 0 is not in the release (known: " in told.out) == (0, True)


def test_import_writes_files_that_another_import_extends(kwiresniff: Run, tmp_path: Path) -> None:
    request = {**HEARTBEAT_4, "type": "request", "name": "HeartbeatRequest", "fields": []}
    old = jar(tmp_path / "kafka-clients-3.0.0.jar", HEARTBEAT_4, request)
    newer = {"validVersions": "4-5"}
    new = jar(tmp_path / "kafka-clients-9.0.0.jar", HEARTBEAT_4 | newer, request | newer)
    out = tmp_path / "out"
    assert kwiresniff("schema", "import", old, "--out", str(out)).code == 0
    assert kwiresniff("schema", "import", new, "--out", str(out)).code == 0
    assert (out / "Heartbeat.txt").read_text() == (
        "api 12 Heartbeat\n\nrequest 0-5 flexible 4+\n\n"
        "response 0-5 flexible 4+\n  throttle_time_ms int32 1+\n  error_code int16\n"
    )


def test_import_notes_what_the_brokers_of_a_new_release_offer(kwiresniff: Run, tmp_path: Path) -> None:
    request = {**HEARTBEAT_4, "type": "request", "name": "HeartbeatRequest", "fields": [], "validVersions": "2-5"}
    new = jar(tmp_path / "kafka-clients-9.1.0.jar", HEARTBEAT_4, request | {"latestVersionUnstable": True})
    (tmp_path / "releases.txt").write_text("releases 9.0\n12 9.0:0-4\n", "utf-8")
    assert kwiresniff("schema", "import", new, "--out", str(tmp_path)).code == 0
    assert (tmp_path / "releases.txt").read_text("utf-8") == "releases 9.0 9.1\n12 9.0:0-4 9.1:2-4\n"


def test_import_says_what_is_no_source(kwiresniff: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.jar").write_text("dear diary")
    done = kwiresniff("schema", "import", str(tmp_path / "notes.jar"), "--out", str(tmp_path / "out"))
    assert done.code == 1
    assert "notes.jar: cannot be read" in done.err


def test_show_and_check_take_one_of_kafka_s_definitions(kwiresniff: Run, tmp_path: Path) -> None:
    """A definition that is not ours yet: shown as it is, and said to differ."""
    file = tmp_path / "HeartbeatRequest.json"
    fields = [
        {"name": "GroupId", "type": "string", "versions": "0+"},
        {"name": "Colour", "type": "int8", "versions": "0+"},
    ]
    document = {"apiKey": 12, "type": "request", "name": "HeartbeatRequest", "validVersions": "0", "fields": fields}
    file.write_text(json.dumps({**document, "flexibleVersions": "none"}))
    shown = kwiresniff("schema", "show", str(file), "-o", "jsonl")
    assert [field["name"] for field in json.loads(shown.out)["fields"]] == ["group_id", "colour"]
    checked = kwiresniff("schema", "check", str(file))
    assert checked.code == 1
    assert "colour" in checked.out
