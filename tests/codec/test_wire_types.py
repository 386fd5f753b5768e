"""The table of wire types: what it says of each, and that everything is made from it."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.schema.wire_types import FIXED, INTEGER_RANGES, WIRE_TYPES
from tests.support import made_up_types
from tests.support.encoding.primitives import uuid_bytes

VALUE = made_up_types.VALUE
BODY = {"one": VALUE, "many": [VALUE, VALUE], "late": 7}


@cache
def made_up() -> dict[str, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, made_up_types.__file__], capture_output=True, text=True, check=True, cwd=made_up_types.ROOT
    )
    found: dict[str, dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("reader", "expected"),
    [
        ("printed again", True),
        ("from Kafka's definitions", 16),
        ("grammar", ["  one => UINT64", "  many => UINT64"]),
        ("decoder", [BODY, 26]),
        ("dissector", BODY),
        ("scanner", "refused: UINT64 is not read by a plan"),
        ("skipper", True),
        ("text", "refused: UINT64 is not written as text"),
    ],
)
def test_a_whole_number_that_is_added_to_the_table_is_read_everywhere_or_refused_by_name(
    reader: str, expected: Any
) -> None:
    """One more row in one file, as a release with UINT64 would need; what is compiled leaves it to the others."""
    assert made_up()["uint64"][reader] == expected


@pytest.mark.parametrize("reader", ["decoder", "dissector"])
def test_a_type_that_nothing_reads_is_refused_by_name(reader: str) -> None:
    assert made_up()["decimal"][reader] == "refused: DECIMAL cannot be read: there is no decimal_value"


def test_nobody_leaves_out_a_reader() -> None:
    """Both made-up types are put to the same ones."""
    assert made_up()["decimal"].keys() == made_up()["uint64"].keys()


def test_sizes_and_ranges_are_those_of_the_protocol_guide() -> None:
    """Section "Protocol Primitive Types", by hand."""
    sizes = {"BOOLEAN": 1, "INT8": 1, "INT16": 2, "UINT16": 2, "INT32": 4, "UINT32": 4, "INT64": 8, "FLOAT64": 8}
    assert {name: fixed.size for name, fixed in FIXED.items()} == {**sizes, "UUID": 16}
    assert INTEGER_RANGES["INT16"] == (-32768, 32767)
    assert INTEGER_RANGES["UINT32"] == (0, 4294967295)
    assert INTEGER_RANGES["INT64"] == (-9223372036854775808, 9223372036854775807)
    assert INTEGER_RANGES.keys() == {name for name in sizes if "INT" in name}


def test_the_code_of_a_type_has_its_size() -> None:
    for wire_type in WIRE_TYPES:
        assert struct.calcsize(f">{wire_type.layout.code}") == wire_type.layout.size


def test_no_id_is_the_uuid_of_zeros() -> None:
    assert uuid_bytes(ZERO_UUID) == bytes(16)
