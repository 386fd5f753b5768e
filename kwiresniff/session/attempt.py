"""Attempts at connections: SYNs that nothing has followed yet.

A port scan or a broker that is gone leaves them by the ten thousand. So little is kept of each that it costs no more
than its packets; only what follows makes a connection of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from kwiresniff.base.flows import endpoints
from kwiresniff.model import ConnectionAttempt
from kwiresniff.stream.half_stream import COPY_NS, SYN_TIMEOUT_NS

if TYPE_CHECKING:
    from mypy_extensions import i64


class Attempt:
    """A SYN first seen in ``packet``; of its ``copies`` those that came too soon are ``captured_twice``, those after a
    timeout ``retransmits``.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "captured_twice", "copies", "first_ns", "flow", "last_ns", "packet", "retransmits", "seq",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, packet: int, ns: int, flow: bytes, seq: i64) -> None:
        self.packet = packet
        self.first_ns = self.last_ns = ns
        self.flow = flow
        self.seq: i64 = seq
        self.copies: i64 = 0
        self.captured_twice: i64 = 0
        self.retransmits: i64 = 0

    def seen_again(self, ns: int) -> None:
        """Counts the same SYN again."""
        self.copies += 1
        self.captured_twice += ns - self.last_ns < COPY_NS
        self.retransmits += ns - self.last_ns >= SYN_TIMEOUT_NS
        self.last_ns = ns

    def event(self) -> ConnectionAttempt:
        """The event of an attempt that was not answered."""
        sent = 1 + self.retransmits
        return ConnectionAttempt(*endpoints(self.flow), self.packet, self.first_ns, self.last_ns, sent, False, self.seq)
