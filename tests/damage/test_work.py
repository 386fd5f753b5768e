"""What damaged and hostile captures have by the hundred thousand: how much is done for each, counted, not timed."""

from __future__ import annotations

import gc
from pathlib import Path
from struct import pack
from time import process_time
from typing import Any

from kwiresniff.capture import open_captures
from kwiresniff.model import Event, EventList, Exchange, Problem
from kwiresniff.session import Analyzer
from kwiresniff.session.apis import known_versions
from kwiresniff.session.frame_search import GRADE_STEPS, START_STEPS, find_request_start, find_response_start
from kwiresniff.stream.resync_buffer import ResyncBuffer
from tests.support.capture_files import save
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response
from tests.support.events import analyze, analyze_with


def lossy() -> Wire:
    """A hundred heartbeats, of which every other one comes behind a gap that the broker has filled."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number in range(2, 102):
        if number % 2:
            wire.up(b"x" * 500, drop=True)
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    return wire.close()


def test_gaps_do_not_stop_the_reading_of_packets(tmp_path: Path) -> None:
    """A damaged capture has a problem for each packet: control returns to the caller once a buffer all the same."""
    path = save(tmp_path / "gaps.pcap", lossy())
    events = list(analyze(open_captures([path]), depth="errors"))
    found = EventList()
    analyzer = Analyzer("errors", sink=found)
    returns = sum(1 for _ in analyzer.read(open_captures([path]).feed))
    assert returns == 1
    taken = found.take()
    assert sum(isinstance(event, Problem) for event in taken) > 30  # those that are found before the end
    for _ in analyzer.end():
        taken += found.take()
    assert [what(event) for event in taken] == [what(event) for event in events]
    assert sum(isinstance(event, Problem) for event in events) == 50


def what(event: Event) -> Any:
    return event.correlation_id if isinstance(event, Exchange) else event if isinstance(event, Problem) else type(event)


def test_a_response_at_the_very_front_is_not_looked_for_any_further() -> None:
    """There is nothing before it, however many requests are outstanding."""
    buffer = ResyncBuffer()
    buffer.feed(1, 1, -1, pack(">ii", 8, 5) + b"1234")
    before = buffer.steps
    outstanding = dict.fromkeys(range(50))
    assert find_response_start(buffer, outstanding, None, lambda frame, fills: True) == 0
    one_answer = START_STEPS + 4096 + 8 * 8  # to look at a segment, and to read the frame in it
    assert before - buffer.steps <= one_answer + GRADE_STEPS


def test_behind_a_request_that_is_found_no_other_is_looked_for() -> None:
    """However much there is: a short search and a long one take nearly the same time, measured in turns."""
    frame = heartbeat(7)

    def seconds(behind: int) -> float:
        buffer = ResyncBuffer()
        buffer.feed(1, 1, -1, frame)
        buffer.feed(2, 2, -1, b"\xff" * behind)
        buffer.steps = 1 << 30
        began = process_time()
        for _ in range(20):
            assert find_request_start(buffer, known_versions(), lambda *frame: False, known_client=True) == 0
        return process_time() - began

    seconds(1)
    turns = [(seconds(60_000), seconds(100)) for _ in range(10)]
    assert min(long for long, _ in turns) < 10 * min(short for _, short in turns)  # it took 150 times as long


def test_messages_that_break_off_leave_no_garbage() -> None:
    """What is wrong with one would hold it until Python looks for garbage: with all its bytes, for a long time."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    asked = b"\2g" + pack(">ii", 10_000, 10_000) + b"\1\0\2c\2\1\1\0\1"  # JoinGroup v9 without its last byte
    for number in range(2, 12):
        wire.up(request(11, 9, number, asked, "", b"\0")).down(response(number, b"", b"\0"))
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        list(analyze_with(Analyzer("records"), wire.segments))  # whatever is made for the first time
        gc.collect()
        broken = [event for event in analyze_with(Analyzer("records"), wire.segments) if isinstance(event, Exchange)]
        assert [exchange.problems != [] for exchange in broken[1:]] == [True] * 10
        del broken
        assert gc.collect() < 200  # the analyzer; and nearly 70 for each of ten messages
    finally:
        if was_enabled:
            gc.enable()
