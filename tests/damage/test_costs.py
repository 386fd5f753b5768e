"""Traffic made to keep the reader busy: a byte of it costs a few times what a byte of ordinary traffic costs."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from struct import pack
from time import process_time

import pytest

from kwiresniff.model import SYN, Segment
from kwiresniff.session import Analyzer
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response
from tests.support.events import analyze_with

#: Costs are measured over and over: half a minute of processor time.
pytestmark = pytest.mark.slow

#: Link, network and transport headers and the capture's own, which every segment has.
HEADER_BYTES = 70
#: How much more a byte may cost. Five is the most that was measured of the sources, twenty of the compiled build, where
#: ordinary bytes cost next to nothing here; what this is to find costs up to thousands.
BOUND = 50

#: A Metadata request without a client id, for one topic whose name is longer than what follows: it reads like a request
#: until its last field.
NEARLY = pack(">ihhihih", 16, 3, 0, 7, -1, 1, 40)


def ordinary() -> Wire:
    """Five hundred heartbeats, each answered."""
    wire = Wire().open()
    for number in range(500):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    return wire


def early_answers() -> Wire:
    """Answers that nobody asked for wait for their requests, while others come and 9,900 are outstanding."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number in range(99):
        wire.up(*(heartbeat(10_000 + 100 * number + i) for i in range(100)))
    for number in range(1_500):
        wire.down(response(1_000_000 + number)).up(heartbeat(2_000_000 + number, ""))
    return wire


def nearly_requests(start: Callable[[], Wire]) -> Wire:
    wire = start()
    for _ in range(100):
        wire.up(b"\0\0\0" + NEARLY * 64)
    return wire


def after_a_gap() -> Wire:
    return Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).up(b"x" * 100_000, drop=True)


def again_and_again() -> Wire:
    """A request, then a length that no message has: the footing is found and lost by the hundred."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number in range(300):
        wire.up((heartbeat(number) + b"\xff" * 4 + NEARLY * 2) * 10)
    return wire


def many_outstanding() -> Wire:
    """What the broker sent is searched for the answers to a hundred requests."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(*(heartbeat(0x01010101 * (2 + number)) for number in range(100)))
    wire.down(b"x" * 100_000, drop=True)
    for _ in range(100):
        wire.down(b"\x7f" * 1400)
    return wire


def both_sides_doubtful() -> Wire:
    """Either side may be the client: what one sends is compared with what the other one sends."""
    wire = Wire()
    for _ in range(60):
        wire.up(request(3, 0, 7, pack(">i", 0), None) * 60).down(b"\x10" + NEARLY * 3, missing=0)
    return wire


def attempts() -> Wire:
    """Nothing but SYNs, each of another connection."""
    wire = Wire()
    for number in range(5_000):
        syn = Wire(client_port=1024 + number)
        syn.send(0, flags=SYN)
        wire.segments += syn.segments
    return wire


def single_bytes() -> Wire:
    """Segments of one byte each, on a connection of which nothing is known."""
    wire = Wire()
    for _ in range(2_000):
        wire.up(b"x")
    return wire


HOSTILE: dict[str, Callable[[], Wire]] = {
    "early answers": early_answers,
    "what reads like requests from the middle": lambda: nearly_requests(Wire),
    "what reads like requests behind a gap": lambda: nearly_requests(after_a_gap),
    "a footing lost by the hundred": again_and_again,
    "answers to a hundred requests": many_outstanding,
    "two sides that may be clients": both_sides_doubtful,
    "attempts at connections": attempts,
    "single bytes": single_bytes,
}


def cost_of(wire: Wire, rounds: int = 1) -> float:
    """Seconds of CPU that a byte on the wire takes, the least of some rounds.

    Nobody looks for garbage meanwhile: how long that takes depends on what the tests before have left.
    """
    size = sum(HEADER_BYTES + segment[8] - segment[7] for segment in wire.segments)

    def once() -> float:
        began = process_time()
        for _ in analyze_with(Analyzer("errors"), segments_of(wire)):
            pass
        return process_time() - began

    gc.disable()
    try:
        return min(once() for _ in range(rounds)) / size
    finally:
        gc.enable()


def segments_of(wire: Wire) -> Iterator[Segment]:
    yield from wire.segments


@pytest.fixture(scope="module")
def usual_cost() -> float:
    cost_of(ordinary())  # whatever is made for the first time
    return cost_of(ordinary(), 5)


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_hostile_byte_costs_a_few_times_an_ordinary_one(kind: str, usual_cost: float) -> None:
    """Fifty times at the most, in a process that does other things besides."""
    wire = HOSTILE[kind]()
    assert cost_of(wire, 2) < BOUND * usual_cost, f"{cost_of(wire) / usual_cost:.0f} times"
