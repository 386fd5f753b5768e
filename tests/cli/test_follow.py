"""``kwiresniff follow``: what one connection, client, group or producer did, with what TCP did in between."""

from __future__ import annotations

import json
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Run
from tests.support.paths import CAPTURES

LOSSY = CAPTURES / "lossy" / "client.pcap.xz"
PRODUCE = str(CAPTURES / "java-produce.pcap")
TRANSACTIONS = str(CAPTURES / "java-transactions.pcap")


def events(kwiresniff: Run, *args: str) -> list[dict[str, Any]]:
    done = kwiresniff("follow", "-o", "jsonl", "-q", *args)
    assert done.code == 0, done.err
    return [json.loads(line) for line in done.out.splitlines()]


def frames(path: Path, tmp_path: Path, condition: str) -> set[int]:
    """The packets that tshark tells something of."""
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed")
    plain = tmp_path / "plain.pcap"
    plain.write_bytes(subprocess.run(["xz", "-dc", str(path)], capture_output=True, check=True).stdout)
    command = [program, "-n", "-r", str(plain), "-Y", condition, "-T", "fields", "-e", "frame.number"]
    return set(map(int, subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()))


def test_handshakes_ends_and_what_is_sent_again_are_told_as_by_wireshark(kwiresniff: Run, tmp_path: Path) -> None:
    """On connections with losses, of one client's host."""
    found = events(kwiresniff, "client=10.9.0.2", str(LOSSY))
    assert {"syn", "syn_ack", "fin", "retransmission", "request", "response"} <= {one["event"] for one in found}
    ports = {one["client"].rpartition(":")[2] for one in found}
    of_these = "(" + " or ".join(f"tcp.port == {port}" for port in ports) + ")"
    again = "tcp.analysis.retransmission or tcp.analysis.fast_retransmission or tcp.analysis.out_of_order"
    told = {one["packet"] for one in found if one["event"] in ("retransmission", "out_of_order")}
    theirs = frames(LOSSY, tmp_path, f"{of_these} and tcp.len > 0 and ({again})")
    assert told == theirs
    fins = {one["packet"] for one in found if one["event"] == "fin"}
    assert fins <= frames(LOSSY, tmp_path, f"{of_these} and tcp.flags.fin == 1")
    syns = {one["packet"] for one in found if one["event"].startswith("syn")}
    assert syns == frames(LOSSY, tmp_path, f"{of_these} and tcp.flags.syn == 1")


def test_events_are_told_in_the_order_of_their_times(kwiresniff: Run) -> None:
    """Each with the time since the one before."""
    found = events(kwiresniff, "client=too-large", PRODUCE)
    times = [one["timestamp_ns"] for one in found]
    assert times == sorted(times)
    assert [one["delta_ns"] for one in found] == [None, *(b - a for a, b in pairwise(times))]
    assert {one["connection"] for one in found} == {17, 18}


def test_a_connection_is_told_line_by_line(kwiresniff: Run) -> None:
    """Both sides, what was asked and what came back."""
    done = kwiresniff("follow", "connection=18", PRODUCE)
    assert done.code == 0
    lines = done.out.splitlines()
    assert lines[1] == "#18 is 10.9.0.2:34730 → 10.9.0.1:9092"
    assert [line.split("#18")[1].split()[0] for line in lines[2:]] == ["→", "←", "→", "←", "→", "←", "→", "←"]
    assert "← Produce v13  id 5  62 B  after 10.4 ms  MESSAGE_TOO_LARGE" in lines[7]
    assert lines[-1].endswith("← FIN: sends no more  packet 247")


@pytest.mark.parametrize(
    ("what", "apis"),
    [
        ("group=transfer", {"TxnOffsetCommit"}),
        ("transactional_id=transfer-1", {"InitProducerId", "Produce", "EndTxn", "TxnOffsetCommit"}),
        ("producer=1", {"InitProducerId", "Produce", "EndTxn", "TxnOffsetCommit"}),
        ("correlation_id=12", {"EndTxn"}),
    ],
)
def test_what_is_followed_is_found_wherever_messages_name_it(what: str, apis: set[str], kwiresniff: Run) -> None:
    """In requests, in responses, and in the batches of a Produce."""
    found = events(kwiresniff, what, TRANSACTIONS)
    assert apis <= {one["details"]["api"] for one in found if one["event"] == "request"}


def test_a_filter_narrows_what_is_followed(kwiresniff: Run) -> None:
    """A mistake in it is told at its own column."""
    found = events(kwiresniff, "client=too-large", "-Y", "api == Produce", PRODUCE)
    assert {one["details"]["api"] for one in found if one["event"] in ("request", "response")} == {"Produce"}
    done = kwiresniff("follow", "client=too-large", "-Y", "latency > 100", PRODUCE)
    assert (done.code, done.err[:30]) == (2, "kwiresniff: filter: at column ")
    assert "column 11:" in done.err


@pytest.mark.parametrize("what", ["topic=orders", "connection", "connection=abc"])
def test_what_cannot_be_followed_is_usage(what: str, kwiresniff: Run) -> None:
    """One line that says what can be."""
    done = kwiresniff("follow", what, PRODUCE)
    assert done.code == 2
    assert done.err.count("\n") == 1


def test_hostile_names_are_no_part_of_the_filter(kwiresniff: Run) -> None:
    """Quotes and parentheses in the value stay in the value."""
    done = kwiresniff("follow", 'client=x" or api == Produce or client_id == "x', PRODUCE)
    assert (done.code, done.out) == (0, "")
