"""Decoders generated from definitions, for readers that want values: the dissector takes 25 times as long.

Python source for one message at one version is made once and executed. The result is a plain dict in wire order, tagged
fields after the regular ones by tag, those not on the wire with their defaults. It is 4 to 6 times faster than a bare
interpreter of the definitions that checks nothing, and 25 times faster than the dissector: runs of fixed-size fields
are one ``unpack_from``, lengths end such a run, one- and two-byte varints are inline, and arrays of plain structures
are read by one ``iter_unpack``.

It is the reader for whoever wants values: trees, filters, analyses, plugins. Without it all of them would wait for the
dissector.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import Any

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec.codegen import literal
from kwiresniff.codec.field_layout import (
    NULLABLE_STRUCT_MARK,
    UNALIGNED,
    check_nesting,
    default_value,
    fixed_size,
    is_records,
    is_string,
    may_be_null,
    null_mark,
    regular,
    single,
    tagged,
)
from kwiresniff.codec.primitives import reader_of
from kwiresniff.codec.reader_gen import ReaderSource, joined
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.tagged_structure import with_tagged
from kwiresniff.errors import SchemaError
from kwiresniff.model import Body, Problem, RecordsMode
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import BY_GUIDE, FIXED, Fixed

#: ``body, end = decode(frame, body_offset, issues)``
Decoder = Callable[[bytes, int, "list[Problem]"], tuple[Body, int]]

#: Different array lengths for which an unpacker is kept; partition and replica counts repeat.
ARRAY_UNPACKERS = 512


#: Arrays shorter than this find their unpacker in a table; most are lists of a partition's replicas.
FEW = 33


@lru_cache(ARRAY_UNPACKERS)
def array_unpacker(code: str, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
    """``unpack_from`` for ``count`` values of one fixed-size type."""
    return Struct(f">{count}{code}").unpack_from


@lru_cache(None)
def few_unpackers(code: str) -> tuple[Callable[[bytes, int], tuple[Any, ...]], ...]:
    """Unpackers of short arrays by their length: 13 % off a Metadata response against asking the cache each time."""
    return tuple(Struct(f">{count}{code}").unpack_from for count in range(FEW))


#: ``batches = decode(frame, start, end, mode, issues, budget, unaligned=...)``, see ``records.decode_record_set``.
RecordSetDecoder = Callable[..., Any]


def compile_decoder(
    message: MessageVersion,
    records: RecordsMode = "full",
    record_set_decoder: Callable[[], RecordSetDecoder] | None = None,
) -> Decoder:
    """Make the decoder of one message; it raises DecodeError, and nothing else, for bytes that do not fit.

    ``record_set_decoder`` is asked for what opens record sets when the message can hold some. Raises SchemaError for
    a definition that nests too deep, or holds record sets that nobody opens.
    """
    check_nesting(message)
    return _DecoderSource(message, records, record_set_decoder).compile()


class _DecoderSource(ReaderSource):
    def __init__(
        self,
        message: MessageVersion,
        records: RecordsMode,
        record_set_decoder: Callable[[], RecordSetDecoder] | None,
        counted: bool = False,
    ) -> None:
        super().__init__(message.flexible, counted)
        self.message = message
        self.records: RecordsMode = records
        self.record_set_decoder = record_set_decoder
        self.namespace |= {"array_unpacker": array_unpacker, "with_tagged": with_tagged}

    def compile(self) -> Decoder:
        with self.block("def decode(b, p, issues):"):
            self.begin(self.counting_twin, "b, p, issues")
            if self.records != "skip" and holds_records(self.message.fields):
                self.open_record_sets()
            with self.block("try:"):
                body = self.structure(self.message.fields, "")
                self.flush()
                self.line(f"body = {body}")
            with self.block("except NOTICED as error:"):
                self.line("raise translate(error, p, end) from None")
            self.line("if p > end: raise truncated('', p - end)")
            self.line("return body, p")
        return self.function("decode", f"{self.message.name} v{self.message.version}")

    def counting_twin(self) -> Decoder:
        return _DecoderSource(self.message, self.records, self.record_set_decoder, counted=True).compile()

    def open_record_sets(self) -> None:
        """Put what record sets are opened with at hand, and what they may cost together."""
        if self.record_set_decoder is None:
            raise SchemaError(
                f"{self.message.name} v{self.message.version} holds record sets, which nothing opens here"
            )
        self.namespace |= {"decode_records": self.record_set_decoder(), "RecordBudget": RecordBudget}
        self.line("budget = RecordBudget(len(b))")

    def structure(self, fields: tuple[WireField, ...], path: str) -> str:
        """Add the code that reads a structure; returns the expression of its dict, good after a ``flush``."""
        members = [(field, self.value(field, joined(path, field))) for field in regular(fields)]
        pairs = [f"{field.name!r}: {value}" for field, value in members]
        pairs += [f"{field.name!r}: {literal(default_value(field))}" for field in tagged(fields)]
        expression = f"{{{', '.join(pairs)}}}"
        if not self.flexible:
            return expression
        made = self.fresh("d")

        def known(field: WireField, path: str) -> None:
            value = self.value(field, path)
            self.flush()
            self.line(f"{made} = with_tagged({made}, {field.name!r}, {value})")

        # The dict is made with the defaults in place; what the tag section brings is set on top of them.
        self.read_tag_section(
            fields,
            path,
            first=f"{made} = {expression}",
            known=known,
            unknown=("u, p = read_tags(b, p, {t})", f"if u: {made}[{UNKNOWN_TAGS!r}] = u"),
            other=lambda tag, stop: f"{made}.setdefault({UNKNOWN_TAGS!r}, {{}})[{tag}] = b[p:{stop}]",
        )
        return made

    def value(self, field: WireField, path: str) -> str:
        """Add the code that reads one field; returns the expression of its value, good after a ``flush``."""
        if field.array:
            return self.array(field, path)
        if field.type == "STRUCT":
            return self.nullable_structure(field, path) if field.nullable else self.structure(field.fields, path)
        if fixed := FIXED.get(field.type):
            return fixed_expression(field.type, self.take(fixed))
        return self.sized(field, path)

    def nullable_structure(self, field: WireField, path: str) -> str:
        mark, made = self.take(NULLABLE_STRUCT_MARK), self.fresh("d")
        self.flush()
        with self.block(f"if {mark} == 1:"):
            value = self.structure(field.fields, path)
            self.flush()
            self.line(f"{made} = {value}")
        null = null_mark(field)
        self.line(f"elif {mark} == {null}: {made} = None")
        self.line(f"else: raise bad_mark({mark}, {null}, {path!r})")
        return made

    def sized(self, field: WireField, path: str) -> str:
        """A string, byte array or record set: its length, then a slice."""
        length, compact = self.take_length(field)
        self.refuse_negative(length, compact, field, path)
        made = self.fresh()
        size = f"{length} - 1" if compact else length
        if is_records(field.type):
            read = self.record_set(made, size, unaligned=field.name == UNALIGNED)
        else:
            read = f"{made} = b[p:(p := p + {size})]"
            if is_string(field.type):  # many are empty, where somebody wants to keep readers busy
                read += f".decode() if {length}{' > 1' if compact else ''} else ''"
        if may_be_null(field):
            self.line(f"if {length}{'' if compact else ' >= 0'}: {read}")
            self.line(f"else: {made} = None")
        else:
            self.line(read)
        return made

    def record_set(self, made: str, size: str, *, unaligned: bool) -> str:
        if self.records == "skip":
            return f"{made} = {{'size_bytes': {size}}}; p += {size}"
        self.line("q = p")
        read = f"decode_records(b, q, p, {self.records!r}, issues, budget{', unaligned=True' if unaligned else ''})"
        return f"p += {size}; {made} = {read} if p <= end else None"

    def array(self, field: WireField, path: str) -> str:
        count, compact = self.take_length(field)
        made = self.fresh("a")
        with self.block(f"if {count} > {int(compact)}:"):
            if compact:
                self.line(f"{count} -= 1")
            self.check_count(count, field, path)
            self.entries(field, path, count, made)
        self.refuse_count(count, compact, field, path, f"{made} = None")
        self.line(f"else: {made} = []")
        return made

    def entries(self, field: WireField, path: str, count: str, made: str) -> None:
        fixed = FIXED.get(field.type)
        if fixed and not reader_of(field.type):
            few = f"few_{fixed.code.replace('?', 'Z')}"
            self.namespace[few] = few_unpackers(fixed.code)
            choice = f"({few}[{count}] if {count} < {FEW} else array_unpacker({fixed.code!r}, {count}))"
            self.line(f"{made} = [*{choice}(b, p)]; p += {count} * {fixed.size}")
            return
        size = fixed_size(field.fields) if field.type == "STRUCT" else None
        if size and not tagged(field.fields):
            self.plain_entries(field, path, count, made, size)
        else:
            self.entry_loop(field, path, count, made)

    def plain_entries(self, field: WireField, path: str, count: str, made: str, size: int) -> None:
        """Structures of fixed size, all at once; in a flexible version only when all tag sections are empty."""
        run: list[tuple[Fixed, str]] = [(FIXED[child.type], self.fresh()) for child in field.fields]
        pairs = ", ".join(
            f"{child.name!r}: {fixed_expression(child.type, name)}"
            for child, (_, name) in zip(field.fields, run, strict=True)
        )
        stride = size + self.flexible
        format = ">" + "".join(fixed.code for fixed, _ in run) + ("x" if self.flexible else "")
        unpack = self.struct_method(format, "iter_unpack")
        names = ", ".join(name for _, name in run)
        all_at_once = f"{made} = [{{{pairs}}} for {names}, in {unpack}(b[p:q])]; p = q"
        self.line(f"q = p + {count} * {stride}")
        if not self.flexible:
            self.line(all_at_once)
            return
        self.line(f"if not any(b[p + {size}:q:{stride}]): {all_at_once}")
        with self.block("else:"):
            self.entry_loop(field, path, count, made)

    def entry_loop(self, field: WireField, path: str, count: str, made: str) -> None:
        self.line(f"{made} = []")
        # Counting down beats range(): 70 ns less for the one-entry arrays that are most of what a client sends.
        with self.block(f"while {count}:"):
            self.line(f"{count} -= 1")
            value = self.value(single(field), path)
            self.flush()
            self.line(f"{made}.append({value})")


def holds_records(fields: tuple[WireField, ...]) -> bool:
    """Whether any of the fields, or one inside them, is a record set."""
    return any(is_records(field.type) or holds_records(field.fields) for field in fields)


def fixed_expression(wire_type: str, name: str) -> str:
    """The Python expression that turns what ``struct`` gave into the decoder's value."""
    return f"{BY_GUIDE[wire_type].reader}({name})" if reader_of(wire_type) else name
