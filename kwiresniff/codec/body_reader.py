"""Numbers, lengths, counts and varints as all writers that follow a plan read them from the bytes of a body.

Reading past the end raises IndexError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from librt.strings import read_i16_be, read_i32_be, read_i64_be

from kwiresniff.base.secret_texts import is_secret_text
from kwiresniff.codec.field_layout import MAX_ENTRIES
from kwiresniff.codec.plan import BOOLEAN, ERROR_CODE, INT16, INT32, INT64, UINT16, UINT32, Step

if TYPE_CHECKING:
    from mypy_extensions import i64


def int16(data: bytes, pos: i64) -> int:
    """The big-endian INT16 at a position; IndexError beyond the end."""
    return read_i16_be(data, pos)


def int32(data: bytes, pos: i64) -> int:
    """The big-endian INT32 at a position; IndexError beyond the end."""
    return read_i32_be(data, pos)


class BodyReader:
    """Reads bodies in a ``frame`` of ``announced`` bytes; ``pos`` is behind the last read, ``left`` the values allowed,
    ``errors`` the error codes met with their paths, or None.
    """

    def __init__(self) -> None:
        self.frame = b""
        self.announced: i64 = 0
        self.pos: i64 = 0
        self.left: i64 = 0
        self.errors: list[tuple[str, int]] | None = None

    def begin(self, frame: bytes, errors: list[tuple[str, int]] | None = None, size_bytes: i64 = 0) -> None:
        """Gets ready for the body in a frame, or in as much as there is of one of ``size_bytes``."""
        self.frame = frame
        size: i64 = len(frame)
        self.announced = size_bytes if size_bytes > size else size
        self.left = MAX_ENTRIES
        self.errors = errors
        if errors is not None:
            errors.clear()

    def error_count(self) -> i64:
        """The number of error codes met."""
        errors = self.errors
        return len(errors) if errors is not None else 0

    def place_errors(self, first: i64, place: str) -> i64:
        """Puts ``place`` before the paths of the errors from index ``first`` on; gives how many errors there are."""
        errors = self.errors
        if errors is None:
            return 0
        at: i64 = first
        while at < len(errors):
            path, code = errors[at]
            errors[at] = (f"{place}.{path}" if path else place, code)
            at += 1
        return at

    def uvarint(self, pos: i64) -> i64:
        """An UNSIGNED_VARINT; ``pos`` is behind it then. -1 for one of more than 32 bits."""
        frame = self.frame
        number: i64 = frame[pos]
        pos += 1
        if number > 127:
            number &= 127
            shift: i64 = 7
            while True:
                byte: i64 = frame[pos]
                pos += 1
                number |= (byte & 127) << shift
                if byte < 128:
                    break
                shift += 7
                if shift > 28:
                    return -1
            if number > 0xFFFFFFFF:
                return -1
        self.pos = pos
        return number

    def number(self, kind: i64, pos: i64) -> i64:
        """A big-endian number of a kind up to INT64, a BOOLEAN as 0 or 1; ``pos`` is behind it then."""
        frame = self.frame
        if kind == INT32:
            self.pos = pos + 4
            return int32(frame, pos)
        if kind == INT64:
            self.pos = pos + 8
            return read_i64_be(frame, pos)
        if kind == INT16 or kind == ERROR_CODE:  # noqa: SIM109 - two comparisons when compiled
            self.pos = pos + 2
            return int16(frame, pos)
        if kind == UINT32:
            self.pos = pos + 4
            return int32(frame, pos) & 0xFFFFFFFF
        if kind == UINT16:
            self.pos = pos + 2
            return int16(frame, pos) & 0xFFFF
        byte: i64 = frame[pos]
        self.pos = pos + 1
        if kind == BOOLEAN:
            return 1 if byte else 0
        return byte - 256 if byte > 127 else byte

    def unknown_tags(self, section: Step, pos: i64) -> list[tuple[i64, bytes]] | None:
        """Unknown tagged fields by number, with ``pos`` behind them; None for a known one or a malformed section."""
        frame = self.frame
        count: i64 = frame[pos]
        self.pos = pos + 1
        self.left -= count
        if count > 127 or count * 2 > len(frame) - self.pos or self.left < 0:
            return None
        found: list[tuple[i64, bytes]] = []
        last: i64 = -1
        while count > 0:
            count -= 1
            tag: i64 = self.uvarint(self.pos)
            size: i64 = self.uvarint(self.pos)
            at: i64 = self.pos
            if tag <= last or size < 0 or size > len(frame) - at:
                return None
            for step in section.steps:
                if step.tag == tag:
                    return None
            last = tag
            self.pos = at + size
            found.append((tag, frame[at : self.pos]))
        return found

    def starts_like_internal(self, pos: i64, length: i64) -> bool:
        """Whether a name of ``length`` bytes at ``pos`` begins with two underscores, as internal topics do."""
        return length > 1 and self.frame[pos] == 95 and self.frame[pos + 1] == 95

    def quotes_secret(self, pos: i64, stop: i64) -> bool:
        """Whether a broker's text has a credential in it, which no writer shows (``session.secrets``)."""
        return stop <= len(self.frame) and is_secret_text(self.frame[pos:stop].decode())

    def length_of(self, step: Step, pos: i64) -> i64:
        """The length of a string, bytes or a record set; -1 for null, -2 for one that goes beyond the frame."""
        length: i64 = 0
        if step.compact:
            length = self.uvarint(pos) - 1
        elif step.short:
            length = int16(self.frame, pos)
            self.pos = pos + 2
        else:
            length = int32(self.frame, pos)
            self.pos = pos + 4
        if length < 0:
            if length == -1 and step.nullable:
                return -1
            return -2
        if length > len(self.frame) - self.pos:
            return -2
        return length  # in one expression with a constant it would become an object where this is compiled

    def count_of(self, step: Step, pos: i64) -> i64:
        """The count of an array; -1 for null, -2 for more than the bytes left, or the limit on values, allow."""
        count: i64 = 0
        if step.compact_array:
            count = self.uvarint(pos) - 1
        else:
            count = int32(self.frame, pos)
            self.pos = pos + 4
        if count < 0:
            if count == -1 and step.null_array:
                return -1
            return -2
        self.left -= count >> step.shift
        if self.left < 0 or count * step.least > self.announced - self.pos:
            return -2
        return count
