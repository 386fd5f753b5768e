"""Capture files as one sequence of TCP segments: found, checked, put in order, read one after the other."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO

from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.packet_references import PACKET_BITS
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.capture.decode_as import tables_of
from kwiresniff.capture.formats import PCAPNG_MAGIC, NotACapture, first_timestamp, open_reader
from kwiresniff.capture.input_stream import Stream
from kwiresniff.capture.keylog import KeyLog
from kwiresniff.capture.packet_decoder import NO_CHOICES, Choices, LayerDecoder
from kwiresniff.capture.packet_places import PacketPlaces, Place
from kwiresniff.capture.paths import STANDARD_INPUT, Input, expand, reason
from kwiresniff.capture.reader import FileReader
from kwiresniff.capture.sources import segments_of
from kwiresniff.capture.spooled import CONTEXT, SpoolFile, is_spool, pieces_of
from kwiresniff.errors import CaptureError
from kwiresniff.model import Problem, Segment, SegmentList, SegmentSink, file_index, packet_number

#: Growing steps in which the first packet of a stream is looked for: a slow writer need not fill the largest first.
_HEAD_BYTES = (4096, 65536, 1024 * 1024)


class CaptureSet:
    """Iterates over the segments of all files, once.

    ``files`` are the names in the order of reading; a packet reference carries the index into them.
    ``problems`` grows while iterating. ``other_packets`` counts the packets that gave no segment, by reason.
    ``total_bytes`` is what lies on disk, None when an input is a stream. ``tls_secrets`` gets the TLS keys that
    captures have, and those of a key log. ``places`` tells where packets are found again.
    """

    def __init__(
        self,
        inputs: Sequence[Input],
        streams: dict[str, Stream],
        problems: list[Problem],
        first_index: int = 0,
        choices: Choices = NO_CHOICES,
        names: AddressNames | None = None,
        tls_secrets: TlsSecrets | None = None,
        wait: Callable[[], None] | None = None,
    ) -> None:
        """``streams`` are the inputs already open, by path; ``first_index`` is the first file's index in packet
        references. ``choices`` are the user's; ``names`` get the addresses' names in captures. A live capture
        (``capture.spooled``) is read as far as it goes, or with ``wait``, called meanwhile, to its end.
        """
        self.files = [_name(one.path) for one in inputs]
        self.problems = problems
        self.other_packets: dict[str, int] = {}
        sizes = [one.size_bytes for one in inputs if one.size_bytes is not None]
        self.total_bytes = sum(sizes) if len(sizes) == len(inputs) else None
        self._inputs = inputs
        self._streams = streams
        self._first_index = first_index
        self._choices = choices
        self._names = names
        self.tls_secrets = tls_secrets or TlsSecrets()
        self.on_secrets: Callable[[bytes], object] = self.tls_secrets.add  # gets lines of key logs
        self._key_log: KeyLog | None = None
        self._grows = any(is_spool(one.path) for one in inputs)
        self._wait = wait if self._grows else None
        self._spool: SpoolFile | None = None
        self._done_bytes = 0
        self._done_packets = 0
        self._stream: Stream | None = None
        self._reader: FileReader | None = None
        self._decoder: LayerDecoder | None = None  # the current reader's
        self._next = 0  # index of the next input
        self.places = PacketPlaces()

    def __iter__(self) -> Iterator[Segment]:
        return segments_of(self)

    def feed(self, sink: SegmentSink) -> bool:
        """Give segments to ``sink`` until it wants a pause or a read is used up; False when there are no more."""
        if self._key_log is not None:
            self._key_log.poll()
        while self._reader is None or not self._fed(self._reader, sink):
            self._learn_secrets()
            if self._decoder is not None:
                self._decoder.close()
            if self._spool is not None and self._spool.is_behind:
                self._begin(self._next - 1)
                continue
            self._finish()
            if self._next == len(self._inputs):
                if self._key_log is not None:
                    self._key_log.finish()
                return False
            self._begin(self._next)
            self._next += 1
        self._learn_secrets()
        return True

    def follow_key_log(self, path: str) -> None:
        """Reads TLS keys from a key log, which may grow beside a stream. Raises CaptureError when it is unusable."""
        self._key_log = KeyLog(path, self.tls_secrets, growing=self._grows or self.total_bytes is None)

    def _waited(self) -> None:
        """Takes in TLS keys, and calls ``wait``."""
        if self._key_log is not None:
            self._key_log.poll()
        if self._wait is not None:
            self._wait()

    def _learn_secrets(self) -> None:
        for lines in self._reader.take_secrets() if self._reader is not None else ():
            self.on_secrets(lines)

    @property
    def packets(self) -> int:
        """Packets read so far, of all kinds; exact at the end, up to one buffer behind before."""
        return self._done_packets + (self._reader.packets if self._reader else 0)

    def again(self) -> CaptureSet | None:
        """A new set that reads these captures from their start; None when an input can be read only once."""
        if self.total_bytes is None:
            return None
        return CaptureSet(self._inputs, {}, [], self._first_index, self._choices)

    def reader_at(self, packet: int, places: PacketPlaces) -> FileReader | None:
        """A reader placed before a packet by ``places``; None where the file is gone or a stream."""
        index = file_index(packet) - self._first_index
        if not 0 <= index < len(self._inputs) or self._inputs[index].size_bytes is None:
            return None
        reference = (self._first_index + index) << PACKET_BITS
        place = places.before(packet)
        first = _first_place(self._inputs[index].path, reference)
        if first is not None and (place is None or place.packet < first.packet):
            place = first
        try:
            reader = self._reader_of(index, reference)
            if place is not None and file_index(place.packet) == file_index(packet):
                reader = self._resumed(reader, place, reference) or self._reader_of(index, reference)
        except CaptureError:  # it was a capture when it was read
            return None
        return reader

    def _reader_of(self, index: int, reference: int) -> FileReader:
        return open_reader(_open(self._inputs[index].path), LayerDecoder({}, self._choices), reference, _ignore)

    def _resumed(self, reader: FileReader, place: Place, reference: int) -> FileReader | None:
        """The reader at a place; None where it does not know there what a whole reading does."""
        number, found, seen = packet_number(place.packet), reader.begin(), SegmentList()
        while found and reader.context != place.context and reader.packets < number:
            found = reader.feed(seen)
            seen.taken.clear()
        if found and reader.context == place.context and reader.resume(number, place.offset):
            return reader
        reader.close()
        return None

    def read_names(self) -> None:
        """Reads the names in captures ahead of the packets: a writer may add them at the end of the file."""
        inputs = [one for one in self._inputs if one.size_bytes is not None and _may_have_names(one.path)]
        sink = SegmentList()
        captures = CaptureSet(inputs, {}, [], self._first_index, self._choices, self._names)
        while captures.feed(sink):
            sink.taken.clear()

    def position(self) -> int:
        """Bytes consumed so far, as they lie on disk."""
        return self._done_bytes + (self._stream.consumed if self._stream else 0)

    def close(self) -> None:
        """Close what is open; after a complete iteration nothing is."""
        for stream in (*self._streams.values(), self._stream):
            if stream is not None:
                stream.close()

    def _begin(self, index: int) -> None:
        one = self._inputs[index]

        def report(problem: Problem) -> None:
            details = {**(problem.details or {}), "file": one.path} if len(self._inputs) > 1 else problem.details
            self.problems.append(problem._replace(details=details))

        try:
            self._spool = None
            if is_spool(one.path):
                self._spool = SpoolFile(one.path, self._waited if self._wait is not None else None)
                self._stream = Stream(one.path, self._spool)  # type: ignore[arg-type]
            else:
                self._stream = self._streams.get(one.path) or _open(one.path)
            self._decoder = LayerDecoder(self.other_packets, self._choices)
            reference = (self._first_index + index) << PACKET_BITS
            if self._spool is None and self._stream.peek(len(PCAPNG_MAGIC)) == PCAPNG_MAGIC:  # which may have keys
                self.tls_secrets.expected = self.tls_secrets.growing = True
            self._reader = open_reader(self._stream, self._decoder, reference, report, self._names)
            first = _first_place(one.path, reference) if self._spool is not None else None
            if first is not None:
                resumed = self._resumed(self._reader, first, reference)
                if resumed is None:
                    self._spool = None
                self._reader = resumed or self._reader
        except CaptureError as error:  # it was a capture when it was checked
            report(Problem("capture_unreadable", str(error)))

    def _fed(self, reader: FileReader, sink: SegmentSink) -> bool:
        found = reader.feed(sink)
        if found and reader.packets:
            reference = (self._first_index + self._next - 1) << PACKET_BITS
            self.places.add(reference + reader.packets, reader.offset, reader.context)
        return found

    def _finish(self) -> None:
        if self._stream is not None:
            self._done_bytes += self._stream.consumed
            self._stream = None
        if self._reader is not None:
            self._done_packets += self._reader.packets
            self._reader = self._decoder = None


def open_captures(
    paths: Sequence[str],
    *,
    stdin: BinaryIO | None = None,
    first_index: int = 0,
    decode_as: Sequence[str] = (),
    names: AddressNames | None = None,
    tls_secrets: TlsSecrets | None = None,
    wait: Callable[[], None] | None = None,
) -> CaptureSet:
    """Finds and checks captures: files, folders, patterns, ``-`` for ``stdin``; orders them by their first packets.

    References count files from ``first_index``. An unreadable one is a problem ``capture_unreadable``, or a
    CaptureError when nothing else was named; other files in folders are passed over. ``decode_as`` are rules; ``names``
    and ``tls_secrets`` get those of the captures; ``wait`` is that of ``CaptureSet``.
    """
    inputs: list[tuple[float, Input]] = []
    streams: dict[str, Stream] = {}
    problems: list[Problem] = []
    refused: list[CaptureError] = []
    found = expand(paths, refused)
    for one in found:
        try:
            if one.size_bytes is not None:
                time = _check(one.path, timed=len(found) > 1)
            else:
                streams[one.path] = _open(one.path, stdin)
                time = _check_stream(streams[one.path], timed=len(found) > 1)
        except CaptureError as error:
            if not one.folder:
                refused.append(error)
            elif not isinstance(error, NotACapture):
                problems.append(_unreadable(error, one.path))
        else:
            inputs.append((time, one))
    bare = {one.folder for one in found if one.folder} - {one.folder for _, one in inputs}
    refused += [CaptureError(f"{folder}: no capture in this folder") for folder in sorted(bare)]
    if not inputs and refused:
        raise refused[0]
    if not inputs:
        raise CaptureError("no capture named: give one or more files or folders, or - for standard input")
    problems[:0] = [_unreadable(error) for error in refused]
    inputs.sort(key=lambda item: item[0])
    found_inputs = [one for _, one in inputs]
    return CaptureSet(found_inputs, streams, problems, first_index, tables_of(decode_as), names, tls_secrets, wait)


def _unreadable(error: CaptureError, file: str | None = None) -> Problem:
    return Problem("capture_unreadable", str(error), details=None if file is None else {"file": file})


def _check(path: str, *, timed: bool) -> float:
    """The time of the first packet of a file, endless when it has none; CaptureError when it is no capture."""
    stream = _open(path)
    stream.piece_bytes = _HEAD_BYTES[0]
    try:
        return _time(stream) if timed else _recognise(stream)
    finally:
        stream.close()


def _check_stream(stream: Stream, *, timed: bool) -> float:
    """Checks the format of a stream by its first bytes, of which none is consumed."""
    _recognise(stream)
    time = float("inf")
    for size in _HEAD_BYTES if timed else ():
        head = stream.peek(size)
        time = _time(Stream(stream.name, io.BytesIO(head)))
        if time != float("inf") or len(head) < size:
            break
    return time


def _first_place(path: str, reference: int) -> Place | None:
    """The first kept place of a live capture; None for files, and for a capture that keeps all packets."""
    pieces = pieces_of(path) if is_spool(path) else []
    return Place(reference + pieces[0].packets, pieces[0].offset, CONTEXT) if pieces and pieces[0].packets else None


def _may_have_names(path: str) -> bool:
    try:
        stream = _open(path)
    except CaptureError:  # said when it is read
        return False
    try:
        return stream.peek(len(PCAPNG_MAGIC)) == PCAPNG_MAGIC
    finally:
        stream.close()


def _recognise(stream: Stream) -> float:
    open_reader(stream, LayerDecoder({}), 0, _ignore)
    return float("inf")


def _time(stream: Stream) -> float:
    first_ns = first_timestamp(stream)
    return float("inf") if first_ns is None else first_ns


def _ignore(problem: Problem) -> None:
    """Ignores a problem: those of a file are reported when it is read, not when it is checked."""


def _open(path: str, stdin: BinaryIO | None = None) -> Stream:
    try:
        if is_spool(path):
            return Stream(path, SpoolFile(path))  # type: ignore[arg-type]
        if path != STANDARD_INPUT:
            return Stream(path, open(path, "rb", buffering=0))
        file = stdin or sys.stdin.buffer
        if file.isatty():
            raise CaptureError("standard input is a terminal: pipe a capture into it, or name a file")
        return Stream(_name(path), file, owned=False)
    except (OSError, ValueError) as error:  # ValueError: standard input is closed
        raise CaptureError(f"{_name(path)}: {reason(error)}") from None


def _name(path: str) -> str:
    return "standard input" if path == STANDARD_INPUT else path
