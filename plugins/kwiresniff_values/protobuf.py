"""Protocol Buffers, read by the protobuf library, which knows messages from serialized descriptors.

A .proto file has to be compiled to a descriptor first, by ``protoc``: that of the package grpcio-tools or, without it,
that of the search path. Integers of 64 bits become texts, as in Protobuf's own JSON mapping.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from typing import Any

from kwiresniff.plugins.answers import TooMuch
from kwiresniff_values.limits import MAX_DEPTH, MAX_SCHEMA_BYTES, MAX_VALUES
from kwiresniff_values.plain import plain
from kwiresniff_values.problems import Misfit, Unusable, missing
from kwiresniff_values.protoc import compiled
from kwiresniff_values.schemas import Schema, with_references

FORMAT = "protobuf"
_TEXT = re.compile(r"\b(?:syntax|edition|package|message|import)\b")


class Messages:
    """The messages that one schema defines. The constructor raises Unusable."""

    def __init__(self, schema: Schema) -> None:
        try:
            from google.protobuf import descriptor_pool
        except ImportError:
            raise missing("protobuf") from None
        self._schema = schema
        self._pool: Any = descriptor_pool.DescriptorPool()
        self._file = self._added(schema)
        self._readers: dict[str, Callable[[bytes], Any]] = {}

    def _added(self, schema: Schema) -> Any:
        """The descriptor of the schema's file, which is added to the pool behind those that it imports."""
        files = _files(schema)
        known = set()
        try:
            for file in files:
                if file.name not in known:
                    known.add(file.name)
                    self._pool.Add(file)
            return self._pool.FindFileByName(files[-1].name)
        except Exception as error:  # the library follows whatever stands in a descriptor
            raise Unusable(f"schema {schema.name} is not usable: {_line(error)}") from None

    def reader(self, indexes: Sequence[int]) -> Callable[[bytes], Any]:
        """The reader of a message by the schema's name for it or by indexes, outermost first. Raises Misfit."""
        return self._cached(self._schema.message or self._name_at(indexes or (0,)))

    def _cached(self, name: str) -> Callable[[bytes], Any]:
        if name not in self._readers:
            self._readers[name] = self._reader(name)
        return self._readers[name]

    def reader_of(self, name: str) -> Callable[[bytes], Any] | None:
        """The reader of the file's message with this name, with its package or without, or None."""
        for one in self._file.message_types_by_name.values():
            if name in (one.name, one.full_name):
                return self._cached(str(one.full_name))
        return None

    def _name_at(self, indexes: Sequence[int]) -> str:
        types = list(self._file.message_types_by_name.values())
        found = None
        for index in indexes:
            if not 0 <= index < len(types):
                raise Misfit(f"the schema has no message {'.'.join(map(str, indexes))}")
            found = types[index]
            types = list(found.nested_types)
        assert found is not None
        return str(found.full_name)

    def _reader(self, name: str) -> Callable[[bytes], Any]:
        from google.protobuf import json_format, message, message_factory

        try:
            made = message_factory.GetMessageClass(self._pool.FindMessageTypeByName(name))
        except KeyError:
            raise Unusable(f"schema {self._schema.name} has no message {name}") from None

        def read(payload: bytes) -> Any:
            try:
                parsed = made.FromString(payload)
            except message.DecodeError as error:
                raise Misfit(f"{name}: {_line(error)}") from None
            _count(parsed, 0, [MAX_VALUES])
            try:
                found = json_format.MessageToDict(parsed, preserving_proto_field_name=True, descriptor_pool=self._pool)
            except Exception as error:
                # A time beyond the year 9999, an Any of a type that the schema does not define.
                raise Misfit(f"{name}: {_line(error)}") from None
            return plain(found)

        return read


def _count(message: Any, depth: int, left: list[int]) -> None:
    """Raises TooMuch for a message that has too many values or levels."""
    if depth > MAX_DEPTH:
        raise TooMuch(f"nested deeper than {MAX_DEPTH} levels")
    for field, value in message.ListFields():
        several = field.is_repeated
        left[0] -= len(value) if several else 1
        if left[0] < 0:
            raise TooMuch(f"of more than {MAX_VALUES} values")
        if field.message_type is None:
            continue
        entry = field.message_type.fields_by_name["value"] if field.message_type.GetOptions().map_entry else None
        if entry is None or entry.message_type is not None:
            for one in (value.values() if entry is not None else value) if several else (value,):
                _count(one, depth + 1, left)


def _files(schema: Schema) -> list[Any]:
    """The schema's file as FileDescriptorProto, behind those that it imports."""
    text = schema.text.encode() if isinstance(schema.text, str) else schema.text
    if len(text) > MAX_SCHEMA_BYTES:
        raise Unusable(f"schema {schema.name} has more than {MAX_SCHEMA_BYTES} bytes")
    if isinstance(schema.text, str) and _TEXT.search(schema.text):
        others = {name: _text_of(one) for name, one in with_references(schema)}
        return _from_set(schema.name, compiled(schema, others))
    return _serialized(schema, text)


def _serialized(schema: Schema, data: bytes) -> list[Any]:
    """Of a set with all files in it, or of one file, whose imports are the schema's references."""
    from google.protobuf import descriptor_pb2, message

    if isinstance(schema.text, str):
        try:
            data = base64.b64decode(data, validate=True)
        except binascii.Error:
            raise Unusable(f"schema {schema.name} is neither a .proto file nor a descriptor") from None
    try:
        file = descriptor_pb2.FileDescriptorProto.FromString(data)
    except message.DecodeError:
        file = None
    if file is None or not (file.message_type or file.enum_type):
        return _from_set(schema.name, data)
    found = [one for _, other in with_references(schema) for one in _files(other)]
    found += [one for path in file.dependency for one in _well_known(path)]
    return [*found, file]


def _from_set(name: str, data: bytes) -> list[Any]:
    from google.protobuf import descriptor_pb2, message

    try:
        found = list(descriptor_pb2.FileDescriptorSet.FromString(data).file)
    except message.DecodeError as error:
        raise Unusable(f"schema {name} is no descriptor: {_line(error)}") from None
    if not found:
        raise Unusable(f"schema {name} is an empty descriptor")
    return found


def _well_known(path: str) -> list[Any]:
    """The file of a type that comes with Protobuf, like google/protobuf/timestamp.proto."""
    from google.protobuf import descriptor_pb2, descriptor_pool

    if not path.startswith("google/protobuf/"):
        return []
    name = path.removesuffix(".proto").removeprefix("google/protobuf/")
    if not re.fullmatch(r"[a-z_]+", name):
        return []
    try:
        from importlib import import_module

        import_module(f"google.protobuf.{name}_pb2")
    except ImportError:
        return []
    file = descriptor_pb2.FileDescriptorProto()
    descriptor_pool.Default().FindFileByName(path).CopyToProto(file)
    return [*(one for other in file.dependency for one in _well_known(other)), file]


def _text_of(schema: Schema) -> str:
    if not isinstance(schema.text, str):
        raise Unusable(f"schema {schema.name} is a descriptor and is imported by a .proto file; give both as one form")
    return schema.text


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())[:200]
