"""A live capture with what its TLS connections carry, as their keys appear in a key log.

A connection's segments are kept back from its first one until its keys are in the log, since tshark looks for them only
once; then they go to tshark, and come on together with what they carried when tshark has read them. Other connections
are not kept back.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import TypeAlias

from kwiresniff.capture.keylog import WITHOUT_TSHARK, GrowingKeyLog, tshark_is_there
from kwiresniff.capture.live.live_capture import LiveCapture
from kwiresniff.capture.tls_merge import SegmentMerger
from kwiresniff.capture.tshark_input import (
    MAX_CONVERSATIONS,
    PREFIX,
    Side,
    TlsConversations,
    marker_block,
    segment_blocks,
)
from kwiresniff.errors import CaptureError
from kwiresniff.model import Problem, Segment

#: How long a connection waits for its keys. Clients write them within milliseconds; beyond that nobody will.
PATIENCE_SECONDS = 5.0
#: Payload kept back while keys are awaited, over all connections; beyond it those that began first wait no longer.
MAX_HELD_BYTES = 64 << 20
#: tshark gets so long to read what is still in the pipe when the capture ends. On a machine with much else to do it may
#: have hardly started by then; whoever cannot wait interrupts again.
END_SECONDS = 60.0
#: Whoever has given up waits no longer than that for tshark to notice.
_LEAVE_SECONDS = 2.0

#: Where the random stands in a hello: behind the headers of record (5) and message (4) and the version (2). The
#: session's id comes behind it, with its length (1) before it; it has up to 32 bytes.
_RANDOM = slice(11, 43)
_ID_LENGTH = 43
_HELLO_BYTES = 76

#: A frame of the stream and what it carried, nothing for a marker; why there will be no more; None at the end.
_Result: TypeAlias = tuple[int, bytes] | CaptureError | None


class _Waiting:
    """A TLS connection whose keys are not known yet."""

    __slots__ = ("answer", "hello", "segments", "since", "size")

    def __init__(self, since: float) -> None:
        self.since = since
        self.segments: list[tuple[Side, Segment]] = []
        self.size = 0
        self.hello = b""  # the client's first bytes
        self.answer = b""  # and the server's

    def add(self, side: Side, segment: Segment) -> None:
        self.segments.append((side, segment))
        self.size += segment[8]
        if side[1] and len(self.hello) < _HELLO_BYTES:
            self.hello += segment[6][:_HELLO_BYTES]
        elif not side[1] and len(self.answer) < _HELLO_BYTES:
            self.answer += segment[6][:_HELLO_BYTES]

    def session(self) -> tuple[bytes, bytes]:
        """The client's random, and the id that the server gave the session."""
        end = _ID_LENGTH + 1 + self.answer[_ID_LENGTH] if len(self.answer) > _ID_LENGTH else 0
        return self.hello[_RANDOM], self.answer[_ID_LENGTH + 1 : end]


class DecryptedLive:
    """Iterates over the segments of ``live`` and what they carry decrypted; stopped and closed like it."""

    def __init__(self, live: LiveCapture, decryption: Decryption) -> None:
        self.files = live.files
        self.problems = live.problems
        self.other_packets = live.other_packets
        self.total_bytes = live.total_bytes
        self._live = live
        self._merger = SegmentMerger(live.problems, live.files)
        self._conversations = TlsConversations()
        # By the client's address in the stream: what waits for keys, and whether there were any.
        self._waiting: dict[bytes, _Waiting] = {}
        self._keyed: dict[bytes, bool] = {}
        self._held_bytes = 0
        self._decryption = decryption
        self._fed: deque[tuple[int, Segment]] = deque()  # by the segment's last frame
        self._plaintexts: deque[tuple[int, bytes]] = deque()  # by the frame that completed it
        self._frames = 0
        self._unmarked = False

    @property
    def packets(self) -> int:
        """Packets captured so far, of all kinds."""
        return self._live.packets

    def position(self) -> int:
        """Bytes captured so far."""
        return self._live.position()

    def close(self) -> None:
        """Ends the capture and tshark."""
        self._live.close()
        self._decryption.close()

    def __iter__(self) -> Iterator[Segment]:
        try:
            for segment in self._live.beats():
                if segment is None:
                    yield from self._beat()
                elif (side := self._conversations.side(segment)) is None:
                    yield segment
                else:
                    yield from self._encrypted(side, segment)
            yield from self._end()
        finally:
            self._decryption.close()

    def _encrypted(self, side: Side, segment: Segment) -> Iterator[Segment]:
        client = side[0]
        keyed = self._keyed.get(client)
        if keyed is False:
            yield segment
            return
        packet, ns, flow, seq, ack, flags, buffer, start, end, missing = segment
        # A copy, because the buffer is a block of the ring with a thousand other packets.
        segment = packet, ns, flow, seq, ack, flags, buffer[start:end], 0, end - start, missing
        if keyed:
            self._feed(side, segment)
            return
        if client not in self._waiting:
            self._waiting[client] = _Waiting(time.monotonic())
        self._waiting[client].add(side, segment)
        self._held_bytes += end - start
        while self._held_bytes > MAX_HELD_BYTES:
            yield from self._conclude(next(iter(self._waiting)))

    def _feed(self, side: Side, segment: Segment) -> None:
        for block in segment_blocks(side, segment):
            self._decryption.write(block)
            self._frames += 1
        self._fed.append((self._frames, segment))
        self._unmarked = True

    def _beat(self) -> Iterator[Segment]:
        """Looks for new keys and for what tshark has decrypted, once in a while."""
        if self._waiting:
            yield from self._look_for_keys(time.monotonic())
        if self._unmarked:
            self._mark()
        yield from self._decrypted(0.0)

    def _look_for_keys(self, now: float) -> Iterator[Segment]:
        self._decryption.key_log.poll()
        for client, waiting in list(self._waiting.items()):
            if self._decryption.key_log.has(*waiting.session()):
                self._settle(client, True)
                for side, segment in self._take(client).segments:
                    self._feed(side, segment)
            elif now - waiting.since > PATIENCE_SECONDS:
                yield from self._conclude(client)

    def _take(self, client: bytes) -> _Waiting:
        waiting = self._waiting.pop(client)
        self._held_bytes -= waiting.size
        return waiting

    def _conclude(self, client: bytes) -> Iterator[Segment]:
        """Releases the segments of a connection that stays encrypted."""
        self._settle(client, False)
        return (segment for _, segment in self._take(client).segments)

    def _settle(self, client: bytes, keyed: bool) -> None:
        self._keyed[client] = keyed
        if len(self._keyed) > MAX_CONVERSATIONS:
            del self._keyed[next(iter(self._keyed))]

    def _mark(self) -> None:
        # Two, because the first is printed to its end only when the second is there.
        self._decryption.write(marker_block() + marker_block())
        self._decryption.flush()
        self._frames += 2
        self._unmarked = False

    def _decrypted(self, seconds: float) -> Iterator[Segment]:
        """Everything up to the last marker that tshark has read; up to the end when there is that much time."""
        for result in self._decryption.results(seconds):
            if isinstance(result, CaptureError):
                self.problems.append(Problem("not_decrypted", str(result)))
            elif result is None:
                yield from self._release(self._frames)
            elif result[1]:
                self._plaintexts.append(result)
            else:
                yield from self._release(result[0])

    def _release(self, frame: int) -> Iterator[Segment]:
        """The segments up to a frame, with what they carried."""
        plaintexts = self._plaintexts
        while self._fed and self._fed[0][0] <= frame:
            last, segment = self._fed.popleft()
            found = []
            while plaintexts and plaintexts[0][0] <= last:
                found.append(plaintexts.popleft()[1])
            yield from self._merger.segment(segment, found)

    def _end(self) -> Iterator[Segment]:
        """Ends the decryption: segments that wait for keys are released."""
        yield from self._look_for_keys(time.monotonic())
        for client in list(self._waiting):
            yield from self._conclude(client)
        self._decryption.end()
        yield from self._decrypted(END_SECONDS)
        yield from self._release(self._frames)


class Decryption:
    """A key log, tshark, and the thread that reads what it prints, once it is begun."""

    def __init__(self, keylog: str) -> None:
        """Raises CaptureError when ``keylog`` is something else than a key log, or there is no tshark."""
        self.key_log = GrowingKeyLog(keylog)
        if not tshark_is_there():
            raise CaptureError(f"--keylog {keylog}: no tshark found; {WITHOUT_TSHARK}")
        self._outlet, inlet = os.pipe()
        self._results: queue.SimpleQueue[_Result] = queue.SimpleQueue()
        self._out = os.fdopen(inlet, "wb", 1 << 16)
        self._thread = threading.Thread(target=self._read, args=(self._outlet, keylog), name="tshark", daemon=True)
        self._begun = False

    def begin(self) -> None:
        """Starts tshark, as who we are now. It takes a while, in which the packets wait in their ring."""
        self._begun = True
        self._thread.start()
        self.write(PREFIX)

    def write(self, blocks: bytes) -> None:
        """Blocks of the stream; nothing happens when tshark is gone, which ``results`` shows."""
        with contextlib.suppress(OSError, ValueError):
            self._out.write(blocks)

    def flush(self) -> None:
        """Sends what was written to tshark."""
        with contextlib.suppress(OSError, ValueError):
            self._out.flush()

    def results(self, seconds: float) -> Iterator[_Result]:
        """The results that are there, and those that come within ``seconds``."""
        until = time.monotonic() + seconds
        with contextlib.suppress(queue.Empty):
            while True:
                result = self._results.get(timeout=max(until - time.monotonic(), 0.0))
                yield result
                if result is None:
                    return

    def end(self) -> None:
        """Closes the stream that tshark reads."""
        with contextlib.suppress(OSError):
            self._out.close()

    def close(self) -> None:
        """Ends tshark. Does nothing the second time."""
        self.end()
        if self._begun:
            self._thread.join(_LEAVE_SECONDS)
        else:
            self._begun = True
            os.close(self._outlet)

    def _read(self, outlet: int, keylog: str) -> None:
        from kwiresniff.capture.tshark import Tshark

        # A Ctrl-C is for us; tshark inherits this, and ends at the end of what it is given.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        tshark = Tshark(outlet, keylog)
        try:
            for result in tshark.plaintexts():
                self._results.put(result)
        except CaptureError as error:
            self._results.put(error)
        finally:
            tshark.stop()
            self._results.put(None)
