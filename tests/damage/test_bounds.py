"""Traffic made to exhaust the reader: memory stays flat, time stays in proportion, what is given up is told."""

from __future__ import annotations

import gc
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from struct import pack

import pytest

from kwiresniff.base.depths import Depth
from kwiresniff.model import SYN, Event, Exchange, Problem, Segment
from kwiresniff.session import Analyzer, connection_table, topic_ids
from tests.support.conversation import HEARTBEAT_BODY, Wire, heartbeat, heartbeat_response, request
from tests.support.events import analyze_with, finish

#: Floods of packets: a minute of processor time.
pytestmark = pytest.mark.slow

MEGABYTE = 1 << 20


def name_of(event: Event) -> str:
    if isinstance(event, Exchange):
        return event.outcome
    return event.code if isinstance(event, Problem) else "connection"


def peak_after(
    segments: Iterator[Segment], depth: Depth = "errors", limit: int | None = None
) -> tuple[int, Counter[str]]:
    """The most memory held at a time, in bytes, and what was said how often; ``limit`` is what may be held back.

    As in a process of its own: the more objects there are already, the less often Python looks for garbage among them.
    """
    reader = Analyzer(depth)
    reader.budget.limit = limit or reader.budget.limit
    gc.collect()
    gc.freeze()
    gc.collect()
    tracemalloc.start()
    try:
        said = Counter(name_of(event) for event in analyze_with(reader, segments))
        return tracemalloc.get_traced_memory()[1], said
    finally:
        tracemalloc.stop()
        gc.unfreeze()


def connections(count: int, *, close: bool) -> Iterator[Segment]:
    """One exchange on each of many connections, one after the other."""
    for number in range(count):
        wire = Wire(client_port=1024 + number % 60_000, isn=(number * 7_919_000, number * 104_729_000))
        wire.packet = number * 10
        wire.open().up(heartbeat(number)).down(heartbeat_response(number))
        yield from (wire.close() if close else wire).segments


def conversation(rounds: int, one_round: Callable[[Wire, int], object]) -> Iterator[Segment]:
    """A connection that begins like any other and goes on as told."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number in range(rounds):
        yield from wire.segments
        wire.segments.clear()
        one_round(wire, number)
    yield from wire.segments


def test_connections_that_come_and_go_leave_nothing_behind(pytestconfig: pytest.Config) -> None:
    """Memory after the first tenth is memory after the last; 100,000 connections in the exhaustive run."""
    count = 100_000 if pytestconfig.getoption("--exhaustive") else 12_000
    reader = Analyzer("errors")
    ended = 0
    marks = []
    tracemalloc.start()
    try:
        for event in analyze_with(reader, connections(count, close=True)):
            ended += not isinstance(event, Exchange)
            if ended and ended % (count // 10) == 0 and not isinstance(event, Exchange):
                gc.collect()  # halves and links refer to each other
                marks.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    # Ended connections are remembered up to a limit, which the first part of the run may not have reached yet.
    full = next(index for index in range(len(marks)) if (index + 1) * (count // 10) >= connection_table.MAX_ENDED)
    assert marks[-1] < marks[full] * 1.1 + MEGABYTE


def test_connections_that_never_close_are_given_up_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Oldest first, with one problem each time room is made; every exchange is still there."""
    monkeypatch.setattr(connection_table, "MAX_CONNECTIONS", 500)
    peak, said = peak_after(connections(5_000, close=False))
    assert (said["ok"], said["connection"]) == (5_000, 5_000)
    assert said["too_many_connections"] > 0
    assert peak < 20 * MEGABYTE


def test_a_flood_of_syns_is_bounded_and_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half-open connections count against the limit like others."""
    monkeypatch.setattr(connection_table, "MAX_CONNECTIONS", 500)

    def flood() -> Iterator[Segment]:
        for number in range(20_000):
            flow = pack(">I", number) + b"\x0a\0\0\x01" + pack(">HH", 1234, 9092)
            yield (number + 1, number, flow, number, 0, SYN, b"", 0, 0, 0)

    peak, said = peak_after(flood())
    assert set(said) == {"too_many_connections"}
    assert peak < 20 * MEGABYTE


#: One round of each kind of hostile traffic, how many rounds, what must be said, and the memory allowed.
HOSTILE: dict[str, tuple[Callable[[Wire, int], object], int, str, int]] = {
    "segments that never come in order": (
        lambda wire, _: wire.up(b"gap" * 300, drop=True).up(b"x" * 100), 20_000, "gap", 8
    ),
    "one correlation id, never answered": (lambda wire, _: wire.up(*[heartbeat(5)] * 100), 300, "unanswered", 16),
    "all correlation ids, never answered": (
        lambda wire, n: wire.up(*(heartbeat(100 * n + i) for i in range(100))), 300, "unanswered", 16
    ),
    "answers nobody asked for": (
        lambda wire, n: wire.down(*(heartbeat_response(100 * n + i) for i in range(100))), 300, "request_missing", 4
    ),
    "a length of two gigabytes, again and again": (
        lambda wire, _: wire.up(pack(">i", 2**31 - 1) + b"x" * 1400), 1_000, "bad_length", 4
    ),
    "frames of length zero": (
        lambda wire, _: wire.up(b"\0" * 40_000).down(b"\0" * 40_000), 10, "bad_length", 4
    ),
    "client ids of 30 KB, each different": (
        lambda wire, n: wire.up(request(12, 0, n, HEARTBEAT_BODY, f"{n:06}" * 5_000)), 2_000, "unanswered", 100
    ),
    "single bytes without a footing": (
        lambda wire, n: wire.up(b"lost" * 4, drop=not n).up(b"\0").down(b"lost" * 4, drop=not n).down(b"\0"),
        5_000, "gap", 5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_conversations_are_bounded_and_told(kind: str) -> None:
    one_round, rounds, told, megabytes = HOSTILE[kind]
    peak, said = peak_after(conversation(rounds, one_round))
    assert said[told] > 0
    assert said["connection"] == 1
    assert peak < megabytes * MEGABYTE


def test_a_frame_of_a_gigabyte_is_counted_down_and_not_held() -> None:
    """Its announced length is believed, but only its front is kept; the end finds it unfinished."""
    front = pack(">i", 1 << 30) + heartbeat(3)[4:]
    peak, said = peak_after(conversation(20_000, lambda wire, n: wire.up(front if not n else b"x" * 1400)))
    assert said["incomplete_request"] == 1
    assert peak < 2 * MEGABYTE


def test_frames_being_assembled_are_bounded_over_all_connections() -> None:
    """Forty requests of 1 MB that arrive at the same time, where 8 MB may be held: the biggest give way, and are told.

    Every request keeps its front, so that it is still named, paired and timed.
    """
    wires = [Wire(client_port=1024 + number).open() for number in range(40)]
    whole = request(12, 0, 7, HEARTBEAT_BODY + b"x" * MEGABYTE)

    def arriving() -> Iterator[Segment]:
        for start in range(0, len(whole), 4200):
            for wire in wires:
                yield from wire.up(whole[start : start + 4200]).segments
                wire.segments.clear()
        for wire in wires:
            yield from wire.down(heartbeat_response(7)).segments

    reader = Analyzer("records")
    reader.budget.limit = 8 * MEGABYTE
    tracemalloc.start()
    try:
        events = list(analyze_with(reader, arriving()))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    found = [event for event in events if isinstance(event, Exchange)]
    assert [(one.api, one.correlation_id, one.response is not None) for one in found] == [("Heartbeat", 7, True)] * 40
    problems = [event for event in events if isinstance(event, Problem) and event.code == "too_much_held"]
    told = [event.details["bytes"] for event in problems if event.details is not None]
    assert len(told) == len(problems)
    assert len(told) > 30
    assert min(told) > 64 << 10
    assert peak < 30 * MEGABYTE


def test_bytes_out_of_order_are_bounded_over_all_connections() -> None:
    """A hole in front of 0.5 MB on each of twenty connections, where 2 MB may be held: the holes are given up."""
    wires = [Wire(client_port=1024 + number).open().up(heartbeat(1)).up(b"x", drop=True) for number in range(20)]

    def arriving() -> Iterator[Segment]:
        for number in range(500):
            for wire in wires:
                yield from wire.up(heartbeat(2 + number, "c" * 1000)).segments
                wire.segments.clear()

    peak, said = peak_after(arriving(), limit=2 * MEGABYTE)
    assert said["too_much_held"] > 0
    assert said["gap"] == said["connection"] == 20
    assert said["unanswered"] == 20 * 501
    assert peak < 25 * MEGABYTE  # 10,000 requests without an answer are most of it


def test_large_requests_without_an_answer_are_bounded_over_all_connections() -> None:
    """Each connection stays below its own limit, all of them together do not."""

    def arriving() -> Iterator[Segment]:
        for number in range(40):
            wire = Wire(client_port=1024 + number).open()
            for count in range(10):
                whole = request(12, 0, count, HEARTBEAT_BODY + b"x" * 200_000)
                for start in range(0, len(whole), 60_000):
                    wire.up(whole[start : start + 60_000])
            yield from wire.segments

    peak, said = peak_after(arriving(), "records", 8 * MEGABYTE)
    assert said["too_much_held"] > 0
    assert said["unanswered"] == 400
    assert peak < 40 * MEGABYTE


def test_topic_names_are_bounded_and_what_is_forgotten_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest first; the count comes with the end."""
    monkeypatch.setattr(topic_ids, "MAX_TOPIC_NAMES", 10)
    reader = Analyzer("bodies")
    for number in range(25):
        told = {"topics": [{"topic_id": f"id-{number}", "name": f"topic-{number}"}]}
        reader.topics.learn(3, "response", told)
    assert [reader.topics.name(f"id-{number}") for number in (14, 15, 24)] == [None, "topic-15", "topic-24"]
    (problem,) = finish(reader)
    assert isinstance(problem, Problem)
    assert (problem.code, problem.details) == ("too_many_topic_names", {"names": 15})
