"""Meanings of numbers: enumerations, bit fields and special values, and which fields hold them.

``data/enums.txt`` holds both. A block ``enum NAME`` or ``bits NAME`` is followed by indented lines ``VALUE MEANING``
(for bits, VALUE is the bit's number). A block ``fields`` is followed by lines ``ENUM MESSAGE.FIELD...``, where MESSAGE
is ``Fetch.request``, ``Fetch.response``, ``Fetch`` for both, a data message's name, or ``*`` for all. Every INT16 whose
name ends in ``error_code`` belongs to the enumeration ``error_code``, whose values are Kafka's error names. ``api_key``
is an enumeration too, of the names of the APIs.

Values come from Kafka's own classes; the source of each enumeration is said in the file.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import API_NAMES, read_data
from kwiresniff.schema.errorcodes import error, error_codes

FILE = "enums.txt"
FIELDS = "fields"

ERROR_CODE = "error_code"
API_KEY = "api_key"


class _Tables:
    """The meanings by enumeration, and the names of bit fields."""

    def __init__(self, text: str) -> None:
        self.meanings: dict[str, dict[int, str]] = {API_KEY: API_NAMES}
        self.bits: set[str] = set()
        for kind, name, lines in _blocks(text):
            if kind == FIELDS:
                continue
            words = map(str.split, lines)
            self.meanings[name] = {int(value): " ".join(meaning) for value, *meaning in words}
            if kind == "bits":
                self.bits.add(name)


def _blocks(text: str) -> Iterator[tuple[str, str, list[str]]]:
    """The first and the last word of each block, and its lines."""
    head: list[str] = []
    lines: list[str] = []
    for line in text.splitlines():
        if line.startswith(" "):
            lines.append(line)
        elif line and not line.startswith("#"):
            if head:
                yield head[0], head[-1], lines
            head, lines = line.split(), []
    if head:
        yield head[0], head[-1], lines


@lru_cache(maxsize=1)
def _tables() -> _Tables:
    return _Tables(read_data(FILE))


@lru_cache(maxsize=1)
def _fields() -> dict[tuple[str, str], str]:
    """Enumerations by message and field. They are read apart from the meanings, which only few ask for."""
    found: dict[tuple[str, str], str] = {}
    for kind, _, lines in _blocks(read_data(FILE)):
        for line in lines if kind == FIELDS else ():
            enum, *places = line.split()
            for place in places:
                owner, _, field = place.rpartition(".")
                found[owner, field] = enum
    return found


def enum_of(owner: str, field: str, type_name: str) -> str:
    """The enumeration of a field, or an empty text; ``owner`` is ``Fetch.request`` or a data message's name."""
    if type_name == "int16" and field.endswith(ERROR_CODE):
        return ERROR_CODE
    fields = _fields()
    return fields.get((owner, field)) or fields.get((owner.partition(".")[0], field)) or fields.get(("*", field)) or ""


def enum_value(enum: str, value: int) -> str:
    """The meaning of an enumeration's value, or an empty text; of a bit field, all bits, separated by commas."""
    if enum == ERROR_CODE:
        return error(value).name
    tables = _tables()
    meanings = tables.meanings.get(enum)
    if not meanings:
        return ""
    if enum in tables.bits and value >= 0:
        return ", ".join(meanings.get(bit, f"bit {bit}") for bit in range(value.bit_length()) if value >> bit & 1)
    return meanings.get(value, "")


def enum_names(enum: str) -> dict[int, str]:
    """The meanings of the values, or bits, of an enumeration. Raises SchemaError for an unknown one."""
    if enum == ERROR_CODE:
        return {known.code: known.name for known in error_codes()}
    meanings = _tables().meanings.get(enum)
    if meanings is None:
        raise SchemaError(f"no enumeration is named {enum!r}; known are {', '.join(enums())}")
    return dict(meanings)


def enums() -> tuple[str, ...]:
    """The names of all enumerations."""
    return (ERROR_CODE, *_tables().meanings)
