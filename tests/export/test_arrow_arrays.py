"""Arrays made of buffers, held against those that pyarrow makes itself."""

from __future__ import annotations

import datetime
import subprocess
import sys
from typing import Any

import pytest

from kwiresniff.export.arrow_arrays import arrow_array

pyarrow = pytest.importorskip("pyarrow")

UTC = datetime.UTC
MOMENTS = [
    datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    datetime.datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC),
    datetime.datetime(9999, 12, 31, tzinfo=UTC),
]
PAIR = pyarrow.struct([("name", pyarrow.string()), ("count", pyarrow.int64())])


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([1, None, -(2**63), 2**63 - 1], pyarrow.int64()),
        ([1, None, -(2**31)], pyarrow.int32()),
        ([None, -(2**15), 7], pyarrow.int16()),
        ([True, False, None] * 7, pyarrow.bool_()),
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


def test_a_name_that_utf_8_has_no_form_for_is_escaped() -> None:
    """A file's name may be any bytes."""
    assert arrow_array(["a\udcff"], pyarrow.string()).to_pylist() == ["a\\udcff"]


def test_pandas_is_not_imported() -> None:
    """Importing pandas takes longer than most captures."""
    program = (
        "import sys, pyarrow; from kwiresniff.export.arrow_arrays import arrow_array;"
        "arrow_array(['a'], pyarrow.string()); print('pandas' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
