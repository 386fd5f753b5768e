"""Kafka's own messages: instances of its generated classes, as its bytes and as its JSON.

``data/vectors.jsonl.xz`` has one line for every message at every version. The Java program in ``generator/`` makes it,
started by ``python -m tests.oracle.generator``.

The JSON is what Kafka's ``*JsonConverter`` classes give. They leave out three things, which the program completes from
the same Java objects: tagged fields that hold their default, which are not on the wire either and which our decoder
fills in; tagged fields that the class does not know; and the bytes of records.
"""

from __future__ import annotations

import base64
import json
import lzma
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, NamedTuple

from kwiresniff import schema
from kwiresniff.schema.apis import data_index
from kwiresniff.schema.definition import Field
from kwiresniff.schema.registry import definitions
from kwiresniff.schema.types import MessageVersion, WireField
from tests.support.paths import TESTS

VECTORS = TESTS / "oracle" / "data" / "vectors.jsonl.xz"

UNKNOWN_TAGS = "_tagged_fields"


class Vector(NamedTuple):
    """One instance: ``document`` is the JSON with Kafka's names, ``raw`` the bytes of the same."""

    document: dict[str, Any]
    raw: bytes


class Entry(NamedTuple):
    """A message at a version, from the classes of ``release``; ``header_version`` is -1 for what has no header."""

    name: str
    kind: str
    api_key: int
    version: int
    header_version: int
    release: str
    vectors: tuple[Vector, ...]

    @property
    def title(self) -> str:
        return self.name if self.kind == "data" else f"{self.name} {self.kind}"

    @property
    def file(self) -> str:
        """The definition file that has the message."""
        if self.kind == "header":
            return "headers"
        return data_index().files[self.name] if self.kind == "data" else schema.API_NAMES[self.api_key]

    def message(self) -> MessageVersion:
        """Our definition of the message."""
        if self.kind == "header":
            return schema.header("request" if self.name == "request" else "response", self.version)
        if self.kind == "data":
            return schema.data_message(self.name, self.version)
        return schema.message(self.api_key, self.version, "request" if self.kind == "request" else "response")

    def body(self, document: dict[str, Any], records: Callable[[bytes], Any] = bytes) -> dict[str, Any]:
        """Kafka's JSON in our decoder's terms, with what ``records`` makes of the bytes of records.

        A field goes by any of the names it has had: the classes of an older release have that release's names.
        """
        drawn = next(
            found.fields
            for found in definitions(self.file)
            if found.kind == self.kind and (found.name == self.name or self.api_key >= 0)
        )
        return _Reader(records).structure(document, self.message().fields, drawn)


@cache
def entries() -> tuple[Entry, ...]:
    """Everything there is, but for messages that are no request or response and that our definitions do not have.

    Servers also keep files of their own, which are in no topic.
    """
    with lzma.open(VECTORS, "rt", encoding="utf-8") as lines:
        found = [_entry(json.loads(line)) for line in lines]
    return tuple(entry for entry in found if entry.kind != "data" or entry.name in data_index().files)


def _entry(line: dict[str, Any]) -> Entry:
    name, kind = line["message"], "data"
    if name in ("RequestHeaderData", "ResponseHeaderData"):
        name, kind = name.removesuffix("HeaderData").lower(), "header"
    elif "api_key" in line:
        name = name.removesuffix("Data")
        kind = "request" if name.endswith("Request") else "response"
        name = name.removesuffix(kind.capitalize())
    return Entry(
        name,
        kind,
        line.get("api_key", -1),
        line["version"],
        line.get("header_version", -1),
        line["release"],
        tuple(Vector(each["json"], base64.b64decode(each["bytes"])) for each in line["vectors"]),
    )


class _Reader(NamedTuple):
    records: Callable[[bytes], Any]

    def structure(self, node: dict[str, Any], fields: Iterable[WireField], drawn: Iterable[Field]) -> dict[str, Any]:
        """``drawn`` are the lines of the definition that ``fields`` are from; they know the older names."""
        given = {_fold(name): value for name, value in node.items() if name != UNKNOWN_TAGS}
        body: dict[str, Any] = {}
        for field in fields:
            lines = [line for line in drawn if line.name == field.name]
            names = [_fold(name) for name in (field.name, *(alias for line in lines for alias in line.aliases))]
            name = next((name for name in names if name in given), None)
            assert name is not None, f"Kafka has no {field.name}, it has {sorted(given)}"
            inner = [child for line in lines for child in line.fields]
            body[field.name] = self.value(given.pop(name), field, inner)
        assert not given, f"Kafka also has {sorted(given)}"
        if UNKNOWN_TAGS in node:
            body[UNKNOWN_TAGS] = {int(tag): base64.b64decode(raw) for tag, raw in node[UNKNOWN_TAGS].items()}
        return body

    def value(self, value: Any, field: WireField, drawn: list[Field]) -> Any:
        if value is None:
            return None
        if isinstance(value, list):
            return [self.value(entry, field, drawn) for entry in value]
        if field.type == "STRUCT":
            return self.structure(value, field.fields, drawn)
        if field.type.endswith("RECORDS"):
            return self.records(base64.b64decode(value))
        return base64.b64decode(value) if field.type.endswith("BYTES") else value


def _fold(name: str) -> str:
    """Kafka's ``topicId`` and our ``topic_id`` are one name."""
    return name.replace("_", "").lower()
