"""A message as the protocol guide prints it: a grammar, one line a structure, its parts below it.

    Metadata Response (Version: 1) => [brokers] controller_id [topics]
      brokers => node_id host port rack
        node_id => INT32
        ...

An array stands in brackets, ``TAG_BUFFER`` closes every structure of a flexible version and stands for all tagged
fields, known ones too. Source: the guide's section "Messages", which Kafka prints from its own schemas.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.schema.types import MessageVersion, WireField

INDENT = "  "
TAG_BUFFER = "TAG_BUFFER"


def grammar(message: MessageVersion) -> str:
    """The grammar of a message, without a line end after its last line."""
    parts = _parts(message.fields, message.flexible)
    return "\n".join([f"{_title(message)} => {parts}".rstrip(), *_lines(message.fields, message.flexible, 1)])


def _title(message: MessageVersion) -> str:
    if message.kind == "header":
        return f"{message.name.capitalize()} Header v{message.version}"
    kind = f" {message.kind.capitalize()}" if message.kind in ("request", "response") else ""
    return f"{message.name}{kind} (Version: {message.version})"


def _parts(fields: tuple[WireField, ...], flexible: bool) -> str:
    names = [f"[{field.name}]" if field.array else field.name for field in fields if field.tag is None]
    return " ".join([*names, TAG_BUFFER] if flexible else names)


def _lines(fields: tuple[WireField, ...], flexible: bool, depth: int) -> Iterator[str]:
    for field in fields:
        if field.tag is not None:
            continue
        if field.type == "STRUCT":
            yield f"{INDENT * depth}{field.name} => {_parts(field.fields, flexible)}".rstrip()
            yield from _lines(field.fields, flexible, depth + 1)
        else:
            yield f"{INDENT * depth}{field.name} => {field.type}"
