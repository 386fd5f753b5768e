"""Traffic made to be remembered: each kind makes a reader hold far more than it may, one connection at a time or many.

Run in a process of its own, since what is asked is how much memory that process takes.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Callable, Iterator
from struct import pack

from kwiresniff.base.depths import Depth
from kwiresniff.model import Segment
from kwiresniff.session import Analyzer
from tests.support.conversation import HEARTBEAT_BODY, Wire, heartbeat, heartbeat_response, request, response, string
from tests.support.events import analyze_with

MEGABYTE = 1 << 20
#: What all connections may hold in these tests, so that they are quick; the usual limit is 256 MB.
LIMIT = 4 * MEGABYTE


def wires(count: int) -> Iterator[Wire]:
    for number in range(count):
        wire = Wire(client_port=1024 + number % 60_000, isn=(number * 7_919, number * 104_729))
        wire.packet = number * 10_000
        yield wire


def sent(wire: Wire) -> Iterator[Segment]:
    yield from wire.segments
    wire.segments.clear()


def requests_on_one_connection() -> Iterator[Segment]:
    """1,400 requests of 60 KB: the limit of one connection is 64 MB."""
    (wire,) = wires(1)
    wire.open()
    for number in range(1_400):
        yield from sent(wire.up(request(12, 0, number, HEARTBEAT_BODY + b"x" * 60_000)))


def requests_on_many_connections() -> Iterator[Segment]:
    for wire in wires(8):
        wire.open()
        for number in range(40):
            yield from sent(wire.up(request(12, 0, number, HEARTBEAT_BODY + b"x" * 60_000)))


def small_requests() -> Iterator[Segment]:
    """What is known of a request takes more than its bytes."""
    for wire in wires(8):
        yield from sent(wire.open().up(*(heartbeat(number) for number in range(1_000))))
        yield from sent(wire.up(*(heartbeat(1_000 + number) for number in range(1_000))))


def unfinished_frames() -> Iterator[Segment]:
    for wire in wires(300):
        yield from sent(wire.open().up(request(12, 0, 1, HEARTBEAT_BODY + b"x" * 62_000)[:-1]))


def frames_in_tiny_segments() -> Iterator[Segment]:
    """Three bytes a segment: each would be an object of its own."""
    for wire in wires(10):
        yield from sent(wire.open().up(pack(">i", 60_000) + heartbeat(1)[4:]))
        for _ in range(15_000):
            wire.up(b"abc")
        yield from sent(wire)


def frames_of_ended_connections() -> Iterator[Segment]:
    for wire in wires(300):
        yield from sent(wire.open().up(request(12, 0, 1, HEARTBEAT_BODY + b"x" * 62_000)[:-1]).reset())


def answers_before_requests() -> Iterator[Segment]:
    for wire in wires(150):
        wire.open().up(heartbeat(1)).down(heartbeat_response(1))
        for correlation_id in range(100):
            wire.down(response(1_000 + correlation_id, b"x" * 1_300))
        yield from sent(wire)


def bytes_under_search() -> Iterator[Segment]:
    for wire in wires(300):
        for _ in range(4):
            wire.up(b"\x7f" * 15_000)
        yield from sent(wire)


def single_bytes_under_search() -> Iterator[Segment]:
    for wire in wires(12):
        for _ in range(3_000):
            wire.up(b"\x7f")
        yield from sent(wire)


def tiny_segments_out_of_order() -> Iterator[Segment]:
    for wire in wires(12):
        wire.open().up(heartbeat(1)).up(b"x", drop=True)
        for _ in range(3_000):
            wire.up(b"y")
        yield from sent(wire)


def unfinished_hellos() -> Iterator[Segment]:
    """Handshake records whose message is announced longer than it is."""
    hello = b"\x16\x03\x01\x3e\x80" + b"\x01\x00\xff\xff" + b"\0" * 15_996
    part = b"\x16\x03\x01\x3e\x80" + b"\0" * 16_000
    for wire in wires(400):
        yield from sent(wire.open().up(hello).up(part).up(part[:9_000]))


def client_ids() -> Iterator[Segment]:
    """Each is four times as long when its bytes are escaped."""
    (wire,) = wires(1)
    wire.open()
    for number in range(5_000):
        whole = bytearray(request(12, 0, number, HEARTBEAT_BODY, "x" * 1_000))
        whole[14:1014] = b"%06d" % number + b"\xff" * 994
        yield from sent(wire.up(bytes(whole)).down(heartbeat_response(number)))


def software_names() -> Iterator[Segment]:
    def compact(length: int) -> bytes:
        size = length + 1
        return bytes([size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14]) + b"s" * length

    for wire in wires(300):
        yield from sent(wire.open().up(request(18, 3, 1, compact(30_000) + compact(30_000) + b"\0", tags=b"\0")))


def authentications() -> Iterator[Segment]:
    for wire in wires(30):
        wire.open()
        for number in range(30):
            wire.up(request(17, 1, 2 * number, string("m" * 30_000))).down(response(2 * number, pack(">hi", 0, 0)))
        yield from sent(wire)


#: The traffic, how far it is read, and the megabytes that it may take.
KINDS: dict[str, tuple[Callable[[], Iterator[Segment]], Depth, int]] = {
    "requests on many connections": (requests_on_many_connections, "records", 7),
    "small requests": (small_requests, "errors", 7),
    "unfinished frames": (unfinished_frames, "records", 7),
    "frames in tiny segments": (frames_in_tiny_segments, "records", 6),
    "frames of ended connections": (frames_of_ended_connections, "records", 7),
    "answers before requests": (answers_before_requests, "records", 7),
    "bytes under search": (bytes_under_search, "records", 7),
    "single bytes under search": (single_bytes_under_search, "records", 7),
    "tiny segments out of order": (tiny_segments_out_of_order, "records", 7),
    "unfinished hellos": (unfinished_hellos, "records", 7),
    "client ids": (client_ids, "errors", 7),
    "software names": (software_names, "errors", 7),
    "authentications": (authentications, "errors", 7),
    "requests on one connection": (requests_on_one_connection, "records", 72),
}


def measure(kind: str) -> None:
    """Read one kind."""
    traffic, depth, _ = KINDS[kind]
    reader = Analyzer(depth)
    if kind != "requests on one connection":
        reader.budget.limit = LIMIT
    for _ in analyze_with(reader, traffic()):
        pass


def measure_all() -> None:
    """Print for each kind by how many bytes it raised the most that was resident, each in a process of its own."""
    unit = 1 if sys.platform == "darwin" else 1024
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for kind in KINDS:
        child = os.fork()
        if not child:
            measure(kind)
            os._exit(0)
        _, status, usage = os.wait4(child, 0)
        if status:
            sys.exit(f"{kind}: {status}")
        print(f"{kind}: {(usage.ru_maxrss - before) * unit}", flush=True)


if __name__ == "__main__":
    measure_all()
