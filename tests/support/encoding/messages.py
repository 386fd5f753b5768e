"""Encoders compiled from definitions, the decoders' inverse.

They accept what the decoder gives: ``decode(encode(body)) == body``, and for canonical bytes (shortest varints,
ascending tags, no tagged field that equals its default) ``encode(decode(raw)) == raw``. A tagged field that
equals its default, or is missing, is not written.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any

from kwiresniff import schema
from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec.field_layout import (
    NULLABLE_STRUCT_MARK,
    check_nesting,
    default_value,
    is_records,
    is_string,
    length_prefix,
    may_be_null,
    null_mark,
    regular,
    single,
    tagged,
)
from kwiresniff.model import Body, Direction
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED
from tests.support.encoding.errors import EncodeError
from tests.support.encoding.misfits import misfit
from tests.support.encoding.primitives import WRITERS, write_uvarint, writer_of
from tests.support.encoding.record_sets import encode_record_set
from tests.support.encoding.source_code import SourceCode, literal

#: ``raw = encode(body)``
Encoder = Callable[[Body], bytes]

#: What goes wrong when a value does not fit; which value it was is found out afterwards.
_NOTICED = (struct.error, KeyError, TypeError, AttributeError, ValueError, OverflowError)


def compile_encoder(message: MessageVersion) -> Encoder:
    """Make the encoder of one message; it raises EncodeError, naming the field, for a value that does not fit.

    Raises SchemaError for a definition that nests too deep.
    """
    check_nesting(message)
    return _EncoderSource(message).compile()


@cache
def encoder(api_key: int, version: int, direction: Direction) -> Encoder:
    """``raw = encode(body)`` for one message, without its header."""
    return compile_encoder(schema.message(api_key, version, direction))


@cache
def data_encoder(name: str, version: int) -> Encoder:
    """The encoder of a message that is carried in bytes fields or stored in a log."""
    return compile_encoder(schema.data_message(name, version))


class _EncoderSource(SourceCode):
    """Source of an encoder: fixed-size values gather in a run and are packed together; pieces are joined last."""

    def __init__(self, message: MessageVersion) -> None:
        super().__init__(_NAMESPACE)
        self.message = message
        self.flexible = message.flexible
        self._run: list[tuple[str, str]] = []  # struct code, expression

    def compile(self) -> Encoder:
        self.namespace["explain"] = lambda body, error: _explain(self.message, body, error)
        with self.block("def encode(body):"):
            self.line("parts = []; add = parts.append")
            with self.block("try:"):
                self.structure(self.message.fields, "body")
                self.flush()
                self.line("return join(parts)")
            with self.block("except NOTICED as error:"):
                self.line("raise explain(body, error) from None")
        return self.function("encode", f"encode {self.message.name} v{self.message.version}")

    def put(self, code: str, expression: str) -> None:
        self._run.append((code, expression))

    def flush(self) -> None:
        run, self._run = self._run, []
        if run:
            pack = self.struct_method(">" + "".join(code for code, _ in run), "pack")
            self.line(f"add({pack}({', '.join(expression for _, expression in run)}))")

    def put_length(self, field: WireField, length: str) -> None:
        """Write a length or count given as an expression; -1 stands for null."""
        if prefix := length_prefix(field, self.flexible):
            self.put(prefix.code, length)
            return
        self.flush()
        self.line(f"add(uvarint({length} + 1))")

    def structure(self, fields: tuple[WireField, ...], holder: str) -> None:
        for field in regular(fields):
            self.value(field, f"{holder}[{field.name!r}]")
        if self.flexible:
            self.flush()
            self.tag_section(fields, holder)

    def value(self, field: WireField, expression: str) -> None:
        if field.array:
            self.array(field, expression)
        elif field.type == "STRUCT":
            self.nested(field, expression)
        elif fixed := FIXED.get(field.type):
            self.put(fixed.code, f"write_{field.type}({expression})" if writer_of(field.type) else expression)
        else:
            self.sized(field, expression)

    def nested(self, field: WireField, expression: str) -> None:
        name = self.fresh()
        self.line(f"{name} = {expression}")
        if not field.nullable:
            self.structure(field.fields, name)
            return
        self.flush()
        with self.block(f"if {name} is None:"):
            self.put(NULLABLE_STRUCT_MARK.code, str(null_mark(field)))
            self.flush()
        with self.block("else:"):
            self.put(NULLABLE_STRUCT_MARK.code, "1")
            self.structure(field.fields, name)
            self.flush()

    def sized(self, field: WireField, expression: str) -> None:
        name = self.fresh()
        convert = "record_bytes" if is_records(field.type) else "string_bytes" if is_string(field.type) else "raw_bytes"
        if may_be_null(field):
            self.line(f"{name} = {expression}")
            self.line(f"if {name} is not None: {name} = {convert}({name})")
            self.put_length(field, f"(-1 if {name} is None else len({name}))")
            self.flush()
            self.line(f"if {name}: add({name})")
        else:
            self.line(f"{name} = {convert}({expression})")
            self.put_length(field, f"len({name})")
            self.flush()
            self.line(f"add({name})")

    def array(self, field: WireField, expression: str) -> None:
        name, entry = self.fresh("a"), self.fresh("e")
        self.line(f"{name} = entries({expression})" if not field.nullable else f"{name} = {expression}")
        if field.nullable:
            self.line(f"if {name} is not None: entries({name})")
            self.put_length(field, f"(-1 if {name} is None else len({name}))")
        else:
            self.put_length(field, f"len({name})")
        self.flush()
        with self.block(f"for {entry} in {name}{' or ()' if field.nullable else ''}:"):
            self.value(single(field), entry)
            self.flush()

    def tag_section(self, fields: tuple[WireField, ...], holder: str) -> None:
        known = tagged(fields)
        tags = self.fresh("t")
        if not known:
            self.line(f"{tags} = {holder}.get({UNKNOWN_TAGS!r})")
            self.line(f"add(tag_section({tags}, ()) if {tags} else b'\\0')")
            return
        self.line(f"{tags} = []")
        for field in known:
            value, default = self.fresh(), literal(default_value(field))
            self.line(f"{value} = {holder}.get({field.name!r}, {default})")
            with self.block(f"if {value} != {default}:"):
                outer, inner = self.fresh("o"), self.fresh("i")
                self.line(f"{outer} = add; {inner} = []; add = {inner}.append")
                self.value(field, value)
                self.flush()
                self.line(f"add = {outer}; {tags}.append(({int(field.tag or 0)}, join({inner})))")
        numbers = literal([int(field.tag or 0) for field in known])
        self.line(f"add(tag_section(unknown_tags({holder}, {numbers}), {tags}))")


def _tag_section(unknown: Mapping[Any, bytes], known: Iterable[tuple[int, bytes]]) -> bytes:
    """A tag section in ascending order; ``unknown`` may have its tags as text, as JSON does."""
    fields = sorted([*known, *((int(tag), raw) for tag, raw in unknown.items())])
    parts = [write_uvarint(len(fields))]
    for tag, raw in fields:
        parts += (write_uvarint(tag), write_uvarint(len(raw)), raw)
    return b"".join(parts)


def _unknown_tags(holder: Mapping[str, Any], known: list[int]) -> Mapping[Any, bytes]:
    unknown: Mapping[Any, bytes] = holder.get(UNKNOWN_TAGS) or {}
    if any(int(tag) in known for tag in unknown):
        raise ValueError("a tag that is known by its name")
    return unknown


def _entries(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        raise TypeError("an array is a list")
    return value


def _string_bytes(value: Any) -> bytes:
    encoded: bytes = value.encode()
    return encoded


def _raw_bytes(value: Any) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("bytes are needed")
    return value


def _record_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    return encode_record_set(_entries(value))


def _explain(message: MessageVersion, body: Any, error: Exception) -> EncodeError:
    found = misfit(message, body)
    what = f"{found[0] or 'the body'} {found[1]}" if found else f"{type(error).__name__}: {error}"
    return EncodeError(f"{message.name} v{message.version}: {what}")


_NAMESPACE: dict[str, Any] = {
    "__builtins__": {"len": len},
    "NOTICED": _NOTICED,
    "join": b"".join,
    "uvarint": write_uvarint,
    **{f"write_{name}": write for name, write in WRITERS.items()},
    "tag_section": _tag_section,
    "unknown_tags": _unknown_tags,
    "entries": _entries,
    "string_bytes": _string_bytes,
    "raw_bytes": _raw_bytes,
    "record_bytes": _record_bytes,
}
