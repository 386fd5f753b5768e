"""A capture in TLS: ``python -m tests.bench.tls_captures CLEAR.pcap TLS.pcap KEYS.log [--tls-1-2]``.

Whatever the connections of a capture in the clear say, two ends of OpenSSL say again; what one side sends in a row is
written at once, as clients and brokers do. Both captures are then read by whoever measures.
"""

from __future__ import annotations

import argparse
import ssl
from pathlib import Path
from typing import BinaryIO

from kwiresniff.base.flows import reverse
from kwiresniff.capture import open_captures
from kwiresniff.model import ACK, FIN, SYN, Segment
from tests.support.capture_files import pcap
from tests.support.tls_conversation import TlsTalk

#: Bytes of TCP in a packet, and the most that a side writes at once.
MSS, WRITE_BYTES = 1448, 64 * 1024
_HEADER_BYTES = 24


class Speaker:
    """One connection: what its sides say in the clear goes out in records."""

    def __init__(self, out: BinaryIO, flow: bytes, version: ssl.TLSVersion, keylog: Path) -> None:
        self._out = out
        self._flows = flow, reverse(flow)
        self._talk = TlsTalk(version=version, keylog=keylog)
        self._next = [1, 1]
        self._pending: tuple[int, bytearray, int] = 0, bytearray(), 0
        self._sent = 0

    def _packet(self, side: int, ns: int, flags: int, payload: bytes = b"") -> None:
        seq, ack = self._next[side] - (flags & SYN > 0), self._next[1 - side]
        one: Segment = (1, ns, self._flows[side], seq, ack, flags, payload, 0, len(payload), 0)
        self._out.write(pcap([one])[_HEADER_BYTES:])
        self._next[side] += len(payload)

    def open(self, ns: int) -> None:
        for side, flags in ((0, SYN), (1, SYN | ACK), (0, ACK)):
            self._packet(side, ns, flags)
        self._talk.shake()
        self._flush(ns)

    def say(self, side: int, ns: int, data: bytes) -> None:
        before, pending, _ = self._pending
        if pending and (before != side or len(pending) > WRITE_BYTES):
            self.send()
            pending = bytearray()
        pending += data
        self._pending = side, pending, ns

    def send(self) -> None:
        side, pending, ns = self._pending
        if pending:
            (self._talk.down if side else self._talk.up)(bytes(pending))
            self._flush(ns)
        self._pending = side, bytearray(), ns

    def _flush(self, ns: int) -> None:
        for side, flight in self._talk.flights:
            for at in range(0, len(flight), MSS):
                self._packet(side, ns, ACK, flight[at : at + MSS])
        self._talk.flights.clear()

    def close(self) -> None:
        self.send()
        ns = self._pending[2]
        self._packet(0, ns, FIN | ACK)
        self._packet(1, ns, FIN | ACK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clear")
    parser.add_argument("tls", type=Path)
    parser.add_argument("keys", type=Path)
    parser.add_argument("--tls-1-2", action="store_true")
    options = parser.parse_args()
    version = ssl.TLSVersion.TLSv1_2 if options.tls_1_2 else ssl.TLSVersion.TLSv1_3
    options.keys.unlink(missing_ok=True)
    open_now: dict[bytes, tuple[Speaker, int]] = {}
    with options.tls.open("wb") as out:
        out.write(pcap([])[:_HEADER_BYTES])
        for _, ns, flow, _, _, flags, buffer, start, end, _ in open_captures([options.clear]):
            if flags & SYN and not flags & ACK:
                speaker = Speaker(out, flow, version, options.keys)
                speaker.open(ns)
                open_now[flow], open_now[reverse(flow)] = (speaker, 0), (speaker, 1)
            elif flow in open_now and start < end:
                speaker, side = open_now[flow]
                speaker.say(side, ns, buffer[start:end])
            if flags & FIN and flow in open_now:
                speaker, _ = open_now.pop(flow)
                open_now.pop(reverse(flow), None)
                speaker.close()
        for speaker in {speaker for speaker, _ in open_now.values()}:
            speaker.close()


if __name__ == "__main__":
    main()
