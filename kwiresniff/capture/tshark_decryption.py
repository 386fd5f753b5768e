"""TLS decrypted by tshark, as a second opinion: what connections carry, as segments beside the encrypted ones.

The decryption is tshark's, run by pyshark. It gets no capture file but a stream of its own: only the connections that
begin with a TLS hello, each frame with plain IPv4 and TCP headers and made-up addresses. So it is the same to it how
the packets were captured, tunnelled, compressed or spread over files, and no dissector for a port gets in between.

Formats: SSLKEYLOGFILE (draft-ietf-tls-keylogfile), pcapng decryption secrets block (draft-ietf-opsawg-pcapng,
section 4.7).
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.capture.capture_set import CaptureSet
from kwiresniff.capture.keylog import check_key_log
from kwiresniff.capture.pyshark_settings import use_own_settings
from kwiresniff.capture.sources import SegmentSource
from kwiresniff.capture.tls_merge import SegmentMerger
from kwiresniff.capture.tshark_input import StreamFeeder
from kwiresniff.errors import CaptureError
from kwiresniff.model import Problem, Segment

if TYPE_CHECKING:
    from kwiresniff.capture.tshark import Tshark

#: In the place of a packet and its plaintext.
_NOTHING = (-1, b"")


def decrypted(captures: CaptureSet, keylog: str | None) -> SegmentSource:
    """The captures with what tshark decrypts. Raises CaptureError for standard input, and without tshark."""
    if keylog is not None:
        check_key_log(keylog)
    again = captures.again()
    if again is None:
        raise CaptureError("tshark decrypts files, which are read twice: save the standard input to a file")
    if not _tshark_is_there():
        raise CaptureError(
            "no tshark found: install Wireshark's command-line program tshark, or leave out --tls-engine tshark"
        )
    return DecryptedCaptures(captures, again, keylog)


def _tshark_is_there() -> bool:
    """Whether pyshark finds tshark."""
    try:
        from pyshark.tshark.tshark import TSharkNotFoundException, get_process_path
    except ImportError:
        raise CaptureError("--tls-engine tshark needs pyshark; pip install pyshark, or leave it out") from None

    use_own_settings()
    try:
        get_process_path()
    except TSharkNotFoundException:
        return False
    return True


class DecryptedCaptures:
    """Captures whose segments are followed by their decrypted data, as ``tls_merge`` places it."""

    def __init__(self, captures: CaptureSet, again: CaptureSet, keylog: str | None) -> None:
        """``again`` are the same captures, to be read a second time."""
        self.files = captures.files
        self.problems = captures.problems
        self.other_packets = captures.other_packets
        self.total_bytes = captures.total_bytes
        self.tls_secrets = TlsSecrets()  # none, so that nobody else decrypts
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
        merger = SegmentMerger()
        try:
            packet, data = self._next(plaintexts)
            for segment in self._captures:
                found = []
                while packet == segment[0]:
                    found.append(data)
                    packet, data = self._next(plaintexts)
                yield from merger.segment(segment, found)
        finally:
            self._plaintexts.close()

    def _next(self, plaintexts: Iterator[tuple[int, bytes]]) -> tuple[int, bytes]:
        try:
            return next(plaintexts, _NOTHING)
        except CaptureError as error:
            self.problems.append(Problem("not_decrypted", str(error)))
            return _NOTHING


class _Plaintexts:
    """Iterates over ``(packet, data)``: what each record carries, by the packet that completed it, in order."""

    def __init__(self, captures: CaptureSet, keylog: str | None) -> None:
        self._captures = captures
        self._keylog = keylog
        self._tshark: Tshark | None = None
        self._feeder: threading.Thread | None = None

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        from kwiresniff.capture.tshark import Tshark

        outlet, inlet = os.pipe()
        references: deque[int] = deque()
        feed = StreamFeeder(self._captures, references)
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
        """Stops tshark and the thread that feeds it."""
        if self._tshark is None or self._feeder is None:
            return
        self._tshark.stop()
        self._tshark = None
        self._feeder.join()  # nobody reads what it writes any more, so it ends if it has not yet
        self._captures.close()
