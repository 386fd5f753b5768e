"""Values of any type appended to columns; the arrays are held against those that pyarrow makes itself."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import pytest

from kwiresniff.export.nested_columns import column_of

pyarrow = pytest.importorskip("pyarrow")

UTC = datetime.UTC
MOMENTS = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
    datetime.datetime(9999, 12, 31, tzinfo=UTC),
]
PAIR = pyarrow.struct([("name", pyarrow.string()), ("count", pyarrow.int64())])


def arrow_array(values: list[Any], kind: Any) -> Any:
    column = column_of(pyarrow, kind)
    for value in values:
        column.append(value)
    return column.array(pyarrow, kind)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, -(2**63), 2**63 - 1], pyarrow.int64()),
        ([1, None, -(2**31)], pyarrow.int32()),
        ([None, -(2**15), 7], pyarrow.int16()),
        ([True, False, None] * 7, pyarrow.bool_()),
        ([True] * 8, pyarrow.bool_()),
        ([True] * 9, pyarrow.bool_()),
        ([False] * 9, pyarrow.bool_()),
        ([], pyarrow.bool_()),
        (["", None, "t\u00f6pic", "\U0001f600"], pyarrow.string()),
        ([b"", None, b"\xff\x00"], pyarrow.binary()),
        ([["a", None], [], None, ["b"]], pyarrow.list_(pyarrow.string())),
        ([], pyarrow.list_(PAIR)),
        ([None] * 9, pyarrow.int64()),
    ],
    ids=str,
)
def test_an_array_is_the_one_that_pyarrow_makes(values: list[Any], kind: Any) -> None:
    """Value for value, and sound by Arrow's own check."""
    found = arrow_array(values, kind)
    found.validate(full=True)
    assert found.equals(pyarrow.array(values, kind))
    assert found.null_count == sum(value is None for value in values)


def test_a_number_that_needs_more_than_64_bits_is_none() -> None:
    """A capture may claim any; what is added up of them may be beyond what columns hold."""
    assert arrow_array([2**63, -(2**63) - 1, 3], pyarrow.int64()).to_pylist() == [None, None, 3]


def test_days_and_moments_are_numbers() -> None:
    """Days and microseconds since 1970."""
    days = [(moment.date() - datetime.date(1970, 1, 1)).days for moment in MOMENTS]
    assert arrow_array([*days, None], pyarrow.date32()).to_pylist() == [*(one.date() for one in MOMENTS), None]
    micros = [(one - MOMENTS[0]) // datetime.timedelta(microseconds=1) - 1 for one in MOMENTS]
    assert arrow_array([*micros, None], pyarrow.timestamp("us", tz="UTC")).to_pylist() == [*MOMENTS, None]


def test_structures_are_told_by_the_order_of_their_fields() -> None:
    """With and without values in them, and inside of lists."""
    one, two = {"name": "a", "count": None}, {"name": None, "count": 3}
    found = arrow_array([("a", None), None, (None, 3)], PAIR)
    found.validate(full=True)
    assert found.equals(pyarrow.array([one, None, two], PAIR))
    found = arrow_array([[("a", None)] * 2, None, [], [(None, 3)]], pyarrow.list_(PAIR))
    found.validate(full=True)
    assert found.equals(pyarrow.array([[one] * 2, None, [], [two]], pyarrow.list_(PAIR)))


def test_names_that_repeat_are_kept_once() -> None:
    """A dictionary type says that they do."""
    kind = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
    found = arrow_array(["a", None, "b", "a"], kind)
    found.validate(full=True)
    assert found.dictionary.to_pylist() == ["a", "b"]
    assert found.to_pylist() == ["a", None, "b", "a"]


@pytest.mark.parametrize(
    ("kind", "values", "least"),
    [
        (pyarrow.string(), ["x" * 1000, None], 1000),
        (pyarrow.binary(), [b"x" * 1000], 1000),
        (pyarrow.list_(pyarrow.int64()), [[1] * 100, None], 800),
        (pyarrow.list_(PAIR), [[("x" * 100, 1)] * 9], 900 + 72),
        (pyarrow.dictionary(pyarrow.int32(), pyarrow.string()), ["x" * 1000, "x" * 1000], 2000),
        (pyarrow.bool_(), [True], 1),
    ],
    ids=["text", "bytes", "numbers", "structures", "names", "truth"],
)
def test_what_a_value_takes_is_known_as_it_is_appended(kind: Any, values: list[Any], least: int) -> None:
    """Not less than its bytes, and less than twice as much."""
    column = column_of(pyarrow, kind)
    assert least <= sum(column.append(value) for value in values) < 2 * least


def test_a_name_that_utf_8_has_no_form_for_is_escaped() -> None:
    """A file's name may be any bytes."""
    assert arrow_array(["a\udcff"], pyarrow.string()).to_pylist() == ["a\\udcff"]


def test_pandas_is_not_imported() -> None:
    """Importing pandas takes longer than most captures."""
    program = (
        "import sys, pyarrow; from kwiresniff.export.nested_columns import column_of; kind = pyarrow.string();"
        "column = column_of(pyarrow, kind); column.append('a'); column.array(pyarrow, kind);"
        "print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
