"""Avro: what fastavro wrote is read again, and hostile bytes and schemas are refused within bounds."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import pytest

fastavro = pytest.importorskip("fastavro")

from kwiresniff.plugins.answers import TooMuch  # noqa: E402
from kwiresniff_values import avro  # noqa: E402
from kwiresniff_values.limits import (  # noqa: E402
    MAX_DECIMAL_BYTES,
    MAX_DEPTH,
    MAX_REFERENCES,
    MAX_SCHEMA_BYTES,
    MAX_SCHEMA_DEPTH,
    MAX_VALUES,
)
from kwiresniff_values.problems import Misfit, Unusable  # noqa: E402
from kwiresniff_values.schemas import Schema  # noqa: E402
from tests.values.schemas import ALL, DECIMAL, schema  # noqa: E402

NODE = {"type": "record", "name": "Node", "fields": [{"name": "next", "type": ["null", "Node"]}]}
VALUE = {
    "b": True,
    "f": 0.5,
    "d": -1e300,
    "s": 7,
    "e": "B",
    "x": b"\x00\xff",
    "m": {"k": [1, -2], "l": []},
    "again": "A",
}


def written(definition: Any, value: Any) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(definition), value)
    return stream.getvalue()


def reads(definition: Any, data: bytes) -> Any:
    return avro.reader(schema("AVRO", definition))(data)


def test_every_type_is_read_as_it_was_written() -> None:
    """By fastavro's own writer; logical types become texts."""
    from datetime import time
    from uuid import UUID

    value = {**VALUE, "t": time(1, 2, 3), "u": UUID(int=5), "n": Decimal("-12.50")}
    said = {**VALUE, "t": "01:02:03", "u": "00000000-0000-0000-0000-000000000005", "n": "-12.50"}
    assert reads(ALL, written(ALL, value)) == said


def test_a_value_cut_anywhere_does_not_fit() -> None:
    """Nor does one with a byte too many."""
    from datetime import time
    from uuid import UUID

    data = written(ALL, {**VALUE, "t": time(1), "u": UUID(int=5), "n": Decimal("1.00")})
    read = avro.reader(schema("AVRO", ALL))
    for end in range(len(data)):
        with pytest.raises(Misfit):
            read(data[:end])
    with pytest.raises(Misfit, match="1 bytes are left over"):
        read(data + b"\0")


@pytest.mark.parametrize(
    ("definition", "data", "why"),
    [
        (["null", "int"], b"\4", "branch 2 of a union of 2"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\2", "symbol 1 of 1"),
        ("string", b"\1", "a length of -1 bytes"),
        ("string", b"\2\xff", "UnicodeDecodeError"),
        ("long", b"\xff" * 11, "a number of more than 10 bytes"),
        ({"type": "array", "items": "int"}, b"\1\1\0", "a block of a negative size"),
        ({"type": "int", "logicalType": "date"}, b"\xff\xff\xff\xff\x0f", "ValueError"),
    ],
)
def test_bytes_that_no_writer_makes_do_not_fit(definition: Any, data: bytes, why: str) -> None:
    """The reason names the place."""
    with pytest.raises(Misfit, match=why):
        reads(definition, data)


def test_a_schema_that_contains_itself_is_followed_within_the_bounds() -> None:
    """And no deeper, however long the bytes are."""
    value: Any = {"next": None}
    for _ in range(MAX_DEPTH - 2):
        value = {"next": value}
    assert reads(NODE, written(NODE, value)) == value
    with pytest.raises(TooMuch, match=f"{MAX_DEPTH} levels"):
        reads(NODE, b"\2" * 1_000_000)
    empty = {"type": "record", "name": "A", "fields": [{"name": "a", "type": "A"}]}
    with pytest.raises(TooMuch, match=f"{MAX_DEPTH} levels"):
        reads(empty, b"")


def test_an_array_of_nothing_is_counted() -> None:
    """A billion nulls take five bytes."""
    nulls = {"type": "array", "items": "null"}
    assert reads(nulls, b"\6\0") == [None, None, None]
    with pytest.raises(TooMuch, match=f"{MAX_VALUES} values"):
        reads(nulls, b"\xfe\xff\xff\xff\x0f\0")


def test_a_decimal_has_a_bound() -> None:
    """Of bytes."""
    assert reads(DECIMAL, b"\4\1\0") == "2.56"
    with pytest.raises(TooMuch, match="decimal of 1025 bytes"):
        reads(DECIMAL, b"\x82\x10" + b"\1" * (MAX_DECIMAL_BYTES + 1))


def test_types_of_other_schemas_are_found_by_name() -> None:
    """Whether the schema says that it refers to them or not."""
    other = schema("AVRO", {"type": "record", "name": "shop.C", "fields": [{"name": "n", "type": "int"}]})
    text = {"type": "record", "name": "O", "fields": [{"name": "c", "type": "shop.C"}]}
    told = schema("AVRO", text, {"shop.C": other})
    assert avro.reader(told)(b"\2") == {"c": {"n": 1}}
    untold = Schema(told.name, told.kind, told.text, (), told.referred)
    assert avro.reader(untold)(b"\2") == {"c": {"n": 1}}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "no JSON"),
        ("5", "no Avro schema"),
        ('{"type": "record"}', "no Avro schema"),
        ('{"type": "array", "items": "B"}', "no source has the type B"),
        (
            '{"type": "array", "items": {"type": "!ong", "logicalType": "date"}}',
            "no source has the type {'type': '!ong'",
        ),
        ("[" * 100_000, "no JSON"),
        (" " * (MAX_SCHEMA_BYTES + 1), f"more than {MAX_SCHEMA_BYTES} bytes"),
        ('{"a":' * (MAX_SCHEMA_DEPTH + 1) + "1" + "}" * (MAX_SCHEMA_DEPTH + 1), f"deeper than {MAX_SCHEMA_DEPTH}"),
    ],
)
def test_a_schema_that_is_none_is_unusable(text: str, why: str) -> None:
    """Within the bounds of schemas."""
    with pytest.raises(Unusable, match=why):
        avro.reader(schema("AVRO", text))


def test_references_in_a_circle_or_without_end_are_unusable() -> None:
    """Each needs one more."""

    def another(name: str) -> Schema:
        number = int(name.removeprefix("n"))
        return Schema(name, "AVRO", '"int"', (f"n{number + 1}",), another)

    with pytest.raises(Unusable, match=f"more than {MAX_REFERENCES}"):
        avro.reader(another("n0"))
    text = '{"type": "array", "items": "Z"}'
    circle = Schema("s", "AVRO", text, (), lambda name: circle)
    with pytest.raises(Unusable, match="no source has the type Z"):
        avro.reader(circle)
