"""Real losses: a network that loses, repeats, delays and reorders packets, and a capture point that does.

The three recordings are of the same minute. What passed the cable comes from the sequence numbers at both its ends,
what was asked and answered from the broker's own request log; neither from the code under test.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import lzma
import tomllib
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import SYN, Exchange, Problem, Segment
from kwiresniff.schema import message
from tests.support.comparison import endpoints_text
from tests.support.events import analyze
from tests.support.raw_packets import count_packets
from tests.support.request_log import differences, identity, logged_identity

LOSSY = Path(__file__).parents[2] / "captures" / "lossy"
ROWS: list[dict[str, Any]] = tomllib.loads((LOSSY / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]
Interval = tuple[int, int]


@cache
def log() -> list[dict[str, Any]]:
    """What the broker said, without the answers to clients that had hung up, which never passed the cable."""
    text = gzip.decompress((LOSSY / "expected.jsonl.gz").read_bytes()).decode()
    rows = [json.loads(line) for line in text.splitlines()]
    passed = wholeness("client", 4)
    for said in rows:
        if (said["broker"], said["client"], said["correlation_id"]) not in passed:
            said["response"] = None
    return rows


@cache
def segments(name: str) -> list[Segment]:
    return list(open_captures([str(LOSSY / f"{name}.pcap.xz")]))


def exchanges(name: str) -> list[Exchange]:
    """What is found in a recording, without what a client asked when it hung up, which the broker did not log."""
    events = analyze(segments(name), depth="bodies", show_secrets=True)
    known = set(map(logged_identity, log()))
    found = [event for event in events if isinstance(event, Exchange)]
    return [one for one in found if one.outcome != "unanswered" or identity(one) in known]


class Direction:
    """The bytes of one direction by their place behind its SYN, from however many captures."""

    def __init__(self, isn: int) -> None:
        self.isn = isn
        self.data = bytearray()
        self.known: set[int] = set()

    def place(self, segment: Segment) -> Interval:
        start = (segment[3] - self.isn - 1) & 0xFFFFFFFF
        return start, start + segment[8] - segment[7]

    def lay(self, segment: Segment) -> None:
        start, end = self.place(segment)
        self.data += bytes(max(0, end - len(self.data)))
        self.data[start:end] = segment[6][segment[7] : segment[8]]
        self.known.update(range(start, end))

    def frames(self) -> list[Interval]:
        """(start, end) of every frame, length included."""
        assert len(self.known) == len(self.data), "both ends together have every byte"
        found, at = [], 0
        while at < len(self.data):
            end = at + 4 + int.from_bytes(self.data[at : at + 4], "big")
            found.append((at, end))
            at = end
        return found


@cache
def directions() -> dict[bytes, Direction]:
    """What passed the cable: the union of what both its ends saw."""
    both = [*segments("client"), *segments("broker")]
    found = {segment[2]: Direction(segment[3]) for segment in both if segment[5] & SYN}
    for segment in both:
        if segment[7] < segment[8]:
            found[segment[2]].lay(segment)
    return found


def captured(name: str) -> dict[bytes, set[int]]:
    """The places of each direction whose bytes are in one capture."""
    found: dict[bytes, set[int]] = {flow: set() for flow in directions()}
    for segment in segments(name):
        if segment[7] < segment[8]:
            found[segment[2]].update(range(*directions()[segment[2]].place(segment)))
    return found


def wholeness(name: str, id_at: int) -> dict[tuple[str, str, int], tuple[bool, bool]]:
    """(source, destination, correlation id) -> whether a frame is all there, and whether its neighbours are, too."""
    there = captured(name)
    found = {}
    for flow, direction in directions().items():
        frames = direction.frames()
        whole = [there[flow].issuperset(range(*frame)) for frame in frames]
        for index, (start, _) in enumerate(frames):
            correlation_id = int.from_bytes(direction.data[start + id_at : start + id_at + 4], "big", signed=True)
            found[*endpoints_text(flow), correlation_id] = whole[index], all(whole[max(0, index - 1) : index + 2])
    return found


def disagreements(exchange: Exchange, said: dict[str, Any]) -> Iterable[str]:
    """What the broker's log says otherwise of an exchange."""
    for direction, part in (("request", exchange.request), ("response", exchange.response)):
        if said[direction] is None:
            continue
        if part is None or part.body is None:
            yield f"{identity(exchange)} has no {direction}"
        else:
            fields = message(said["api_key"], part.version, direction).fields
            yield from differences(fields, part.body, said[direction], f"{said['api']} {direction}")


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_file_and_row_agree(row: dict[str, Any]) -> None:
    content = (LOSSY / row["file"]).read_bytes()
    assert hashlib.sha256(content).hexdigest() == row["sha256"]
    assert count_packets(lzma.decompress(content)) == row["packets"]


def test_the_recordings_have_what_they_are_for() -> None:
    """Packets were lost on both ways and sent again, some came twice, some late; and the mirror lost others."""
    for name in ("client", "broker"):
        count = Counter((s[2], s[3], s[8] - s[7]) for s in segments(name) if s[7] < s[8])
        assert sum(times > 1 for times in count.values()) > 10
    assert sum(len(direction.data) for direction in directions().values()) > sum(map(len, captured("mirror").values()))


@pytest.mark.parametrize("name", ["client", "broker"])
def test_a_lossy_network_costs_nothing(name: str) -> None:
    """What was lost on the way was sent again, so every exchange is there, and as the broker's log has it."""
    found = exchanges(name)
    assert Counter(map(identity, found)) == Counter(map(logged_identity, log()))
    ours = {identity(exchange): exchange for exchange in found}
    assert [text for said in log() for text in disagreements(ours[logged_identity(said)], said)] == []


def test_a_lossy_capture_point_costs_only_what_it_lost() -> None:
    """Every exchange whose bytes are all there is decoded and paired as the broker has it, even beside the damage."""
    ours = {identity(exchange): exchange for exchange in exchanges("mirror")}
    requests, responses = wholeness("mirror", 8), wholeness("mirror", 4)
    whole = beside = 0
    found: list[str] = []
    for said in log():
        ends = said["client"], said["broker"]
        asked = requests[*ends, said["correlation_id"]]
        answered = responses[*ends[::-1], said["correlation_id"]] if said["response"] else (True, True)
        if not (asked[0] and answered[0]):
            continue
        whole += 1
        beside += not (asked[1] and answered[1])
        exchange = ours.get(logged_identity(said))
        found += disagreements(exchange, said) if exchange else [f"missed {logged_identity(said)}"]
    assert found == []
    assert len(log()) > whole > 0.8 * len(log())
    assert beside > 5


def test_what_the_capture_point_lost_is_told_and_nothing_is_invented() -> None:
    """Missing bytes are those of the holes; each exchange was asked or answered."""
    events = list(analyze(segments("mirror"), depth="bodies"))
    missing = sum((e.details or {})["missing_bytes"] for e in events if isinstance(e, Problem) and e.code == "gap")
    there = captured("mirror")
    assert missing == sum(len(direction.data) - len(there[flow]) for flow, direction in directions().items())
    known = set(map(logged_identity, log()))
    answers = {(said["client"], said["broker"], said["correlation_id"]) for said in log()}
    for exchange in events:
        if isinstance(exchange, Exchange) and exchange.response is not None and exchange.request is not None:
            assert identity(exchange) in known
        elif isinstance(exchange, Exchange) and exchange.request is None:
            assert (exchange.connection.client, exchange.connection.broker, exchange.correlation_id) in answers
