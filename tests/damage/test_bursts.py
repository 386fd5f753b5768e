"""What came out of order is handed on as fast as somebody takes it, not all at once."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from kwiresniff.model import Exchange, Segment
from kwiresniff.session import Analyzer
from tests.support.conversation import Wire, heartbeat, heartbeat_response
from tests.support.events import analyze_with

#: Events that may wait in these tests.
LIMIT = 100
SEGMENTS, IN_EACH = 80, 60
CLIENT_PORT_NUMBER = 40_000
CLIENT_PORT = CLIENT_PORT_NUMBER.to_bytes(2, "big")


def conversation(missing: bool) -> list[Segment]:
    """Requests in 80 segments and their answers in as many, of both sides the first one last, or never."""
    wire = Wire(client_port=CLIENT_PORT_NUMBER).open().up(heartbeat(0)).down(heartbeat_response(0))
    before = len(wire.segments)
    for number in range(SEGMENTS):
        ids = range(1 + number * IN_EACH, 1 + (number + 1) * IN_EACH)
        wire.up(*map(heartbeat, ids)).down(*map(heartbeat_response, ids))
    front, late, rest = wire.segments[:before], wire.segments[before : before + 2], wire.segments[before + 2 :]
    # Nobody says what has come, so that the gap is waited for.
    rest = [(*one[:4], front[-1][4], *one[5:]) for one in rest]
    return front + rest + ([] if missing else late)


def exchanges(segments: Iterable[Segment]) -> tuple[list[Exchange], int]:
    """All exchanges, and how many events were waiting at most when one was added."""
    waiting = [0]

    def note(_: Exchange) -> bool:
        waiting.append(len(analyzer.output.events))
        return True

    analyzer = Analyzer("headers", exchange_filter=note)
    analyzer.most_waiting = LIMIT
    found = [event for event in analyze_with(analyzer, segments) if isinstance(event, Exchange)]
    assert not analyzer.paused
    return found, max(waiting)


@pytest.mark.parametrize("missing", [False, True], ids=["the gap is filled", "the capture ends"])
def test_a_long_queue_is_handed_on_in_portions(missing: bool) -> None:
    """Nearly 5,000 exchanges wait behind a gap in either direction: none is lost, and few are held at once."""
    found, most = exchanges(conversation(missing))
    first = 1 + IN_EACH * missing
    assert [one.correlation_id for one in found] == [0, *range(first, 1 + SEGMENTS * IN_EACH)]
    assert {one.outcome for one in found} == {"ok"}
    assert LIMIT <= most < LIMIT + 2 * IN_EACH


def test_connections_that_end_with_the_capture_end_one_after_the_other() -> None:
    """Ten of them, each with its queue."""
    segments: list[Segment] = []
    for number in range(10):
        port = (CLIENT_PORT_NUMBER + 1 + number).to_bytes(2, "big")
        for one in conversation(True):
            segments.append((*one[:2], one[2].replace(CLIENT_PORT, port), *one[3:]))
    found, most = exchanges(segments)
    assert len(found) == 10 * (1 + (SEGMENTS - 1) * IN_EACH)
    assert LIMIT <= most < LIMIT + 2 * IN_EACH + 20
