"""Rules of ``--decode-as`` in a live capture."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kwiresniff.capture.link_layer import ETHERNET
from kwiresniff.capture.live.live_capture import LiveCapture
from kwiresniff.capture.live.source import Batch, LiveOptions, Packet
from kwiresniff.model import Problem
from tests.support.wrapped_recording import FRAMES, TRAILER, udp


class Wrapped:
    """A source that has packets of a recording in a tunnel that has to be named."""

    def __init__(self) -> None:
        self.link_type = ETHERNET
        self.problems: list[Problem] = []
        self.waiting = 0

    def batches(
        self, go_on: Callable[[], bool], keep: Callable[[list[Packet]], bool], *, keep_all: bool
    ) -> Iterator[Batch]:
        packets = [udp(b"\xff" * 8 + frame + TRAILER, 8473) for _, _, _, frame in FRAMES]
        batch: list[Packet] = [(number, data, 0, len(data), len(data)) for number, data in enumerate(packets)]
        keep(batch)
        yield 0, batch

    def dropped(self) -> int:
        return 0

    def close(self) -> None:
        pass


def test_rules_hold_for_what_passes() -> None:
    """Without the rule all packets are counted as UDP, with it every one has a segment."""
    live = LiveCapture(Wrapped(), LiveOptions(("lo",)))
    assert list(live) == [] and live.other_packets == {"udp": len(FRAMES)}
    live = LiveCapture(Wrapped(), LiveOptions(("lo",), decode_as=("udp.port==8473,vxlan",)))
    assert len(list(live)) == len(FRAMES) and live.other_packets == {}
