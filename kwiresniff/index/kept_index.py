"""An index in a file, which is read instead of the captures as long as it fits them.

    magic, 8 bytes; fingerprint, 32 bytes: of what the index is
    parts, each: two uint32, little-endian: bytes of a text, rows; the text, JSON: all that is no column; the columns
    two uint32, 0; 32 bytes: BLAKE2b of all before

A file may come from anywhere, like a capture: every number in it is checked before it is used.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from struct import Struct
from typing import IO, Any, Final

from kwiresniff import __version__
from kwiresniff.base.flows import endpoints, flow_between
from kwiresniff.base.packet_references import PACKET_BITS
from kwiresniff.capture.compressions import LONGEST_MAGIC, compression_of
from kwiresniff.capture.packet_places import Place
from kwiresniff.errors import KwiresniffError
from kwiresniff.index.columns import WIDE, NarrowPart
from kwiresniff.index.exchange_index import NARROW, WAIT_SHIFT, WAITS, ConnectionEnds, Indexed, IndexPart
from kwiresniff.index.index_sink import MAX_EXCHANGES
from kwiresniff.index.value_table import MAX_VALUE_BYTES, OTHER, size_of
from kwiresniff.model import OUTCOMES, file_index
from kwiresniff.session.topic_ids import SavedTopics

MAGIC: Final = b"kwindex\n"
#: Bytes of the text of a part, and its rows. A reading process sends a part four times a second.
MAX_TEXT_BYTES: Final = 16 << 20
MAX_PART_ROWS: Final = 1 << 20
#: Bytes of a file: as many exchanges as an index has room for take half of it.
MAX_FILE_BYTES: Final = 2 << 30
#: A capture is told from another by its size, its time and these blocks of it, the first and the last among them.
SAMPLES: Final = 64
SAMPLE_BYTES: Final = 4096

#: The number of the form that this module describes.
_FORM: Final = 1
_DIGEST_BYTES: Final = 32
_HEAD: Final = Struct("<II")
#: Bytes a row of the columns, in the order of ``IndexPart``.
_FIXED: Final = (8, 8, 4, 4, 1, 1)
_ROW_BYTES: Final = sum(_FIXED) + 4 * len(NARROW)
#: Times, and what may be added to them: a time and three differences fit 64 bits.
_MOST: Final = 1 << 62
_MOST_APART: Final = 1 << 60
_WIDE_BYTES: Final = array("i", [WIDE]).tobytes()
_FLAGS: Final = bytes(range(len(WAITS) << WAIT_SHIFT))
_OUTCOMES: Final = bytes(range(len(OUTCOMES)))


class UnfitIndex(KwiresniffError):
    """A file that is no index of these captures; in words, for the end of a sentence."""


def fingerprint(files: Sequence[str], options: object) -> bytes:
    """Tells what an index is of: capture files as they are now, read with ``options``, by this version."""
    found = blake2b(repr((_FORM, __version__, sys.byteorder, options)).encode(), digest_size=_DIGEST_BYTES)
    for name in files:
        with open(name, "rb", buffering=0) as file:
            status = os.fstat(file.fileno())
            found.update(f"{status.st_size} {status.st_mtime_ns} ".encode())
            for number in range(SAMPLES):
                file.seek(max(status.st_size - SAMPLE_BYTES, 0) * number // (SAMPLES - 1))
                found.update(file.read(SAMPLE_BYTES))
    return found.digest()


class IndexWriter:
    """Writes an index to ``file``; ``close`` it behind the last part."""

    def __init__(self, file: IO[bytes], fingerprint: bytes) -> None:
        self._file = file
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self._write(MAGIC + fingerprint)

    def add(self, message: Indexed) -> None:
        """Writes a part. Raises UnfitIndex for one that is too large to be read again."""
        part = message.part
        about = {
            "wide": [list(map(list, column.wide.items())) for column in part.narrow],
            "values": part.values,
            "connections": part.connections,
            "left_out": part.left_out,
            "places": message.places,
            "topics": message.topics,
            "problems": message.problems,
            "problem_count": message.problem_count,
        }
        text = json.dumps(about, separators=(",", ":")).encode()
        rows = len(part.outcomes)
        if len(text) > MAX_TEXT_BYTES or rows > MAX_PART_ROWS:
            raise UnfitIndex("a part of it is too large")
        self._write(_HEAD.pack(len(text), rows) + text)
        fixed = (part.started_ns, part.packets, part.correlation_ids, part.apis, part.outcomes, part.flags)
        for column in (*fixed, *[one.data for one in part.narrow]):
            self._write(column)

    def close(self) -> None:
        """Writes what ends an index."""
        self._write(_HEAD.pack(0, 0))
        self._file.write(self._digest.digest())

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._file.write(data)


def read_index(file: IO[bytes], fingerprint: bytes, files: Sequence[str]) -> Iterator[Indexed]:
    """The parts of an index of ``files``. Raises UnfitIndex where it is another's, and at what is wrong."""
    reader = _IndexReader(file, files)
    try:
        if reader.left > MAX_FILE_BYTES or reader.take(len(MAGIC)) != MAGIC:
            raise UnfitIndex("it is no index")
        if reader.take(_DIGEST_BYTES) != fingerprint:
            raise UnfitIndex("the captures, the options or the version of kwiresniff are others")
        yield from reader.parts()
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        raise UnfitIndex(f"it is damaged ({type(error).__name__})") from None


class _IndexReader:
    """Reads parts, and checks each together with those before it."""

    def __init__(self, file: IO[bytes], files: Sequence[str]) -> None:
        self._file = file
        self.left = os.fstat(file.fileno()).st_size - file.tell()
        self._total = self.left
        self._digest = blake2b(digest_size=_DIGEST_BYTES)
        self._packets = range(1, len(files) << PACKET_BITS)
        self._sizes = [_size(name) for name in files]
        self._rows = self._value_bytes = 0
        self._last_place = -1
        self._connections: set[int] = set()
        none = range(1)  # the number of None, which any value may be
        self._texts, self._lists, self._pairs = set(none), set(none), set(none)
        self._count = 1  # of values

    def take(self, size: int) -> bytes:
        """The next bytes."""
        data = self._file.read(size) if size <= self.left else b""
        _check(len(data) == size)
        self.left -= size
        self._digest.update(data)
        return data

    def parts(self) -> Iterator[Indexed]:
        """All parts, to the end of the file."""
        size, rows = self._head()
        _check(size > 0)
        while size:
            part = self._part(json.loads(self.take(size)), rows)
            size, rows = self._head()
            if size == 0:
                digest = self._digest.digest()
                _check(self.take(_DIGEST_BYTES) == digest and self.left == 0)
            yield part._replace(fraction=1 - self.left / self._total, done=size == 0)

    def _head(self) -> tuple[int, int]:
        """What the head of the next part says: bytes of its text, rows."""
        size, rows = _HEAD.unpack(self.take(_HEAD.size))
        self._rows += rows
        _check(size <= MAX_TEXT_BYTES and rows <= MAX_PART_ROWS and self._rows <= MAX_EXCHANGES)
        _check(size + rows * _ROW_BYTES <= self.left)
        return size, rows

    def _part(self, about: dict[str, Any], rows: int) -> Indexed:
        values = [self._value(one) for one in about["values"]]
        connections = [self._ends(*one) for one in about["connections"]]
        started, packets, correlation_ids, apis, outcomes, flags = [self.take(width * rows) for width in _FIXED]
        narrow = [_narrow(self.take(4 * rows), wide) for wide in about["wide"]]
        _check(len(narrow) == len(NARROW))
        _check(all(0 <= edge < _MOST for edge in _edges(started)))
        _check(all(edge in self._packets for edge in _edges(packets)))
        _check(not outcomes.translate(None, _OUTCOMES) and not flags.translate(None, _FLAGS))
        for name, known in (
            ("connection", self._connections),
            ("client_id", self._texts | self._lists),
            ("names", self._lists | self._pairs),
            ("errors", self._lists),
        ):
            column = narrow[NARROW.index(name)]
            _check(not column.wide and known.issuperset(array("i", column.data)))
        for name in ("request_bytes", "response_bytes"):
            column = narrow[NARROW.index(name)]
            _check(not column.wide and min(array("i", column.data), default=0) >= 0)
        places = [self._place(*one) for one in about["places"]]
        problems = tuple([_text(one) for one in about["problems"]])
        _check(all(one.isprintable() for one in problems))
        left_out = _number(about["left_out"])
        part = IndexPart(
            started, packets, correlation_ids, apis, outcomes, flags, narrow, values, connections, left_out
        )
        count = _number(about["problem_count"])
        return Indexed(part, places, _topics(about["topics"]), 0.0, problems, count, done=False)

    def _value(self, value: Any) -> object:
        """A value of a table as ``IndexSink`` makes them."""
        found: object
        if isinstance(value, str):
            found, kind = value, self._texts
        elif value and isinstance(value[0], str):
            found, kind = _texts(value), self._lists
        else:
            topics, groups = value
            found, kind = (_texts(topics), _texts(groups)), self._pairs
        kind.add(self._count)
        self._count += 1
        self._value_bytes += size_of(found)
        _check(self._value_bytes <= MAX_VALUE_BYTES + size_of(OTHER))
        return found

    def _ends(self, number: Any, client: Any, broker: Any, proxied: Any) -> ConnectionEnds:
        _check(endpoints(flow_between(_text(client), _text(broker))) == (client, broker))
        if proxied is not None:
            _check(proxied.keys() == {"client", "broker", "by"} and _text(proxied["by"]).isprintable())
            _check(all(one is None or isinstance(one, str) for one in proxied.values()))
        self._connections.add(_number(number))
        return ConnectionEnds(number, client, broker, proxied)

    def _place(self, packet: Any, offset: Any, context: Any) -> Place:
        _check(_number(packet) in self._packets and packet > self._last_place)
        _check(_number(offset) <= self._sizes[file_index(packet)])
        self._last_place = packet
        return Place(packet, offset, _number(context))


def _check(sound: bool) -> None:
    if not sound:
        raise ValueError


def _size(name: str) -> int:
    """The bytes of a file of which a place may lie at any; of a compressed one it is not known how many."""
    with open(name, "rb", buffering=0) as file:
        return _MOST if compression_of(file.read(LONGEST_MAGIC)) else os.fstat(file.fileno()).st_size


def _edges(data: bytes) -> tuple[int, ...]:
    """The smallest and the largest of some numbers of 64 bits."""
    column = array("q", data)
    return (min(column), max(column)) if column else ()


def _number(value: Any) -> int:
    _check(type(value) is int and 0 <= value < _MOST)
    return int(value)


def _text(value: Any) -> str:
    _check(type(value) is str)
    return str(value)


def _texts(values: Any) -> tuple[str, ...]:
    _check(type(values) is list)
    return tuple([_text(one) for one in values])


def _narrow(data: bytes, wide: Any) -> NarrowPart:
    """Rows of a column, of which those that say so, and no others, have their numbers in ``wide``."""
    numbers = dict(wide)
    _check(all(type(one) is int and -_MOST_APART < one < _MOST_APART for one in numbers.values()))
    rows = {row for row, one in enumerate(array("i", data)) if one == WIDE} if _WIDE_BYTES in data else set()
    _check(rows == numbers.keys())
    return NarrowPart(data, numbers)


def _topics(value: Any) -> SavedTopics | None:
    if value is None:
        return None
    names, sensitive, all_sensitive = value
    _check(type(names) is dict and type(all_sensitive) is bool)
    return SavedTopics({one: _text(name) for one, name in names.items()}, _texts(sensitive), all_sensitive)
