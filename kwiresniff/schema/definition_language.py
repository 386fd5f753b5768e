"""The language of the definition files: one field a line, indentation is nesting, order is wire order.

A file holds blocks; a block starts at the margin and its fields are indented by two spaces per level. ``#`` starts
a comment line.

    api 3 Metadata                        an API's key and name; its request and response follow
    was TopicMetadata                     names it had in older releases
    listeners broker                      which listeners of a broker offer it
    request 0-13 flexible 9+              the message's versions, and those that are flexible
      topics []struct null 1+             an array of structures, which may itself be null from version 1 on
        topic_id uuid 10+                 a field of that structure, from version 10 on
        name string null 10+ entity topicName
      allow_auto_topic_creation bool 4+ = true
    response 0-13 flexible 9+
      ...

    header request 0-2 flexible 2+        a header
    data EndTxnMarker 0                   something carried inside a message or stored in a log
    data TopicRecord 0 flexible 0+ record metadata 2    a record of an internal topic: its role and type number

A field line is ``NAME TYPE`` and then, in this order and each only when it says something:

    VERSIONS           the versions that have the field; without it, all that its structure has
    null [VERSIONS]    the value, or the array, may be null
    tag N              it is tagged field N (KIP-482)
    = DEFAULT          a JSON value without blanks; without it, zero, empty, false
    flexible VERSIONS  its length is an UNSIGNED_VARINT in these versions, whatever the message's own say
    entity ENTITY      what its values identify, in Kafka's words: topicName, groupId, brokerId, ...
    key                it identifies an element of the array it stands in
    was NAME[,NAME]    what older releases called it

TYPE is ``struct`` or one that ``wire_types.py`` has, such as ``int32``, ``uuid`` and ``string``, led by ``[]`` for an
array. VERSIONS is ``4``, ``1-3``, ``2+`` (up to the message's newest) or ``none``. A name may stand on several lines
of a structure with different versions: the field was moved or changed its type.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition import MAX_VERSION, NO_VERSIONS, ROLES, TYPES, Field, Message, Record, Versions

#: Kafka's deepest definition nests 6 levels; a file that nests more than this is not one of ours.
MAX_DEPTH = 16

INDENT = "  "

_CONSTANTS = {"null": None, "true": True, "false": False, '""': ""}


def parse(text: str, source: str = "definition", kind: str = "") -> tuple[Message, ...]:
    """The messages a definition file holds; raises SchemaError naming ``source`` and the line that is wrong.

    ``kind`` is ``request`` or ``response`` for that one alone, without a look at the other.
    """
    return tuple(_Parser(text, source, kind).messages())


def parse_versions(text: str, top: int = MAX_VERSION) -> Versions:
    """``4``, ``1-3``, ``2+`` or ``none`` as a range, ``+`` reaching to ``top``; raises ValueError for anything else."""
    if text == "none":
        return NO_VERSIONS
    low, dash, high = text.partition("-")
    if dash:
        return Versions(int(low), int(high))
    if text.endswith("+"):
        return Versions(int(text[:-1]), top)
    return Versions(int(text), int(text))


def _default(text: str) -> Any:
    """A JSON value. All but a few are constants and whole numbers, for which nobody needs to import ``json``."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    digits = text.removeprefix("-")
    if digits.isascii() and digits.isdecimal() and (digits[0] != "0" or digits == "0"):
        return int(text)
    import json

    return json.loads(text)


class _Parser:
    """Reads the lines of one file from top to bottom; ``_at`` is the next line."""

    def __init__(self, text: str, source: str, kind: str) -> None:
        self._source = source
        self._lines: list[tuple[int, int, list[str]]] = []  # number, depth, words
        self._at = 0
        other = {"request": "response ", "response": "request "}.get(kind)
        passed = False  # whether this is a line of the other one
        for number, line in enumerate(text.splitlines(), 1):
            if other and line and line[0] not in " #":
                passed = line.startswith(other)
            if passed:
                continue
            words = line.split()
            if words and not words[0].startswith("#"):
                depth = (len(line) - len(line.lstrip(" "))) // len(INDENT)
                self._lines.append((number, depth, words))

    def messages(self) -> Iterator[Message]:
        name, key = "", -1
        listeners: tuple[str, ...] = ()
        aliases: tuple[str, ...] = ()
        while self._at < len(self._lines):
            number, depth, words = self._lines[self._at]
            self._at += 1
            try:
                if depth:
                    raise ValueError("a field outside of any message")
                match words:
                    case ["api", key_text, name]:
                        key, listeners, aliases = int(key_text), (), ()
                    case ["was", *names] if name:
                        aliases = tuple(names)
                    case ["listeners", *names]:
                        listeners = tuple(names)
                    case ["request", *rest] if name:
                        yield self._message(name, "request", rest, key, listeners, aliases)
                    case ["response", *rest] if name:
                        yield self._message(name, "response", rest, key)
                    case [("header" | "data") as kind, own_name, *rest]:
                        yield self._message(own_name, kind, rest)
                    case _:
                        raise ValueError("expected api, was, listeners, request, response, header or data")
            except (ValueError, IndexError) as error:
                raise self._wrong(number, words, error) from error

    def _message(
        self,
        name: str,
        kind: str,
        words: list[str],
        key: int = -1,
        listeners: tuple[str, ...] = (),
        aliases: tuple[str, ...] = (),
    ) -> Message:
        versions = parse_versions(words[0])
        flexible, record = NO_VERSIONS, None
        rest = words[1:]
        if rest[:1] == ["flexible"]:
            flexible, rest = parse_versions(rest[1], versions.high), rest[2:]
        if rest[:1] == ["record"] and kind == "data" and rest[1] in ROLES:
            record, rest = Record(rest[1], int(rest[2])), rest[3:]
        if rest:
            raise ValueError("expected VERSIONS [flexible VERSIONS] [record ROLE NUMBER]")
        fields = self._fields(1, versions, versions.high)
        return Message(name, kind, versions, flexible, fields, key, listeners, aliases, record)

    def _fields(self, depth: int, parent: Versions, top: int) -> tuple[Field, ...]:
        fields = []
        lines = self._lines
        while self._at < len(lines) and lines[self._at][1] >= depth:
            number, found, words = lines[self._at]
            self._at += 1
            try:
                if found > depth or depth > MAX_DEPTH:
                    raise ValueError("indented too far")
                fields.append(self._field(words, depth, parent, top))
            except (ValueError, IndexError) as error:
                raise self._wrong(number, words, error) from error
        return tuple(fields)

    def _field(self, words: list[str], depth: int, parent: Versions, top: int) -> Field:
        name, type_name = words[0], words[1]
        array = type_name.startswith("[]")
        if array:
            type_name = type_name[2:]
        if type_name not in TYPES:
            raise ValueError(f"unknown type {type_name}")
        at = 2
        versions = parent
        if at < len(words) and words[at][0].isdigit():
            versions = parse_versions(words[at], top)
            at += 1
        attributes = self._attributes(words, at, versions, top)
        fields = self._fields(depth + 1, versions, top) if type_name == "struct" else ()
        return Field(name, type_name, versions, array, fields=fields, **attributes)

    def _attributes(self, words: list[str], at: int, versions: Versions, top: int) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while at < len(words):
            word = words[at]
            at += 1
            if word == "null":
                found["nullable"] = versions
                if at < len(words) and words[at][0].isdigit():
                    found["nullable"] = parse_versions(words[at], top)
                    at += 1
                continue
            if word == "key":
                found["map_key"] = True
                continue
            value = words[at]
            at += 1
            match word:
                case "tag":
                    found["tag"], found["tagged"] = int(value), versions
                case "=":
                    found["default"], found["explicit_default"] = _default(value), True
                case "flexible":
                    found["flexible"] = parse_versions(value, top)
                case "entity":
                    found["entity"] = value
                case "was":
                    found["aliases"] = tuple(value.split(","))
                case _:
                    raise ValueError(f"unknown attribute {word}")
        return found

    def _wrong(self, number: int, words: list[str], error: Exception) -> SchemaError:
        if isinstance(error, IndexError):
            error = ValueError("the line ends too early")
        return SchemaError(f"{self._source}:{number}: {error}, in: {' '.join(words)}")


def print_messages(messages: tuple[Message, ...]) -> str:
    """The text ``parse`` reads as ``messages``; a request and a response of one API share their ``api`` line."""
    lines: list[str] = []
    api = ""
    for message in messages:
        if message.api_key >= 0:
            if message.name != api:
                lines.append(f"api {message.api_key} {message.name}")
                if message.aliases:
                    lines.append(f"was {' '.join(message.aliases)}")
                if message.listeners:
                    lines.append(f"listeners {' '.join(message.listeners)}")
                api = message.name
            head = message.kind
        else:
            head = f"{message.kind} {message.name}"
        if lines:
            lines.append("")
        head += f" {_range(message.versions, -1)}"
        if message.flexible:
            head += f" flexible {_range(message.flexible, message.versions.high)}"
        if message.record:
            head += f" record {message.record.role} {message.record.number}"
        lines.append(head)
        lines.extend(_field_lines(message.fields, message.versions, message.versions.high, 1))
    return "\n".join(lines) + "\n"


def _field_lines(fields: tuple[Field, ...], parent: Versions, top: int, depth: int) -> Iterator[str]:
    for field in fields:
        words = [field.name, ("[]" if field.array else "") + field.type]
        if field.versions != parent:
            words.append(_range(field.versions, top))
        if field.nullable:
            words.append("null")
            if field.nullable != field.versions:
                words.append(_range(field.nullable, top))
        if field.tag is not None:
            words += ["tag", str(field.tag)]
        if field.explicit_default:
            import json

            words += ["=", json.dumps(field.default).replace(" ", "\\u0020")]
        if field.flexible is not None:
            words += ["flexible", _range(field.flexible, top)]
        if field.entity:
            words += ["entity", field.entity]
        if field.map_key:
            words.append("key")
        if field.aliases:
            words += ["was", ",".join(field.aliases)]
        yield INDENT * depth + " ".join(words)
        yield from _field_lines(field.fields, field.versions, top, depth + 1)


def _range(versions: Versions, top: int) -> str:
    low, high = versions
    if not versions:
        return "none"
    if high >= top >= 0:
        return f"{low}+"
    return str(low) if low == high else f"{low}-{high}"
