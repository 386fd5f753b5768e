"""Problems of capture files that end badly: one problem, after all packets before it.

The message leaves the place to the problem's ``offset`` and ``packet``, which whoever shows it puts behind it.
"""

from __future__ import annotations

from collections.abc import Callable

from kwiresniff.capture.input_stream import Stream
from kwiresniff.model import Problem

#: The longest packet a record may hold. The largest super-packets that offloading hands to a capture are 512 KiB;
#: a length beyond this one is damage, whatever the file header says of the snap length (which writers get wrong
#: both ways).
MAX_PACKET_BYTES = 1024 * 1024


#: Different lengths at which packets of one capture are cut that are reported: its interfaces may have their own.
MAX_SNAP_LENGTHS = 4


class SnapReporter:
    """Reports the lengths at which packets of one capture with TCP data are cut, each once."""

    def __init__(self, name: str, report: Callable[[Problem], None]) -> None:
        self._name = name
        self._report = report
        self._reported: list[int] = []

    def cut(self, packet: int, captured: int) -> None:
        """Of the packet with the number ``packet`` only ``captured`` bytes are there."""
        if captured in self._reported or len(self._reported) >= MAX_SNAP_LENGTHS:
            return
        self._reported.append(captured)
        message = f"packets of {self._name} are cut at {captured} bytes (snap length); none was dropped for that"
        self._report(Problem("snap_length", message, packet=packet, details={"snap_length": captured}))


class DamageReporter:
    """Words the problems of one stream and hands them to ``report``."""

    def __init__(self, stream: Stream, report: Callable[[Problem], None]) -> None:
        self._stream = stream
        self._report = report

    def ended(self, offset: int, packet: int) -> None:
        """The bytes end at ``offset``, between records; a problem only when the stream knows that it is one."""
        if self._stream.ending:
            self.cut(offset, packet)

    def cut(self, offset: int, packet: int) -> None:
        """The bytes end at ``offset``, inside or before the packet with the number ``packet``."""
        reason = f" ({self._stream.ending})" if self._stream.ending else ""
        message = f"{self._stream.name} is cut off{reason}; all before it was read"
        self._report(Problem("capture_cut", message, offset=offset, packet=packet))

    def damaged(self, offset: int, packet: int, what: str) -> None:
        """The record at ``offset``, where ``packet`` should be, cannot be what it claims to be."""
        message = f"{self._stream.name} is damaged: {what}; it was read up to there"
        self._report(Problem("capture_damaged", message, offset=offset, packet=packet))
