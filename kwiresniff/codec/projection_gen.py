"""Scanners generated from definitions, for a few fields of a body: decoding all of it takes five times as long.

A scanner returns ``(field name, value)`` for every leaf that was asked for and is not zero, empty or null, in
wire order, and stops as soon as nothing more that was asked for can follow. Record sets are jumped over.
``kwiresniff stats`` finds error codes and topics this way at about a microsecond a message; by decoding whole bodies
it would take five times as long. A message of which the capture has only the front is scanned as far as it goes, by
the same source with a check more before each field.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from typing import Any

from kwiresniff.codec.decode_errors import NOTICED
from kwiresniff.codec.decoder_gen import fixed_expression
from kwiresniff.codec.field_layout import (
    MAX_ENTRIES,
    NULLABLE_STRUCT_MARK,
    check_nesting,
    fixed_size,
    is_records,
    is_string,
    may_be_null,
    null_mark,
    regular,
    single,
    tagged,
)
from kwiresniff.codec.reader_gen import ReaderSource, joined
from kwiresniff.errors import DecodeError
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

#: ``found = scan(frame, body_offset)``
Scanner = Callable[[bytes, int], "list[tuple[str, Any]]"]


#: ``found = scan(frame, body_offset, size_bytes)``
FrontScanner = Callable[[bytes, int, int], "list[tuple[str, Any]]"]


def compile_scanner(message: MessageVersion, leaves: Set[str]) -> Scanner:
    """Make the scanner for the leaves whose name, enumeration or entity is in ``leaves``.

    It raises DecodeError for bytes that do not fit as far as it reads them. Raises SchemaError for a definition
    that nests too deep.
    """
    check_nesting(message)
    return _ScannerSource(message, leaves).compile()


def compile_front_scanner(message: MessageVersion, leaves: Set[str]) -> FrontScanner:
    """Make the scanner for a message that breaks off: it gives what there is before the bytes that do not fit.

    ``size_bytes`` is what the frame should have had; an array may count on what is missing of it. It raises nothing
    for bad bytes, and is slower: it reads field by field. Raises SchemaError for a definition that nests too deep.
    """
    check_nesting(message)
    return _FrontSource(message, leaves, counted=True).compile()


class _ScannerSource(ReaderSource):
    def __init__(self, message: MessageVersion, leaves: Set[str], counted: bool = False) -> None:
        super().__init__(message.flexible, counted)
        self.message = message
        self.leaves = leaves
        self._reports: list[str] = []

    def compile(self) -> Callable[..., list[tuple[str, Any]]]:
        with self.block("def scan(b, p):"):
            self.begin(lambda: _ScannerSource(self.message, self.leaves, counted=True).compile(), "b, p")
            self.line("found = []")
            if any(self.reads(field) for field in self.message.fields):
                with self.block("try:"):
                    self.body()
                    self.flush()
                with self.block("except NOTICED as error:"):
                    self.line("raise translate(error, p, end) from None")
                self.line("if p > end: raise truncated('', p - end)")
            self.line("return found")
        return self.function("scan", f"scan {self.message.name} v{self.message.version}")

    def body(self) -> None:
        """The fields up to the last one asked for; the tag section only when something in it is asked for."""
        fields = self.message.fields
        if any(self.reads(field) for field in tagged(fields)):
            self.structure(fields, "")
            return
        regulars = regular(fields)
        last = max(index for index, field in enumerate(regulars) if self.reads(field))
        for field in regulars[: last + 1]:
            self.value(field, joined("", field))

    def wants(self, field: WireField) -> bool:
        """Whether the field itself, a leaf, is asked for."""
        return (
            field.type != "STRUCT"
            and not is_records(field.type)
            and not self.leaves.isdisjoint((field.name, field.enum or field.name, field.entity or field.name))
        )

    def reads(self, field: WireField) -> bool:
        """Whether the field or anything inside it is asked for."""
        return self.wants(field) or any(self.reads(child) for child in field.fields)

    def structure(self, fields: tuple[WireField, ...], path: str) -> None:
        for field in regular(fields):
            self.value(field, joined(path, field))
        if not self.flexible:
            return
        if any(self.reads(field) for field in tagged(fields)):
            self.read_tag_section(fields, path, first="", known=self.known, unknown=(), other=None)
        else:
            self.read_tag_section(
                (), path, first="", known=self.known, unknown=("p = skip_tags(b, p, {t})",), other=None
            )

    def known(self, field: WireField, path: str) -> None:
        self.value(field, path)
        self.flush()

    def value(self, field: WireField, path: str) -> None:
        if field.array:
            self.array(field, path)
        elif field.type == "STRUCT":
            self.nullable_structure(field, path) if field.nullable else self.structure(field.fields, path)
        elif fixed := FIXED.get(field.type):
            if self.wants(field):
                self.found(field, self.take(fixed))
            else:
                self.jump(fixed.size)
        else:
            self.sized(field, path)

    def found(self, field: WireField, name: str) -> None:
        """Report a leaf of fixed size unless it is zero, once the run it is part of has been read."""
        self._reports.append(self.report(field, name))

    def report(self, field: WireField, name: str) -> str:
        test = name
        fixed = FIXED[field.type]
        if fixed.code.endswith("s"):
            self.namespace[f"zeros_{fixed.size}"] = bytes(fixed.size)
            test = f"{name} != zeros_{fixed.size}"
        return f"if {test}: found.append(({field.name!r}, {fixed_expression(field.type, name)}))"

    def flush(self) -> None:
        super().flush()
        reports, self._reports = self._reports, []
        for line in reports:
            self.line(line)

    def nullable_structure(self, field: WireField, path: str) -> None:
        mark = self.take(NULLABLE_STRUCT_MARK)
        self.flush()
        with self.block(f"if {mark} == 1:"):
            self.structure(field.fields, path)
            self.flush()
        null = null_mark(field)
        self.line(f"elif {mark} != {null}: raise bad_mark({mark}, {null}, {path!r})")

    def sized(self, field: WireField, path: str) -> None:
        """A string, byte array or record set: jumped over, or sliced when asked for."""
        length, compact = self.take_length(field)
        with self.block(f"if {length} > {int(compact)}:"):
            ahead = f"{length} - 1" if compact else length
            if self.wants(field):
                self.slice(field, ahead, path)
            else:
                self.line(f"p += {ahead}")
        if not compact:
            least = -1 if may_be_null(field) else 0
            self.line(f"elif {length} < {least}: raise bad_length({length}, {path!r})")
        elif not may_be_null(field):
            self.line(f"elif not {length}: raise null_value({path!r})")

    def slice(self, field: WireField, size: str, path: str) -> None:
        """Report a string or byte array; a shortened one is noticed in the end."""
        decode = ".decode()" if is_string(field.type) else ""
        self.line(f"found.append(({field.name!r}, b[p:(p := p + {size})]{decode}))")

    def array(self, field: WireField, path: str) -> None:
        count, compact = self.take_length(field)
        with self.block(f"if {count} > {int(compact)}:"):
            if compact:
                self.line(f"{count} -= 1")
            self.check_count(count, field, path)
            self.entries(field, path, count)
        self.refuse_count(count, compact, field, path, null=None)

    def entries(self, field: WireField, path: str, count: str) -> None:
        """Entries of fixed size in one go, others one after the other."""
        if fixed := FIXED.get(field.type):
            self.strided(field, [field], fixed.size, count)
            return
        size = fixed_size(field.fields) if field.type == "STRUCT" else None
        if not size or tagged(field.fields):
            self.entry_loop(field, path, count)
        elif not self.flexible:
            self.strided(field, field.fields, size, count)
        else:
            with self.block(f"if not any(b[p + {size}:p + {count} * {size + 1}:{size + 1}]):"):
                self.strided(field, field.fields, size, count)
            with self.block("else:"):
                self.entry_loop(field, path, count)

    def strided(self, field: WireField, parts: Sequence[WireField], size: int, count: str) -> None:
        """Entries made of ``parts``, each taking the same ``size`` and, in a structure, an empty tag section."""
        stride = size + (self.flexible and field.type == "STRUCT")
        if not any(self.wants(part) for part in parts):
            self.line(f"p += {count} * {stride}")
            return
        format, names = ">", []
        for part in parts:
            fixed = FIXED[part.type]
            format += fixed.code if self.wants(part) else f"{fixed.size}x"
            names += [(part, self.fresh())] if self.wants(part) else []
        unpack = self.struct_method(format + "x" * (stride - size), "iter_unpack")
        self.line(f"q = p + {count} * {stride}")
        with self.block(f"for {', '.join(name for _, name in names)}, in {unpack}(b[p:q]):"):
            for part, name in names:
                self.line(self.report(part, name))
        self.line("p = q")

    def entry_loop(self, field: WireField, path: str, count: str) -> None:
        with self.block(f"while {count}:"):
            self.line(f"{count} -= 1")
            self.value(single(field), path)
            self.flush()


class _FrontSource(_ScannerSource):
    """The source of a scanner that keeps what it found when it fails."""

    announced = "size"

    def compile(self) -> Callable[..., list[tuple[str, Any]]]:
        self.namespace["UNFIT"] = (*NOTICED, DecodeError)
        with self.block("def scan(b, p, size):"):
            self.line(f"end = len(b); left = {MAX_ENTRIES}")
            self.line("found = []")
            if any(self.reads(field) for field in self.message.fields):
                with self.block("try:"):
                    self.body()
                    self.flush()
                self.line("except UNFIT: pass")
            self.line("return found")
        return self.function("scan", f"scan the front of {self.message.name} v{self.message.version}")

    def found(self, field: WireField, name: str) -> None:
        """Report a leaf before anything behind it is looked at."""
        super().found(field, name)
        self.flush()

    def slice(self, field: WireField, size: str, path: str) -> None:
        """Report a string or byte array that is all there."""
        self.line(f"if p + {size} > end: raise truncated({path!r})")
        super().slice(field, size, path)

    def entries(self, field: WireField, path: str, count: str) -> None:
        """One after the other where something is asked for: the last may be there in part."""
        if self.reads(field):
            self.entry_loop(field, path, count)
        else:
            super().entries(field, path, count)
