"""Names of addresses in the commands that show addresses, and in filters."""

from __future__ import annotations

import json
from pathlib import Path
from struct import pack

import pytest

from tests.support.command import Run
from tests.support.harmful_text import UNSAFE
from tests.support.packet_builder import Pcapng

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
#: Clients at 10.9.0.2 talk to a broker at 10.9.0.1:9092.
RECORDING = str(CAPTURES / "java-group-consumer.pcapng")
NAMES = [{"name": "pod/checkout-7f", "source": "hosts"}]


@pytest.fixture
def hosts(tmp_path: Path) -> str:
    path = tmp_path / "hosts"
    path.write_text("10.9.0.2 pod/checkout-7f zone=eu-1a\n10.9.0.1 kafka-1.example.com zone=eu-1b\n")
    return str(path)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("client == pod/checkout-7f", 64),
        ("client == checkout-7f", 64),
        ("client ~ checkout", 64),
        ("client == kafka-1", 0),
        ("client == 10.9.0.2", 64),
        ("client != checkout-7f", 0),
        ("broker in (kafka-1, kafka-2)", 64),
        ("broker == kafka-1.example.com:9092", 64),
        ("broker == kafka-1:9093", 0),
        ("broker == kafka", 0),
        ("not broker == kafka-1", 0),
    ],
)
def test_filters_take_names(kwiresniff: Run, hosts: str, text: str, count: int) -> None:
    """As they take addresses; the recording has 64 exchanges, all between the same two."""
    done = kwiresniff("stats", "-o", "jsonl", "--hosts", hosts, "-Y", text, RECORDING)
    assert (done.code, sum(json.loads(line)["count"] for line in done.out.splitlines())) == (0, count)


def test_json_has_names_beside_addresses(kwiresniff: Run, hosts: str) -> None:
    """Each with its source; without any, no member is there."""

    def objects(*arguments: str) -> list[dict[str, object]]:
        lines = kwiresniff(*arguments, "-o", "jsonl", RECORDING).out.splitlines()
        return [json.loads(line) for line in lines]

    for given, names in (([], None), (["--hosts", hosts], NAMES)):
        assert [one.get("address_names") for one in objects("clients", *given)] == [names] * 3
        (topic,) = objects("topics", *given)
        assert [one.get("names") for one in (*topic["producers"], *topic["consumers"])] == [names] * 3  # type: ignore[misc]
        assert [one.get("names") for one in objects("flows", *given)] == [names] * 3
        by_client = objects("stats", "--by", "client", *given)
        assert [one.get("names") for one in by_client] == [names and {"client": names}] * 3
        (by_both,) = objects("stats", "--by", "host+broker", *given)
        broker = [{"name": "kafka-1.example.com", "source": "hosts"}]
        assert by_both.get("names") == (names and {"host": names, "broker": broker})


def test_tables_have_names_beside_addresses(kwiresniff: Run, hosts: str) -> None:
    """All of those that show addresses."""
    for command in (["clients"], ["topics"], ["flows"], ["stats", "--by", "client"], ["stats", "--by", "connection"]):
        with_names = kwiresniff(*command, "--hosts", hosts, RECORDING).out
        assert "10.9.0.2" in with_names and "pod/checkout-7f" in with_names, command
        assert "checkout" not in kwiresniff(*command, RECORDING).out


def test_the_doctor_says_what_an_address_is_called(kwiresniff: Run, hosts: str) -> None:
    """In a sentence of its own, whatever the finding says of it."""
    capture = str(CAPTURES / "java-transactions.pcap")
    found = [
        json.loads(line) for line in kwiresniff("doctor", "--hosts", hosts, "-o", "jsonl", capture).out.splitlines()
    ]
    assert all("10.9.0.2 is pod/checkout-7f (hosts)" in one["details"] for one in found if "10.9.0.2" in one["subject"])
    assert any("10.9.0.2" in one["subject"] for one in found)


def test_zones_of_the_file_say_what_crosses_them(kwiresniff: Run, hosts: str) -> None:
    """All of the recording's records go between two zones."""
    for line in kwiresniff("flows", "--hosts", hosts, "-o", "jsonl", RECORDING).out.splitlines():
        flow = json.loads(line)
        assert (flow["zone"], flow["brokers"][0]["zone"]) == ("eu-1a", "eu-1b")
        assert flow["bytes_across_zones"] == flow["bytes"] > 0
    head, row, *_ = kwiresniff("flows", "--hosts", hosts, RECORDING).out.splitlines()
    assert head.endswith("across zones") and row.endswith("688 B")


def test_hostile_names_stay_text(kwiresniff: Run, tmp_path: Path) -> None:
    """A hosts file may come from anywhere."""
    path = tmp_path / "hosts"
    path.write_text("10.9.0.2 \x1b[31mred\u202e\x9b zone=\x1b]8;;http://x\x07\n10.9.0.1 <script>\n", encoding="utf-8")
    for command in (["clients"], ["topics"], ["flows"], ["flows", "-o", "dot"], ["flows", "-o", "mermaid"],
                    ["stats", "--by", "client,broker"], ["doctor"]):  # fmt: skip
        out = kwiresniff(*command, "--hosts", str(path), RECORDING).out
        assert not UNSAFE.search(out), command


def test_a_line_that_is_wrong_ends_every_command(kwiresniff: Run, tmp_path: Path) -> None:
    """Before anything is printed."""
    path = tmp_path / "hosts"
    path.write_text("10.9.0.2 a\nkafka-1 10.9.0.1\n")
    done = kwiresniff("stats", "--hosts", str(path), RECORDING)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"kwiresniff: {path}: line 2: 'kafka-1' is no address like 10.0.0.5")
    assert done.err.count("\n") == 1


def test_names_of_a_capture_are_those_of_a_filter(kwiresniff: Run, tmp_path: Path) -> None:
    """Also where they stand behind all packets."""
    ng = Pcapng()
    value = bytes([10, 9, 0, 2]) + b"checkout\0"
    block = ng.block(4, pack("<HH", 1, len(value)) + value + bytes(-len(value) % 4) + bytes(4))
    path = tmp_path / "named.pcapng"
    path.write_bytes(Path(RECORDING).read_bytes() + block)
    done = kwiresniff("stats", "-o", "jsonl", "-Y", "client == checkout", str(path))
    assert (sum(json.loads(line)["count"] for line in done.out.splitlines()), done.err) == (64, "")
    assert "checkout (name block)" in kwiresniff("clients", str(path)).out


def test_a_name_that_nobody_has_is_told(kwiresniff: Run, hosts: str) -> None:
    """A filter that matches nothing for a slip of the pen looks like a capture without traffic."""
    done = kwiresniff("stats", "--hosts", hosts, "-Y", "client == chekout or broker == kafka-1", RECORDING)
    assert done.err == (
        "kwiresniff: no address in the captures is called 'chekout'; names can be given with --hosts FILE\n"
    )
