"""The split of the wait, held to the request log of a real broker, at both ends of the cable.

``captures/recipes/session/latency.py`` made the recordings and the log; its times are the broker's own.
"""

from __future__ import annotations

import gzip
import json
import statistics
import tomllib
from functools import cache
from hashlib import sha256
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from kwiresniff.session.delays import OWN_NS
from tests.support.events import analyze
from tests.support.paths import CAPTURES

FOLDER = CAPTURES / "latency"
ENDS = ("broker", "client")
MS = 1_000_000


@cache
def logged() -> dict[tuple[str, str, int], dict[str, Any]]:
    """What the broker said of each request."""
    rows = map(json.loads, gzip.decompress((FOLDER / "log.jsonl.gz").read_bytes()).splitlines())
    return {(row["client"], row["broker"], row["correlation_id"]): row for row in rows}


@cache
def recorded(end: str) -> list[tuple[Exchange, dict[str, Any]]]:
    """Each exchange with its row."""
    found = analyze(open_captures([str(FOLDER / f"{end}.pcap.xz")]), depth="errors")
    exchanges = [one for one in found if isinstance(one, Exchange)]
    keys = [(one.connection.client, one.connection.broker, one.correlation_id) for one in exchanges]
    return [(one, logged()[key]) for one, key in zip(exchanges, keys, strict=True) if key in logged()]


def of(end: str, kind: str, api: str) -> list[tuple[Exchange, dict[str, Any]]]:
    found = [pair for pair in recorded(end) if (pair[0].client_id, pair[0].api) == (kind, api)]
    assert len(found) >= 100
    return found


def within(values: list[float], bound: float) -> float:
    """The part of them that is no further from 0 than that."""
    return sum(abs(value) <= bound for value in values) / len(values)


@pytest.mark.parametrize("end", ENDS)
def test_what_a_broker_takes_for_a_long_poll_whose_timer_struck_is_what_its_log_says(end: str) -> None:
    """All but what is held back (RemoteTimeMs), with what the wire adds to it: the constant is that, to 0.1 ms."""
    polls = [(one, row) for one, row in of(end, "polling", "Fetch") if (one.latency_ns or 0) >= 100 * MS]
    assert len(polls) >= 100
    own = statistics.median(row["totalTimeMs"] - row["remoteTimeMs"] for _, row in polls)
    wire = statistics.median((one.latency_ns or 0) / MS - row["totalTimeMs"] for one, row in polls)
    assert round(own + wire, 1) == OWN_NS / MS


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("kind", ["serial", "pipelined", "throttled", "replicated"])
def test_the_brokers_own_time_is_what_its_log_says(end: str, kind: str) -> None:
    """TotalTimeMs: in the median within 0.2 ms, though the wait is up to a thousand times as long."""
    found = of(end, kind, "Produce")
    differences = [(one.broker_ns or 0) / MS - row["totalTimeMs"] for one, row in found]
    assert abs(statistics.median(differences)) <= 0.2
    assert within(differences, 1.0) >= 0.95


@pytest.mark.parametrize("end", ENDS)
def test_a_long_poll_is_held_as_long_as_the_log_says(end: str) -> None:
    """RemoteTimeMs is what the broker held back: max_wait_ms, or until a record came."""
    found = of(end, "polling", "Fetch")
    held = [(one.held_ns or 0) / MS - row["remoteTimeMs"] for one, row in found]
    own = [(one.broker_ns or 0) / MS - (row["totalTimeMs"] - row["remoteTimeMs"]) for one, row in found]
    whole = [((one.held_ns or 0) + (one.broker_ns or 0)) / MS - row["totalTimeMs"] for one, row in found]
    for differences in (held, own, whole):
        assert abs(statistics.median(differences)) <= 0.2
        assert within(differences, 1.0) >= 0.95


@pytest.mark.parametrize("end", ENDS)
def test_what_was_pipelined_was_queued_most_of_its_wait(end: str) -> None:
    """Sixty at once: the wait is behind one's own requests."""
    found = of(end, "pipelined", "Produce")
    assert sum(one.queued for one, _ in found) > 5 * sum(one.broker_ns or 0 for one, _ in found)


@pytest.mark.parametrize("end", ENDS)
def test_a_muted_channel_is_told_by_the_answer_before(end: str) -> None:
    """The longest queues of the throttled client are mutes."""
    muted = [one for one, _ in of(end, "throttled", "Produce") if one.muted_ns > 10 * MS]
    assert len(muted) >= 5
    assert all(one.waiting == "throttled" for one in muted)


def test_the_recordings_are_those_of_the_manifest() -> None:
    """Files, bytes and rows agree."""
    rows = tomllib.loads((FOLDER / "MANIFEST.toml").read_text(encoding="utf-8"))["capture"]
    sums = {row["file"]: row["sha256"] for row in rows}
    assert sums == {f"{end}.pcap.xz": sha256((FOLDER / f"{end}.pcap.xz").read_bytes()).hexdigest() for end in ENDS}
