"""Rows become arrays; what pyarrow makes of the values of a column tells what its array should hold."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

from kwiresniff.export.row_buffer import RowBuffer

pyarrow = pytest.importorskip("pyarrow")

PAIR = pyarrow.struct([("name", pyarrow.string()), ("count", pyarrow.int64())])
DAY = datetime.date(2026, 1, 2)
MOMENT = datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=datetime.UTC)
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def array_of(values: list[Any], kind: Any) -> Any:
    buffer = RowBuffer()
    for value in values:
        buffer.add((0, value))
    (_, found) = buffer.arrays(pyarrow.schema([("at", pyarrow.int64()), ("value", kind)]))
    found.validate(full=True)
    return found


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, -(2**63), 2**63 - 1], pyarrow.int64()),
        ([None, -(2**15), 7], pyarrow.int16()),
        ([True, False, None] * 7, pyarrow.bool_()),
        ([], pyarrow.bool_()),
        (["", None, "t\u00f6pic", "\U0001f600"], pyarrow.string()),
        ([b"", None, b"\xff\x00"], pyarrow.binary()),
        ([["a", None], [], None, ["b"]], pyarrow.list_(pyarrow.string())),
        ([[("a", 1)], [], None], pyarrow.list_(PAIR)),
    ],
    ids=str,
)
def test_an_array_is_the_one_that_pyarrow_makes(values: list[Any], kind: Any) -> None:
    """Value for value, of every type that the tables have."""
    assert array_of(values, kind).equals(pyarrow.array(values, kind))


def test_days_and_moments_are_counted_from_1970() -> None:
    """In the unit of their type."""
    days = (DAY - EPOCH.date()).days
    micros = (MOMENT - EPOCH) // datetime.timedelta(microseconds=1)
    assert array_of([days, None], pyarrow.date32()).to_pylist() == [DAY, None]
    assert array_of([micros, -1], pyarrow.timestamp("us", tz="UTC")).to_pylist() == [
        MOMENT, EPOCH - datetime.timedelta(microseconds=1),
    ]  # fmt: skip


def test_text_may_come_as_utf_8() -> None:
    """Bodies do, which would be decoded for nothing."""
    assert array_of([b"{}", None, '{"ß":1}'.encode()], pyarrow.string()).to_pylist() == ["{}", None, '{"ß":1}']


def test_what_a_column_cannot_hold_does_not_lose_the_rest() -> None:
    """A capture may claim any time, and the name of a file may be any bytes."""
    assert array_of([1 << 64, 1, -(1 << 63) - 1], pyarrow.int64()).to_pylist() == [None, 1, None]
    assert array_of(["a\udcff", "b"], pyarrow.string()).to_pylist() == ["a\\udcff", "b"]
    assert array_of([["a\udcff"], None], pyarrow.list_(pyarrow.string())).to_pylist() == [["a\\udcff"], None]
    assert array_of([[("\udcff", 1 << 64)]], pyarrow.list_(PAIR)).to_pylist() == [[{"name": "\\udcff", "count": None}]]


@pytest.mark.parametrize("value", ["x" * 1000, b"x" * 1000, ["x" * 100] * 10, [("x" * 100, 1)] * 10, [1] * 100])
def test_what_a_row_takes_is_estimated(value: Any) -> None:
    """Not less than its bytes, and less than thrice as much."""
    buffer = RowBuffer()
    size = buffer.add((value, None))
    assert 1000 <= size < 3000
    assert (buffer.rows, buffer.held_bytes) == (1, size)
