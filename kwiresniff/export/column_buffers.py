"""Columns of values, held as the buffers that Arrow arrays are made of (the Arrow columnar format).

A value is written where it will lie, so a row costs no Python object. ``pyarrow.array`` would do for few, but imports
pandas to see whether it is given something of it: a quarter of a second. Written for mypyc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import BytesWriter, write_i16_le, write_i32_le, write_i64_le

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What a column may hold of a number.
_LEAST: Final = -(1 << 63)
_MOST: Final = (1 << 63) - 1
#: Numbers that need no look at those: mypyc holds them without a Python object.
_SMALL: Final = 1 << 61
#: What a name that comes for the first time takes besides its text, about.
NAME_BYTES: Final = 200
#: What says where a text, a name or a list is.
OFFSET_BYTES: Final = 4
#: Texts from this size on are kept as they are until the array is made: so they are copied once.
LARGE_TEXT: Final = 4096
#: Short texts are gathered to pieces of this size, in memory that the processor has at hand: what grows is copied.
PIECE_BYTES: Final = 1 << 16


class Column:
    """The base of all columns: how many values, and which of them are null."""

    def __init__(self) -> None:
        self.count: i64 = 0
        self.nulls: i64 = 0
        self._bits: i64 = 0
        self._mask = BytesWriter()

    def mark(self, there: bool) -> None:
        """Counts a value, which is null when it is not ``there``."""
        if not self.nulls:
            if there:
                self.count += 1
                return
            self._begin_mask()
        if there:
            self._bits |= 1 << (self.count & 7)
        else:
            self.nulls += 1
        self.count += 1
        if self.count & 7 == 0:
            byte: int = self._bits
            self._mask.append(byte)
            self._bits = 0

    def _begin_mask(self) -> None:
        """Puts down that all values so far are there; before the first null no mask is needed."""
        for _ in range(self.count >> 3):
            self._mask.append(0xFF)
        self._bits = (1 << (self.count & 7)) - 1

    def mask(self) -> bytes | None:
        """A bit for each value, set where there is one, the lowest first; None when all are there."""
        if not self.nulls:
            return None
        last: int = self._bits
        return self._mask.getvalue() + bytes([last])

    def append(self, value: Any) -> i64:
        """One more value, None for a null; returns about what it takes in memory."""
        raise NotImplementedError

    def array(self, arrow: Any, kind: Any) -> Any:
        """The column as a ``pyarrow.Array`` of a type; ``arrow`` is that module."""
        raise NotImplementedError

    def _buffers(self, arrow: Any, *values: BytesWriter) -> list[Any]:
        mask = self.mask()
        found = [None if mask is None else arrow.py_buffer(mask)]
        for one in values:
            found.append(arrow.py_buffer(one.getvalue()))
        return found


@final
class NumberColumn(Column):
    """Integers of 8, 4 or 2 bytes."""

    def __init__(self, size: i64) -> None:
        super().__init__()
        self.size: i64 = size
        self.values = BytesWriter()

    def add(self, value: int) -> None:
        """One more value, which fits; one that needs more than 64 bits is none."""
        if -_SMALL < value < _SMALL or _LEAST <= value <= _MOST:
            self.put(value)
        else:
            self.add_none()

    def put(self, value: i64) -> None:
        """One more value that fits."""
        if self.size == 8:
            write_i64_le(self.values, value)
        else:
            self._write_short(value)
        if self.nulls:
            self.mark(True)
        else:
            self.count += 1

    def add_none(self) -> None:
        if self.size == 8:
            write_i64_le(self.values, 0)
        else:
            self._write_short(0)
        self.mark(False)

    def append(self, value: Any) -> i64:
        if value is None:
            self.add_none()
        else:
            self.add(value)
        return self.size

    def _write_short(self, value: i64) -> None:
        number: int = value
        if self.size == 4:
            write_i32_le(self.values, number)
        else:
            write_i16_le(self.values, number)

    def array(self, arrow: Any, kind: Any) -> Any:
        return arrow.Array.from_buffers(kind, self.count, self._buffers(arrow, self.values), self.nulls)


@final
class BooleanColumn(Column):
    """Truth values, a bit each."""

    def __init__(self) -> None:
        super().__init__()
        self._true = Column()  # whose mask they are

    def append(self, value: Any) -> i64:
        self._true.mark(bool(value))
        self.mark(value is not None)
        return 1

    def array(self, arrow: Any, kind: Any) -> Any:
        bits = self._true.mask()
        if bits is None:
            bits = b"\xff" * (self.count // 8 + 1)
        buffers = [*self._buffers(arrow), arrow.py_buffer(bits)]
        return arrow.Array.from_buffers(kind, self.count, buffers, self.nulls)


class TextColumn(Column):
    """Texts in UTF-8 or bytes, each written where it stands. ``size_bytes`` is that of all."""

    def __init__(self) -> None:
        super().__init__()
        self.size_bytes: i64 = 0
        self._data = BytesWriter()
        self._pieces: list[bytes] = []
        self.ends = BytesWriter()
        write_i32_le(self.ends, 0)

    def add(self, text: bytes) -> None:
        self.write(text)
        self.end(True)

    def add_none(self) -> None:
        self.end(False)

    def append(self, value: Any) -> i64:
        before: i64 = self.size_bytes
        if value is None:
            self.add_none()
        elif isinstance(value, str):
            self.add(utf8_of(value))
        else:
            self.add(value)
        return self.size_bytes - before + OFFSET_BYTES

    def write(self, piece: bytes) -> None:
        """Some more of a value."""
        size: i64 = len(piece)
        self.size_bytes += size
        if size < LARGE_TEXT:
            self._data.write(piece)
            if len(self._data) >= PIECE_BYTES:
                self._cut()
        else:
            self._cut()
            self._pieces.append(piece)

    def _cut(self) -> None:
        """Begins a new piece."""
        self._pieces.append(self._data.getvalue())
        self._data.truncate(0)

    def end(self, there: bool) -> None:
        """Ends a value: what was written since the last one."""
        end: int = self.size_bytes
        write_i32_le(self.ends, end)
        if there and not self.nulls:
            self.count += 1
        else:
            self.mark(there)

    def array(self, arrow: Any, kind: Any) -> Any:
        buffers = self._buffers(arrow, self.ends)
        self._cut()
        self._pieces = [b"".join(self._pieces)]  # those of a long text are not held besides
        buffers.append(arrow.py_buffer(self._pieces[0]))
        return arrow.Array.from_buffers(kind, self.count, buffers, self.nulls)


@final
class NameColumn(Column):
    """Texts that repeat: each is kept once, and its number for every time it comes (Arrow's dictionary layout).

    ``size_bytes`` is about what they take in memory, and where somebody reads them later: of all, not of the different
    ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self.size_bytes: i64 = 0
        self._names = TextColumn()
        self._numbers: dict[str, int] = {}
        self._last: str | None = None
        self._last_number = 0
        self._places = BytesWriter()

    def put(self, name: str | None) -> None:
        """One more name, or none."""
        if name is None:
            write_i32_le(self._places, 0)
            self.mark(False)
            return
        if name is not self._last:
            number = self._numbers.get(name)
            self._last_number = self._numbered(name) if number is None else number
            self._last = name
        write_i32_le(self._places, self._last_number)
        self.size_bytes += len(name)
        if self.nulls:
            self.mark(True)
        else:
            self.count += 1

    def append(self, value: Any) -> i64:
        before: i64 = self.size_bytes
        self.put(value)
        return self.size_bytes - before + OFFSET_BYTES

    def _numbered(self, name: str) -> int:
        """The number of a name that comes for the first time."""
        encoded = utf8_of(name)
        count: int = self._names.count
        number = self._numbers.setdefault(encoded.decode(), count)
        self._numbers[name] = number
        if number == count:
            self._names.add(encoded)
        self.size_bytes += len(encoded) + NAME_BYTES
        return number

    def array(self, arrow: Any, kind: Any) -> Any:
        """Of a dictionary type, or of texts."""
        names = self._names.array(arrow, arrow.string())
        numbered = arrow.dictionary(arrow.int32(), arrow.string())
        buffers = self._buffers(arrow, self._places)
        found = arrow.DictionaryArray.from_buffers(numbered, self.count, buffers, names, self.nulls)
        return found if arrow.types.is_dictionary(kind) else found.dictionary_decode()


def utf8_of(text: str) -> bytes:
    """The name of a file may be any bytes: half surrogate pairs, for which UTF-8 has no form, are visible escapes."""
    return text.encode("utf-8", "backslashreplace")
