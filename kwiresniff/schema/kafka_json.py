"""Kafka's own message definitions: JSON with comments as Java has them, one file a message.

They lie in the jars and in the source tree. Only facts are taken: names, order, types, versions. Kafka has its own
code generator read these files, and the README beside them says how; names become snake_case exactly as the protocol
guide prints them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, TypeVar

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition import NO_VERSIONS, ROLES, TYPES, Field, Message, Record, Versions
from kwiresniff.schema.definition_language import parse_versions
from kwiresniff.schema.wire_types import BY_DEFINITION

#: Kafka's deepest definition nests 6 levels; structures that refer to each other in a circle would never end.
MAX_DEPTH = 16
#: Fetch has 19 versions after 14 years; each costs a copy of the message's fields.
MAX_VERSIONS = 256

Made = TypeVar("Made")

_COMMENT = re.compile(r'("(?:[^"\\\n]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_SUFFIXES = {"request": "Request", "response": "Response", "header": "Header"}
_DATA = ROLES | {"data"}


def read_definition(text: str, source: str) -> Message:
    """A message from its JSON definition, without ``versions`` if only its key is kept. Raises SchemaError."""
    return _read(text, source, _message)


def read_offered(text: str, source: str) -> tuple[int, Versions] | None:
    """API key and released versions that brokers offer; None for none. Raises SchemaError with ``source``."""
    return _read(text, source, _offered)


def _read(text: str, source: str, make: Callable[[dict[str, Any]], Made]) -> Made:
    try:
        # What follows the document is not read, as Kafka does not: one release has a brace too many.
        document, _ = json.JSONDecoder().raw_decode(_COMMENT.sub(lambda found: found[1] or "", text).lstrip())
        return make(document)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise SchemaError(f"{source}: not a Kafka message definition: {reason}") from error


def _offered(document: dict[str, Any]) -> tuple[int, Versions] | None:
    if document["type"] != "request":
        return None
    low, high = parse_versions(document["validVersions"])
    found = Versions(low, high - 1 if document.get("latestVersionUnstable") else high)
    return (int(document["apiKey"]), found) if found else None


def snake_case(name: str) -> str:
    """``throttle_time_ms`` of ``ThrottleTimeMs``: an underscore before each capital that follows none."""
    return re.sub(r"(?<=[^A-Z])([A-Z])", r"_\1", name).lower()


def _message(document: dict[str, Any]) -> Message:
    kind = document["type"]
    name = document["name"]
    record = None
    if kind in _SUFFIXES:
        name = name.removesuffix(_SUFFIXES[kind])
    elif kind in _DATA:
        record = Record(kind, int(document["apiKey"])) if kind in ROLES else None
        kind = "data"
    else:
        raise ValueError(f"unknown type {kind}")
    if kind == "header":
        name = name.lower()
    versions = parse_versions(document["validVersions"])
    if versions.high - versions.low >= MAX_VERSIONS:
        raise ValueError(f"more than {MAX_VERSIONS} versions")
    if kind == "data" and record is None and name.endswith("Key"):
        # Until 4.1 the type number of a coordinator's record was called the version of its key.
        record = Record("coordinator-key", versions.high)
        versions = Versions(versions.high, versions.high)
    flexible = parse_versions(document.get("flexibleVersions", "none")).within(versions) if versions else NO_VERSIONS
    structs = {struct["name"]: struct for struct in document.get("commonStructs", ())}
    fields = _fields(document["fields"], versions, structs, 1) if versions else ()
    if record is not None and versions.low == record.number > 0:
        versions = Versions(0, 0)
        fields = tuple(field._replace(versions=versions) for field in fields)
    api_key = document.get("apiKey", -1) if kind in ("request", "response") else -1
    listeners = tuple(document.get("listeners", ()))
    return Message(name, kind, versions, flexible or NO_VERSIONS, fields, api_key, listeners, record=record)


def _fields(
    documents: list[dict[str, Any]], parent: Versions, structs: dict[str, Any], depth: int
) -> tuple[Field, ...]:
    if depth > MAX_DEPTH:
        raise ValueError(f"structures nested more than {MAX_DEPTH} deep")
    found = []
    for document in documents:
        field = _field(document, parent, structs, depth)
        if field.versions:
            found.append(field)
    return tuple(found)


def _field(document: dict[str, Any], parent: Versions, structs: dict[str, Any], depth: int) -> Field:
    type_name: str = document["type"]
    array = type_name.startswith("[]")
    if array:
        type_name = type_name[2:]
    versions = parse_versions(document.get("versions") or document.get("taggedVersions", "0+")).within(parent)
    children: tuple[Field, ...] = ()
    if type_name not in TYPES:
        inner = document.get("fields")
        if inner is None:
            struct = structs[type_name]
            inner = struct["fields"]
            parent_of_inner = parse_versions(struct.get("versions", "0+")).within(versions)
        else:
            parent_of_inner = versions
        children = _fields(inner, parent_of_inner, structs, depth + 1)
        type_name = "struct"
    field = Field(
        name=snake_case(document["name"]),
        type=type_name,
        versions=versions,
        array=array,
        nullable=_within(document.get("nullableVersions"), versions),
        entity=document.get("entityType", ""),
        map_key=document.get("mapKey", False),
        fields=children,
    )
    if "tag" in document:
        field = field._replace(tag=int(document["tag"]), tagged=_within(document["taggedVersions"], versions))
    # Kafka's generator takes "null" for a default of null, and a bare null for no default at all.
    if document.get("default") is not None:
        field = field._replace(default=_default(document["default"], field), explicit_default=True)
    if "flexibleVersions" in document:
        if array or type_name not in BY_DEFINITION or BY_DEFINITION[type_name].is_fixed:
            raise ValueError(f"flexibleVersions of its own on {document['name']}, which is not a string or bytes")
        field = field._replace(flexible=_within(document["flexibleVersions"], versions))
    return field


def _within(text: str | None, versions: Versions) -> Versions:
    found = parse_versions(text).within(versions) if text else NO_VERSIONS
    return found or NO_VERSIONS


def _default(value: Any, field: Field) -> Any:
    """A default in JSON form: Kafka writes most of them as text, whatever the type."""
    if value == "null":
        return None
    if field.array:
        return []
    json_type = BY_DEFINITION[field.type].json if field.type in BY_DEFINITION else ""
    if json_type == "integer":
        return int(value, 0) if isinstance(value, str) else int(value)
    if json_type == "boolean":
        return value if isinstance(value, bool) else value == "true"
    if json_type == "number":
        return float(value)
    return value
