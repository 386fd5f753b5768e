"""TLS undone: what encrypted connections carry, as segments beside the encrypted ones.

The decryption is tshark's, run by pyshark. It gets no capture file but a stream of its own: only the connections that
begin with a TLS hello, each frame with plain IPv4 and TCP headers and made-up addresses. So it is the same to it how
the packets were captured, tunnelled, compressed or spread over files, and no dissector for a port gets in between.

Formats: SSLKEYLOGFILE (draft-ietf-tls-keylogfile), pcapng decryption secrets block (draft-ietf-opsawg-pcapng,
section 4.7).
"""

from __future__ import annotations

import os
import re
import threading
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwiresniff.capture.captures import Captures
from kwiresniff.capture.paths import reason
from kwiresniff.capture.segments import SegmentSource
from kwiresniff.capture.tls_feed import Feed
from kwiresniff.capture.tls_records import Breaks, RecordStarts
from kwiresniff.errors import CaptureError
from kwiresniff.model import DECRYPTED, SYN, Problem, Segment, file_index

if TYPE_CHECKING:
    from kwiresniff.capture.tshark import Tshark

#: How much of a key log is looked at to see that it is one.
_LOOK_BYTES = 64 * 1024
_KEY_LINE = re.compile(rb"^[A-Z][A-Z0-9_]* [0-9a-fA-F]{16,} [0-9a-fA-F]{32,}\s*$", re.MULTILINE)

#: In the place of a packet and its plaintext.
_NOTHING = (-1, b"")

_WITHOUT_TSHARK = "install Wireshark's command-line program tshark to have TLS decrypted"


def with_decryption(captures: Captures, keylog: str | None) -> SegmentSource:
    """``captures`` with what their TLS connections carry, as far as keys are there.

    The keys are those in the file ``keylog``, and those that pcapng files have before their first packets. Without
    any, the captures are returned as they are. Raises CaptureError when ``keylog`` was asked for and cannot be used.
    """
    if keylog is None and not captures.has_secrets():
        return captures
    if keylog is not None:
        _check(keylog)
    again = captures.again()
    if again is None:
        raise CaptureError(
            "TLS is decrypted from files, which are read twice: save the standard input to a file, and read that"
        )
    if not _tshark_is_there():
        if keylog is not None:
            raise CaptureError(f"--keylog {keylog}: no tshark found; {_WITHOUT_TSHARK}")
        captures.problems.append(Problem("no_tshark", f"there are TLS keys in the capture; {_WITHOUT_TSHARK}"))
        return captures
    return DecryptedCaptures(captures, again, keylog)


def _check(keylog: str) -> None:
    try:
        with open(keylog, "rb") as file:
            head = file.read(_LOOK_BYTES)
    except (OSError, ValueError) as error:
        raise CaptureError(f"{keylog}: {reason(error)}") from None
    if not _KEY_LINE.search(head):
        raise CaptureError(
            f"{keylog} is not a TLS key log: it has no lines like 'CLIENT_RANDOM 0123... 4567...', "
            "which clients and brokers write"
        )


def _tshark_is_there() -> bool:
    from pyshark.tshark.tshark import TSharkNotFoundException, get_process_path

    try:
        get_process_path()
    except TSharkNotFoundException:
        return False
    return True


class DecryptedCaptures:
    """Captures whose segments are accompanied by what they carry decrypted.

    A decrypted segment stands before the one of the packet that completed its record; its sequence numbers count the
    plaintext of its direction from 0, and its flags are DECRYPTED. The first byte of a record that an earlier packet
    began comes at the same place as a segment of its own, with the number and the time of that packet.
    """

    def __init__(self, captures: Captures, again: Captures, keylog: str | None) -> None:
        """``again`` are the same captures, to be read a second time."""
        self.files = captures.files
        self.problems = captures.problems
        self.other_packets = captures.other_packets
        self.total_bytes = captures.total_bytes
        self._captures = captures
        self._plaintexts = _Plaintexts(again, keylog)

    @property
    def packets(self) -> int:
        """Packets read so far, of all kinds."""
        return self._captures.packets

    def position(self) -> int:
        """Bytes consumed so far, as they lie on disk."""
        return self._captures.position()

    def close(self) -> None:
        """Stop tshark and close the files."""
        self._plaintexts.close()
        self._captures.close()

    def __iter__(self) -> Iterator[Segment]:
        plaintexts = iter(self._plaintexts)
        positions: dict[bytes, int] = {}
        starts, breaks = RecordStarts(), Breaks()
        try:
            packet, data = self._next(plaintexts)
            for segment in self._captures:
                begun = starts.segment(segment)
                while packet == segment[0]:
                    flow = segment[2]
                    seq = positions.get(flow, 0)
                    size = len(data)
                    breaks.plaintext(flow, segment[3])
                    positions[flow] = (seq + size) & 0xFFFFFFFF
                    done = 0
                    if begun is not None and size:
                        yield *begun, flow, seq, 0, DECRYPTED, data, 0, 1, 0
                        begun, done = None, 1
                    yield packet, segment[1], flow, (seq + done) & 0xFFFFFFFF, 0, DECRYPTED, data, done, size, 0
                    packet, data = self._next(plaintexts)
                broken = breaks.segment(segment)
                if broken is not None:
                    self._broken(*broken)
                if segment[5] & SYN:
                    positions.pop(segment[2], None)
                yield segment
        finally:
            self._plaintexts.close()

    def _broken(self, packet: int, ns: int) -> None:
        self.problems.append(
            Problem(
                "not_decrypted",
                "TLS could not be decrypted from here on, in this direction of its connection: "
                "bytes before it are missing from the capture",
                packet=packet,
                timestamp_ns=ns,
                details={"file": self.files[file_index(packet)]} if len(self.files) > 1 else None,
            )
        )

    def _next(self, plaintexts: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
        try:
            return next(plaintexts, _NOTHING)
        except CaptureError as error:
            self.problems.append(Problem("not_decrypted", str(error)))
            return _NOTHING


class _Plaintexts:
    """Iterates over ``(packet, data)``: what each record carries, by the packet that completed it, in order."""

    def __init__(self, captures: Captures, keylog: str | None) -> None:
        self._captures = captures
        self._keylog = keylog
        self._tshark: Tshark | None = None
        self._feeder: threading.Thread | None = None

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        from kwiresniff.capture.tshark import Tshark

        outlet, inlet = os.pipe()
        references: deque[int] = deque()
        feed = Feed(self._captures, references)
        self._tshark = Tshark(outlet, self._keylog)
        out = os.fdopen(inlet, "wb", 1 << 16)
        self._feeder = threading.Thread(target=feed.write, args=(out,), name="tshark feed", daemon=True)
        self._feeder.start()
        taken = packet = 0
        for frame, data in self._tshark.plaintexts():
            while taken < frame:
                packet = references.popleft()
                taken += 1
            yield packet, data

    def close(self) -> None:
        """Stop whatever runs."""
        if self._tshark is None or self._feeder is None:
            return
        self._tshark.stop()
        self._tshark = None
        self._feeder.join()  # nobody reads what it writes any more, so it ends if it has not yet
        self._captures.close()
