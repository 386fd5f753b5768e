"""Captured packets into pcap files that follow each other, named and bounded as tcpdump does it (-w, -C, -G, -W).

Source: tcpdump's manual page, and draft-ietf-opsawg-pcap for the format: nanosecond pcap in little-endian order.
"""

from __future__ import annotations

import contextlib
import struct
import time
from dataclasses import dataclass
from typing import BinaryIO

from kwiresniff.capture.paths import reason
from kwiresniff.errors import CaptureError

_MAGIC_NANOSECONDS = 0xA1B23C4D
_file_header = struct.Struct("<IHHiIII")
_record = struct.Struct("<IIII").pack
_RECORD_BYTES = 16
#: Pieces gathered before they are written, two for each packet.
MAX_PARTS = 4096


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file ends and the next begins.

    ``size_bytes``: once a file is larger than that, the next packet goes into one with a number after its name.
    ``seconds``: after that time, into one named anew by its strftime pattern. ``files`` bounds their number: with
    sizes the first is then written again, with times alone the capture ends.
    """

    size_bytes: int | None = None
    seconds: int | None = None
    files: int | None = None


class PacketFiles:
    """Writes packets. ``full`` says that no further file is allowed, and that nothing more will be written."""

    def __init__(self, name: str, link_type: int, snap_bytes: int, rotation: Rotation, start_ns: int) -> None:
        """``name`` is a strftime pattern when files rotate by time; ``start_ns`` is the time now."""
        self.full = False
        self._pattern = name
        self._header = _file_header.pack(_MAGIC_NANOSECONDS, 2, 4, 0, 0, snap_bytes, link_type)
        self._rotation = rotation
        self._rotates = bool(rotation.seconds or rotation.size_bytes)
        self._parts: list[bytes] = []
        self._period_start_ns = start_ns
        self._periods = 0
        self._number = 0
        self._digits = len(str(rotation.files - 1)) if rotation.files and rotation.size_bytes else 0
        self._file, self._name = self._open()
        self._size = len(self._header)

    def write(self, timestamp_ns: int, buffer: bytes, start: int, end: int, wire: int) -> None:
        """One packet, into the file whose turn it is; it is there after the next ``flush``. Raises CaptureError."""
        if self._rotates:
            self._take_turns(timestamp_ns)
            if self.full:
                return
        seconds, fraction = divmod(timestamp_ns, 1_000_000_000)
        size = end - start
        # One write for many packets: two for each would cost more than all the rest.
        self._parts += (_record(seconds, fraction, size, wire), buffer[start:end])
        self._size += _RECORD_BYTES + size
        if len(self._parts) >= MAX_PARTS:
            self._write_out()

    def flush(self) -> None:
        """What was written can be read. Raises CaptureError."""
        if self._parts:
            self._write_out()

    def _write_out(self) -> None:
        parts, self._parts = self._parts, []
        try:
            self._file.write(b"".join(parts))
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from None

    def _take_turns(self, timestamp_ns: int) -> None:
        rotation = self._rotation
        if rotation.seconds and timestamp_ns - self._period_start_ns >= rotation.seconds * 1_000_000_000:
            self._next_period(timestamp_ns)
        if rotation.size_bytes and self._size > rotation.size_bytes:
            self._number += 1
            if rotation.files and self._number >= rotation.files:
                self._number = 0
            self._next_file()

    def close(self) -> None:
        """Raises CaptureError."""
        try:
            self.flush()
        finally:
            self._close_file()

    def _close_file(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(error) from None

    def _next_period(self, timestamp_ns: int) -> None:
        rotation = self._rotation
        self._periods += 1
        if rotation.files and not rotation.size_bytes and self._periods >= rotation.files:
            self.full = True
            return
        self._period_start_ns = timestamp_ns
        self._number = 0
        self._next_file()

    def _next_file(self) -> None:
        self.close()
        self._file, self._name = self._open()
        self._size = len(self._header)

    def _open(self) -> tuple[BinaryIO, str]:
        name = self._pattern
        if self._rotation.seconds:
            name = time.strftime(name, time.localtime(self._period_start_ns // 1_000_000_000))
        if self._number or self._digits:
            name += str(self._number).zfill(self._digits)
        try:
            file = open(name, "wb")  # noqa: SIM115  closed by close()
            try:
                file.write(self._header)
                file.flush()
            except OSError:
                with contextlib.suppress(OSError):
                    file.close()
                raise
        except (OSError, ValueError) as error:
            raise CaptureError(f"{name}: {reason(error)}") from None
        return file, name

    def _failed(self, error: OSError) -> CaptureError:
        return CaptureError(f"{self._name}: {reason(error)}; the packets up to there are in it")
