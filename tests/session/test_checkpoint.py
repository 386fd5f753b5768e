"""What an analyzer knows, written and read again: nothing of it may get lost or change."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.export.json_objects import event_json
from kwiresniff.model import Event, Segment
from kwiresniff.session import Analyzer
from kwiresniff.session.checkpoint import EMPTY, StateError, dump, load, state_of
from tests.support.events import analyze_with, expire, finish, process
from tests.support.sample import sampled

CAPTURES = Path(__file__).resolve().parent.parent.parent / "captures"
RECORDED = sorted(path for path in CAPTURES.iterdir() if ".pcap" in path.name)
#: Whatever the arguments of an analyzer lead to, which a checkpoint does not hold.
REQUESTED = {
    "broker_ports", "attempts", "keep_request", "keep_response", "filters", "most_waiting", "output", "paused",
    "pauses", "_events", "_secrets_seen", "tls_ending", "tls_secrets", "tls_waiting",
    "waits_at_end",
}  # fmt: skip


def event_texts(events: Iterable[Event]) -> list[str]:
    return [json.dumps(event_json(event), default=repr) for event in events]


def interrupted(segments: Sequence[Segment], step: int) -> list[str]:
    """What is told when every ``step`` segments another analyzer takes over."""
    found: list[str] = []
    analyzer = Analyzer()
    for start in range(0, len(segments), step):
        found += event_texts(process(analyzer, segments[start : start + step]))
        state = dump(analyzer)
        analyzer = Analyzer()
        load(analyzer, state)
    return found + event_texts(finish(analyzer))


@pytest.mark.parametrize("capture", sampled(RECORDED, first=1), ids=lambda path: path.name)
def test_another_analyzer_goes_on_where_one_stopped(capture: Path) -> None:
    """In every recording, between any two packets of the first sixty and every ninth from there on."""
    segments = list(open_captures([str(capture)]))
    whole = event_texts(analyze_with(Analyzer(), segments))
    assert interrupted(segments[:60], 1) == event_texts(analyze_with(Analyzer(), segments[:60]))
    assert interrupted(segments, 9) == whole


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_damage_is_carried_too(seed: int) -> None:
    """Segments lost, swapped and doubled: holes, bytes under search and early responses are part of the state."""
    chance = random.Random(seed)
    segments = list(open_captures([str(CAPTURES / "franz-go.pcap")]))
    damaged: list[Segment] = []
    for segment in segments[chance.randrange(40) : 200]:
        fate = chance.random()
        if fate < 0.05:
            continue
        damaged.insert(len(damaged) - (fate < 0.15), segment)
        if fate > 0.95:
            damaged.append(segment)
    assert interrupted(damaged, 1) == event_texts(analyze_with(Analyzer(), damaged))


def test_every_field_of_an_analyzer_is_state_or_requested() -> None:
    """A new field must be put on one side. Compiled classes do not tell their fields."""
    for cls in EMPTY:
        slots = [name for one in cls.__mro__ for name in vars(one).get("__slots__", ())]
        again = vars(cls).get("MADE_AGAIN", ())
        assert not slots or sorted(slots) == sorted((*state_of(cls), *again)), cls
    fields = {*state_of(Analyzer), *REQUESTED}
    assert set(getattr(Analyzer(), "__dict__", fields)) == fields


def test_silent_connections_expire_by_the_clock_of_the_capture() -> None:
    """What was open ends as it would at the end of the capture; a connection that still speaks stays."""
    segments = list(open_captures([str(CAPTURES / "java-group-classic.pcap")]))
    analyzer = Analyzer()
    before = event_texts(process(analyzer, segments[:150]))
    assert event_texts(expire(analyzer, 10**12)) == []
    half = event_texts(expire(analyzer, -1))
    assert before + half == event_texts(analyze_with(Analyzer(), segments[:150]))
    assert len(dump(analyzer)) < 8192


@pytest.mark.parametrize("damage", ["", "cut", "other", "layout"])
def test_what_is_no_state_is_refused(damage: str) -> None:
    """Whatever it is instead; nothing is made of it."""
    state = dump(Analyzer())
    text: dict[str, Any] = {"layout": {}, "objects": []}
    raw = json.dumps(text).encode()
    broken = {
        "": b"",
        "cut": state[:-9],
        "other": zlib.compress(b"\x00" * 64),
        "layout": zlib.compress(len(raw).to_bytes(8, "little") + raw),
    }[damage]
    with pytest.raises(StateError):
        load(Analyzer(), broken)
