"""``kwiresniff read`` and the options all reading commands share."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from kwiresniff.cli.options import Moment
from kwiresniff.cli.redact_key import MAX_KEY_FILE_BYTES
from tests.support.capture_files import heartbeats, irc, metadata_v0, save
from tests.support.command import Done, Run
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response, string
from tests.support.paths import CAPTURES
from tests.support.tls_conversation import TlsTalk


@pytest.fixture
def capture(tmp_path: Path) -> str:
    """Five heartbeats on one connection, the last one refused, and a Metadata on another."""
    return save(tmp_path / "a.pcap", heartbeats(5, failing=True, client_port=41_000), metadata_v0("orders"))


def objects(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


def shown(done: Done) -> list[int]:
    """The correlation ids of the exchanges that were printed, heartbeats first."""
    return [one["correlation_id"] for one in objects(done) if one["kind"] == "exchange"]


def test_json_lines_hold_exchanges_and_connections(kwiresniff: Run, capture: str) -> None:
    done = kwiresniff("read", "-o", "jsonl", capture)
    assert (done.code, done.err) == (0, "")
    kinds = [one["kind"] for one in objects(done)]
    assert kinds.count("exchange") == 6
    assert kinds.count("connection") == 2
    first = objects(done)[0]
    assert (first["api"], first["latency_ns"], first["client"]) == ("Heartbeat", 1_000_000, "10.0.0.1:41000")
    assert first["request"]["body"] == {"group_id": "group", "generation_id": 5, "member_id": "member"}


def test_json_is_the_same_in_an_array(kwiresniff: Run, capture: str) -> None:
    lines = kwiresniff("read", "-o", "jsonl", capture)
    assert json.loads(kwiresniff("read", "-o", "json", capture).out) == objects(lines)


def test_the_tree_is_what_comes_without_asking(kwiresniff: Run, capture: str) -> None:
    done = kwiresniff("read", capture)
    assert done.code == 0
    assert done.out == kwiresniff("read", "-o", "tree", capture).out
    assert "REBALANCE_IN_PROGRESS" in done.out
    assert done.out.count("correlation_id") == 6
    assert "\x1b" not in done.out


def test_the_summary_has_one_line_an_exchange(kwiresniff: Run, capture: str) -> None:
    lines = kwiresniff("read", "-o", "summary", capture).out.splitlines()
    assert len(lines) == 6
    assert all("Heartbeat" in line for line in lines[:5])
    assert "Metadata" in lines[5]


@pytest.mark.parametrize("form", ["tree", "summary"])
def test_colours_come_only_when_asked_for(kwiresniff: Run, capture: str, form: str) -> None:
    assert "\x1b[" in kwiresniff("read", "-o", form, "--color", "always", capture).out
    assert "\x1b[" not in kwiresniff("read", "-o", form, capture).out


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["-Y", "api == Metadata"], [1]),
        (["--filter", "correlation_id >= 4"], [4, 5]),
        (["-Y", "error == REBALANCE_IN_PROGRESS"], [5]),
        (["-Y", "topic == orders"], [1]),
        (["-Y", "group == group and request.body.generation_id == 5 and outcome == ok"], [1, 2, 3, 4]),
        (["--limit", "2"], [1, 2]),
        (["--limit", "1", "-Y", "correlation_id == 3"], [3]),
        (["--since", "1970-01-01T00:00:00.008Z", "-Y", "api == Heartbeat"], [3, 4, 5]),
        (["--since", "7ms", "--until", "10ms", "-Y", "api == Heartbeat"], [3, 4]),
        (["--since", "00:00:00.008", "-Y", "api == Heartbeat"], [3, 4, 5]),
        (["--since", "23:59:59.99", "-Y", "api == Heartbeat"], []),
    ],
)
def test_only_what_is_wanted_is_shown(kwiresniff: Run, capture: str, options: list[str], expected: list[int]) -> None:
    done = kwiresniff("read", "-o", "jsonl", *options, capture)
    assert done.code == 0
    assert shown(done) == expected


def test_a_filter_leaves_out_connections_of_which_nothing_is_shown(kwiresniff: Run, capture: str) -> None:
    done = kwiresniff("read", "-o", "jsonl", "-Y", "api == Metadata", capture)
    assert [one["client"] for one in objects(done) if one["kind"] == "connection"] == ["10.0.0.1:40000"]


def test_several_captures_are_named_beside_packets_and_problems(kwiresniff: Run, tmp_path: Path) -> None:
    one = save(tmp_path / "1.pcap", heartbeats(1, client_port=41_000))
    cut = Path(save(tmp_path / "2.pcap", heartbeats(2, client_port=42_000)))
    cut.write_bytes(cut.read_bytes()[:-10])
    found = objects(kwiresniff("read", "-o", "jsonl", one, str(cut)))
    assert {item["request"]["file"] for item in found if item["kind"] == "exchange"} == {one, str(cut)}
    assert [item["file"] for item in found if item["kind"] == "problem"] == [str(cut)]


def test_nothing_kafka_prints_nothing_and_says_what_was_there(kwiresniff: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "irc.pcap", irc())
    for form in ("tree", "summary"):
        done = kwiresniff("read", "-o", form, capture)
        assert (done.code, done.out) == (0, "")
        assert done.err.count("\n") == 1
        assert done.err.startswith(f"kwiresniff: {capture}: no Kafka in it; there was 1 TCP connection with ")
    done = kwiresniff("read", "-o", "jsonl", capture)
    assert [one["code"] for one in objects(done)] == ["not_kafka"]
    assert done.err.count("\n") == 1
    assert kwiresniff("read", "-q", capture) == (0, "", "")


def test_a_capture_without_packets_says_so(kwiresniff: Run, tmp_path: Path) -> None:
    done = kwiresniff("read", save(tmp_path / "empty.pcap"))
    assert (done.code, done.out) == (0, "")
    assert done.err.endswith("no Kafka in it; there were no packets\n")


def test_packets_without_data_are_not_called_no_packets(kwiresniff: Run, tmp_path: Path) -> None:
    """Connections that are refused, and those that nobody used while it was captured."""
    done = kwiresniff("read", save(tmp_path / "bare.pcap", Wire().open().close()))
    assert (done.code, done.out) == (0, "")
    assert re.search(r"no Kafka in it; there were \d+ packets of TCP without data\n$", done.err)


def test_packets_that_were_not_asked_for_are_not_spoken_of(kwiresniff: Run, capture: str) -> None:
    for count, first in ("1", "packet"), ("2", "2 packets"):
        done = kwiresniff("read", "-c", count, capture)
        assert done == (0, "", f"kwiresniff: {capture}: no Kafka in the first {first} of TCP (-c)\n")


def test_a_cut_capture_gives_what_is_before_the_cut_and_says_so(kwiresniff: Run, capture: str) -> None:
    whole = Path(capture).read_bytes()
    Path(capture).write_bytes(whole[: len(whole) // 2])
    done = kwiresniff("read", "-o", "summary", capture)
    assert done.code == 0
    assert 0 < len(done.out.splitlines()) < 6
    assert any(line.startswith("kwiresniff: ") and "cut" in line for line in done.err.splitlines())
    assert kwiresniff("read", "--strict", "-q", capture).code == 1


def test_strict_looks_at_problems_inside_exchanges_too(kwiresniff: Run, tmp_path: Path) -> None:
    trailing = Wire().open().up(heartbeat(1)).down(b"\0\0\0\x0a\0\0\0\x01\0\0left")
    capture = save(tmp_path / "a.pcap", trailing.up(heartbeat(2)).down(b"\0\0\0\x06\0\0\0\x02\0\0").close())
    assert kwiresniff("read", capture).code == 0
    assert kwiresniff("read", "--strict", capture).code == 1


@pytest.mark.parametrize(
    "command",
    [
        "read -o summary",
        "read -o jsonl",
        "stats",
        "stats --by topic",
        "clients",
        "groups",
        "doctor --fail-on never",
        "export -O {folder}/out.csv",
    ],
)
def test_strict_finds_the_same_whatever_is_shown(kwiresniff: Run, tmp_path: Path, command: str) -> None:
    """What is wrong is deeper than most of them look: in the records of a batch."""
    batch = pack(">qiib", 0, 49, 0, 9) + bytes(44)  # magic 9
    body = pack(">hhii", -1, 1, 1000, 1) + string("t") + pack(">iii", 1, 0, len(batch)) + batch
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(request(0, 3, 2, body)).down(response(2, pack(">ii", 0, 0)))
    capture = save(tmp_path / "odd.pcap", wire.close())
    arguments = command.format(folder=tmp_path).split()
    assert kwiresniff(*arguments, capture).code == 0
    assert kwiresniff(*arguments, "--strict", capture).code == 1


def test_strict_without_problems_is_fine(kwiresniff: Run, capture: str) -> None:
    assert kwiresniff("read", "--strict", capture).code == 0


REAL = Path(__file__).parents[2] / "captures" / "first-look.pcap"


@pytest.mark.parametrize("form", ["tree", "summary", "jsonl"])
def test_redacted_output_has_no_record_in_it(kwiresniff: Run, form: str) -> None:
    plain = kwiresniff("read", "-o", "jsonl", "-Y", "api == Produce", str(REAL))
    batch = objects(plain)[0]["request"]["body"]["topic_data"][0]["partition_data"][0]["records"][0]
    words = [record[part] for record in batch["records"] for part in ("key", "value") if record[part]]
    assert words
    redacted = kwiresniff("read", "-v", "-v", "-o", form, "--redact", str(REAL)).out
    assert not [word for word in words if re.search(rf"\b{re.escape(word)}\b", redacted)]
    assert not [word for word in words if len(word) > 3 and word.encode().hex(" ") in redacted]


def test_redaction_with_a_key_is_the_same_every_time(kwiresniff: Run) -> None:
    first = kwiresniff("read", "-o", "jsonl", "--redact", "--redact-key", "k", str(REAL)).out
    assert '"redacted":true' in first
    assert kwiresniff("read", "-o", "jsonl", "--redact-key", "k", str(REAL)).out == first


def test_the_key_of_redaction_is_taken_from_a_file(kwiresniff: Run, tmp_path: Path) -> None:
    """A command line can be seen by every user of a machine; a line end behind the key is none of it."""
    key = tmp_path / "key"
    key.write_bytes(b"k\n")
    words = ("read", "-o", "jsonl", "--redact")
    of_file = kwiresniff(*words, "--redact-key-file", str(key), str(REAL)).out
    assert '"redacted":true' in of_file
    assert of_file == kwiresniff(*words, "--redact-key", "k", str(REAL)).out


def test_a_key_file_that_is_no_use_is_answered_in_one_line(kwiresniff: Run, tmp_path: Path) -> None:
    """None, a folder, an empty one, and one that never ends."""
    empty, long = tmp_path / "empty", tmp_path / "long"
    empty.write_bytes(b"\r\n")
    long.write_bytes(b"k" * (MAX_KEY_FILE_BYTES + 1))
    for file in (tmp_path / "none", tmp_path, empty, long):
        done = kwiresniff("read", "--redact-key-file", str(file), str(REAL))
        assert done.code == 1 and not done.out
        assert done.err.count("\n") == 1 and str(file) in done.err


def test_secrets_are_withheld_unless_asked_for(kwiresniff: Run) -> None:
    capture = str(REAL.with_name("java-sasl-plain.pcap"))
    plain = kwiresniff("read", "-o", "jsonl", "-Y", "api == SaslAuthenticate", "--show-secrets", capture)
    password = objects(plain)[0]["request"]["body"]["auth_bytes"].split("\0")[2]
    assert password
    for form in ("tree", "jsonl", "summary"):
        assert password not in kwiresniff("read", "-o", form, "-vv", capture).out
    assert password in kwiresniff("read", "--show-secrets", capture).out


def test_topic_names_are_learned_from_exchanges_the_filter_leaves_out(kwiresniff: Run) -> None:
    by_name = kwiresniff("read", "-o", "jsonl", "-Y", "api == Produce and topic == orders", str(REAL))
    assert [one["api_version"] for one in objects(by_name) if one["kind"] == "exchange"] == [13]
    assert "orders" in kwiresniff("read", "-Y", "api == Produce", str(REAL)).out


def test_a_capture_with_nothing_but_tls_says_how_to_decrypt_it(kwiresniff: Run, tmp_path: Path) -> None:
    talk = TlsTalk().shake().up(b"request").down(b"response")
    wire = Wire().open()
    for side, flight in talk.flights:
        wire.send(side, flight)
    capture = save(tmp_path / "tls.pcap", wire.close())
    for command in (("read",), ("read", "-o", "summary"), ("stats",)):
        done = kwiresniff(*command, capture)
        assert (done.code, done.out) == (0, "")
        assert done.err.count("\n") == 1
        assert "1 TCP connection with TLS" in done.err and "--keylog" in done.err
    (connection,) = objects(kwiresniff("read", "-q", "-o", "jsonl", capture))
    assert (connection["kind"], connection["protocol"]) == ("connection", "tls")
    assert connection["tls"]["version"] == talk.client.version()
    beside = save(tmp_path / "kafka.pcap", heartbeats(1, client_port=41_000))
    done = kwiresniff("read", "-o", "summary", capture, beside)
    assert "1 TLS connection not decrypted" in done.err and "--keylog" in done.err


@pytest.mark.skipif(shutil.which("tshark") is None and not os.environ.get("CI"), reason="tshark is not installed")
def test_a_key_log_opens_tls(kwiresniff: Run, tmp_path: Path) -> None:
    """By every command, as if it had not been there; without the right key that is said."""
    keylog = tmp_path / "keys.log"
    talk = TlsTalk(keylog=keylog).shake()
    for number in (1, 2):
        talk.up(heartbeat(number)).down(heartbeat_response(number))
    wire = Wire().open()
    for side, flight in talk.flights:
        wire.send(side, flight)
    capture = save(tmp_path / "tls.pcap", wire.close())
    found = objects(kwiresniff("read", "-o", "jsonl", "--keylog", str(keylog), capture))
    assert [(one["api"], one["correlation_id"]) for one in found if one["kind"] == "exchange"] == [
        ("Heartbeat", 1),
        ("Heartbeat", 2),
    ]
    assert found[-1]["tls"]["decrypted"] is True
    stats = kwiresniff("stats", "-o", "json", "--keylog", str(keylog), capture)
    assert json.loads(stats.out)[0]["count"] == 2 and stats.err == ""
    TlsTalk(keylog=tmp_path / "others.log").shake()
    done = kwiresniff("read", "--keylog", str(tmp_path / "others.log"), capture)
    assert "the keys lack CLIENT_TRAFFIC_SECRET_0 of client random" in done.err
    assert "keys are not in the key log" in done.err and done.err.count("\n") == 2


def test_a_pipe_is_decrypted_by_a_key_log_that_grows(
    kwiresniff: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is not there when it begins; tshark, which reads everything twice, needs a file."""
    recorded, keylog = CAPTURES / "kcat-tls.pcap", tmp_path / "keys.log"
    expected = kwiresniff("read", "-o", "jsonl", "--keylog", str(CAPTURES / "keys" / "kcat-tls.log"), str(recorded))

    class Pipe(io.BytesIO):
        """Beside which the log is written after the first bytes."""

        def read1(self, size: int | None = -1) -> bytes:
            if self.tell() > 10_000:
                shutil.copy(CAPTURES / "keys" / "kcat-tls.log", keylog)
            return super().read1(size)

    for engine, code in (("built-in", 0), ("tshark", 1)):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(Pipe(recorded.read_bytes())))
        done = kwiresniff("read", "-o", "jsonl", "--keylog", str(keylog), "--tls-engine", engine, "-")
        assert done.code == code
        assert (sorted(done.out.splitlines()) == sorted(expected.out.splitlines())) is (engine == "built-in")
    assert "standard input" in done.err and done.err.count("\n") == 1


def test_a_tree_says_what_the_records_of_an_internal_topic_hold(kwiresniff: Run) -> None:
    capture = str(Path(__file__).parents[2] / "captures" / "cluster-inside.pcap.xz")
    lines = kwiresniff("read", "-Y", "api == Fetch", "--color", "never", capture).out.splitlines()
    at = next(number for number, line in enumerate(lines) if line.endswith("null → FeatureLevelRecord v0"))
    assert lines[at + 1].endswith("└─ value (FeatureLevelRecord v0)  name metadata.version  feature_level 33")


def test_a_time_of_day_long_before_the_first_packet_is_that_of_the_next_day() -> None:
    """A capture from 23:50 to 00:10: 00:05 is after midnight, 23:00 before the capture began."""
    day, minute = 86_400_000_000_000, 60_000_000_000
    first = 20_000 * day + 1430 * minute
    assert Moment(5 * minute, "midnight").since_epoch(first) == 20_001 * day + 5 * minute
    assert Moment(1380 * minute, "midnight").since_epoch(first) == 20_000 * day + 1380 * minute
