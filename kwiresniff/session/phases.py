"""The phases of a connection: what it is known to be, and so what becomes of its frames and gaps.

Detection returns the phase as a :class:`Verdict`; the connection goes into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kwiresniff.stream.half_stream import HalfStream

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The phases of a connection: not known yet what it is; SASL tokens without a header go by; Kafka; TLS; something else.
UNIDENTIFIED: Final = 0
SASL_OPAQUE: Final = 1
KAFKA: Final = 2
TLS: Final = 3
IGNORED: Final = 4


class Verdict:
    """A connection's ``phase`` and ``client`` half stream; messages or records begin at ``offset`` of ``shown``.
    ``protocol`` names what is ignored.
    """

    __slots__ = ("client", "offset", "phase", "protocol", "shown")

    def __init__(self, phase: i64, client: HalfStream, shown: HalfStream, offset: int, protocol: str) -> None:
        self.phase = phase
        self.client = client
        self.shown = shown
        self.offset = offset
        self.protocol = protocol
