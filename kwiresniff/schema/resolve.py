"""From a definition to what the codec reads and writes: one message at one version, wire types decided."""

from __future__ import annotations

from kwiresniff.schema.definition import FieldAtVersion, Message
from kwiresniff.schema.enums import enum_of
from kwiresniff.schema.headers import header_version
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import guide_name


def resolve(message: Message, version: int) -> MessageVersion:
    """``message`` at ``version``; raises SchemaError when it does not have that version."""
    shapes = message.at(version)
    flexible = version in message.flexible
    owner = f"{message.name}.{message.kind}" if message.kind != "data" else message.name
    return MessageVersion(
        name=message.name,
        api_key=message.api_key,
        kind=message.kind,
        version=version,
        flexible=flexible,
        header_version=header_version(message.kind, message.api_key, version, flexible),
        fields=tuple(_wire_field(shape, owner) for shape in shapes),
    )


def _wire_field(shape: FieldAtVersion, owner: str) -> WireField:
    return WireField(
        shape.name,
        wire_type(shape),
        shape.array,
        shape.nullable,
        shape.tag,
        shape.default,
        tuple([_wire_field(field, owner) for field in shape.fields]),
        shape.entity,
        enum_of(owner, shape.name, shape.type),
    )


def wire_type(shape: FieldAtVersion) -> str:
    """The protocol guide's name for the type of the value, or of the elements when it is an array."""
    return guide_name(shape.type, nullable=shape.nullable and not shape.array, compact=shape.compact)
