"""What generated readers have in common: the run of fixed-size fields, lengths, counts, tag sections.

Generated readers work on three locals: ``b`` the frame, ``p`` the position, ``end`` its length. They take values
by ``struct`` or by index, which refuse to read past the end, and by slices, which do not; so a position past the
end is noticed by the next read, or by the check before the function returns. Positions only ever grow: no
length below zero is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec import decode_errors, primitives
from kwiresniff.codec.codegen import SourceCode, made_when_called
from kwiresniff.codec.field_layout import (
    LARGE_BYTES,
    MAX_ENTRIES,
    NUMBERS_SHIFT,
    VARINT_BYTE,
    length_prefix,
    may_be_null,
    single,
    smallest_size,
    tagged,
)
from kwiresniff.schema.types import WireField
from kwiresniff.schema.wire_types import FIXED, Fixed

_NAMESPACE: dict[str, Any] = {
    "__builtins__": {"len": len, "any": any},
    "bad_count": decode_errors.bad_count,
    "bad_length": decode_errors.bad_length,
    "bad_mark": decode_errors.bad_mark,
    "bad_tag_size": decode_errors.bad_tag_size,
    "null_value": decode_errors.null_value,
    "too_many_entries": lambda: decode_errors.too_many_entries(MAX_ENTRIES),
    "translate": decode_errors.translate,
    "truncated": decode_errors.truncated,
    "NOTICED": decode_errors.NOTICED,
    "uvarint": primitives.read_uvarint,
    "check_tag_count": primitives.check_tag_count,
    "read_tags": primitives.read_tags,
    "skip_tags": primitives.skip_tags,
    **primitives.READERS,
}


class ReaderSource(SourceCode):
    """Source of a reader; fixed-size fields gather in a run until something of varying size needs the position."""

    #: The local with the size that the frame says it has.
    announced = "end"

    def __init__(self, flexible: bool, counted: bool) -> None:
        super().__init__(_NAMESPACE)
        self.flexible = flexible
        self.counted = counted
        self._run: list[tuple[Fixed, str]] = []  # an empty name is a field to jump over

    def begin(self, twin: Callable[[], Callable[..., Any]], call: str) -> None:
        """The first lines of a reader. A large frame is left to the ``twin`` that counts, made when the first comes.

        ``call`` are the arguments the reader was called with.
        """
        self.line("end = len(b)")
        if self.counted:
            self.line(f"left = {MAX_ENTRIES}")
        else:
            self.namespace["counting_twin"] = made_when_called(twin)
            self.line(f"if end - p > {LARGE_BYTES}: return counting_twin({call})")

    def count(self, number: str) -> None:
        """Takes a ``number`` of values off the limit on what one message may be made of."""
        if self.counted:
            self.line(f"left -= {number}")
            self.line("if left < 0: raise too_many_entries()")

    def take(self, fixed: Fixed) -> str:
        """Add a field to the run; the name returned holds its value after the next ``flush``."""
        name = self.fresh()
        self._run.append((fixed, name))
        return name

    def flush(self) -> None:
        """Read the run by one ``unpack_from`` and move the position behind it."""
        run, self._run = self._run, []
        size = sum(fixed.size for fixed, _ in run)
        names = [name for _, name in run if name]
        if not size:
            return
        if not names:
            self.line(f"p += {size}")
        elif names and run[-1] == (VARINT_BYTE, names[0]):
            # One byte is cheaper by index: a third of an unpack_from.
            self.line(f"{names[0]} = b[p{f' + {size - 1}' if size > 1 else ''}]; p += {size}")
        else:
            self.line(f"{', '.join(names)}, = {self.struct_method(run_format(run), 'unpack_from')}(b, p); p += {size}")

    def take_length(self, field: WireField) -> tuple[str, bool]:
        """Read the length of a string, byte array or record set, or the count of an array, ending the run.

        Returns its name and whether it is compact, that is one more than the length and 0 for null.
        """
        prefix = length_prefix(field, self.flexible)
        if prefix is None:
            return self.take_uvarint(), True
        name = self.take(prefix)
        self.flush()
        return name, False

    def take_uvarint(self) -> str:
        """Read an UNSIGNED_VARINT whose first byte ends the run; two bytes inline, more out of line."""
        name = self.take(VARINT_BYTE)
        self.flush()
        with self.block(f"if {name} > 127:"):
            more = self.fresh()
            self.line(f"{more} = b[p]")
            self.line(f"if {more} < 128: {name} += ({more} - 1) * 128; p += 1")
            self.line(f"else: {name}, p = uvarint(b, p - 1)")
        return name

    def refuse_negative(self, name: str, compact: bool, field: WireField, path: str) -> None:
        """Refuse what is neither a length nor null, and null where it may not be."""
        if compact:
            if not may_be_null(field):
                self.line(f"if not {name}: raise null_value({path!r})")
        elif may_be_null(field):
            self.line(f"if {name} < -1: raise bad_length({name}, {path!r})")
        else:
            self.line(f"if {name} < 0: raise bad_length({name}, {path!r})")

    def check_count(self, name: str, field: WireField, path: str) -> None:
        """Refuse an array count that the bytes left cannot hold, before anything is made for it."""
        least = smallest_size(single(field), self.flexible)
        need = name if least == 1 else f"{name} * {least}"
        rest = f"{self.announced} - p"
        self.line(f"if {need} > {rest}: raise bad_count({name}, {rest}, {path!r})")
        self.count(f"{name} >> {NUMBERS_SHIFT}" if field.type in FIXED else name)

    def refuse_count(self, name: str, compact: bool, field: WireField, path: str, null: str | None) -> None:
        """The branches after ``if`` for an array without entries: null, or no count at all."""
        if field.nullable:
            if null:
                self.line(f"elif {name} == {0 if compact else -1}: {null}")
            if not compact:
                self.line(f"elif {name} < -1: raise bad_count({name}, end - p, {path!r})")
        elif compact:
            self.line(f"elif not {name}: raise null_value({path!r})")
        else:
            self.line(f"elif {name} < 0: raise bad_count({name}, end - p, {path!r})")

    def read_tag_section(
        self,
        fields: tuple[WireField, ...],
        path: str,
        *,
        first: str,
        known: Callable[[WireField, str], None],
        unknown: Iterable[str],
        other: Callable[[str, str], str] | None,
    ) -> None:
        """Read the tag section at the end of a structure, ending the run; ``first`` is added before it is looked at.

        ``known`` adds the code for one tagged field, which must end with a flushed run. ``unknown`` are the lines
        for a section when no tag is known, with the first byte in ``{t}``. ``other`` gives the line that keeps an
        unknown field, its tag and its end being in the two names handed to it; without it the field is dropped.
        """
        count = self.take(VARINT_BYTE)
        self.flush()
        if first:
            self.line(first)
        with self.block(f"if {count}:"):
            self.count(count)
            if not tagged(fields):
                for line in unknown:
                    self.line(line.replace("{t}", count))
                return
            tag, stop, size = self.fresh(), self.fresh(), self.fresh()
            self.line(f"if {count} > 127: {count}, p = uvarint(b, p - 1)")
            self.line(f"check_tag_count({count}, end - p, {dotted(path, UNKNOWN_TAGS)!r})")
            with self.block(f"while {count}:"):
                self.line(f"{count} -= 1")
                self.line(f"{tag}, p = uvarint(b, p)")
                self.line(f"{size}, p = uvarint(b, p); {stop} = p + {size}")
                self.line(f"if {stop} > end: raise truncated({path!r}, {stop} - end)")
                word = "if"
                for field in tagged(fields):
                    with self.block(f"{word} {tag} == {int(field.tag or 0)}:"):
                        known(field, joined(path, field))
                        line = f"bad_tag_size({joined(path, field)!r}, {size}, p - {stop} + {size}, end - p)"
                        self.line(f"if p != {stop}: raise {line}")
                    word = "elif"
                with self.block("else:"):
                    if other:
                        self.line(other(tag, stop))
                    self.line(f"p = {stop}")


def run_format(run: list[tuple[Fixed, str]]) -> str:
    """The ``struct`` format of a run, big-endian."""
    return ">" + "".join(fixed.code if name else f"{fixed.size}x" for fixed, name in run)


def joined(path: str, field: WireField) -> str:
    """The path of a field as the generated code knows it: entries are not numbered."""
    return dotted(path, f"{field.name}[]" if field.array else field.name)


def dotted(path: str, name: str) -> str:
    """The path of a field inside the structure at ``path``."""
    return f"{path}.{name}" if path else name
