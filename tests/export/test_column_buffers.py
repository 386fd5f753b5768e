"""Columns written value by value; what pyarrow makes of the same values tells what they should hold."""

from __future__ import annotations

import tracemalloc
from itertools import product
from typing import Any

import pytest

from kwiresniff.export.column_buffers import LARGE_TEXT, PIECE_BYTES, NameColumn, NumberColumn, TextColumn
from kwiresniff.export.nested_columns import ListColumn

pyarrow = pytest.importorskip("pyarrow")


def check(column: Any, expected: list[Any], kind: Any) -> None:
    found = column.array(pyarrow, kind)
    found.validate(full=True)
    assert found.to_pylist() == expected
    assert found.null_count == expected.count(None)


@pytest.mark.parametrize("first_null", [0, 1, 7, 8, 9, 16, 40])
def test_a_mask_that_begins_with_the_first_null_covers_all_values(first_null: int) -> None:
    """Bytes of it hold eight values each, and those before the first null are there."""
    column = NumberColumn(8)
    expected = [None if at >= first_null and (at - first_null) % 3 == 0 else at for at in range(40)]
    for value in expected:
        if value is None:
            column.add_none()
        else:
            column.add(value)
    check(column, expected, pyarrow.int64())


@pytest.mark.parametrize("first", [0, 5, LARGE_TEXT - 1, LARGE_TEXT, 3 * LARGE_TEXT])
def test_texts_of_every_size_stay_in_order(first: int) -> None:
    """Large ones are kept as they are, small ones are copied, and a value may be made of both."""
    for others in product([0, 5, LARGE_TEXT - 1, LARGE_TEXT, 3 * LARGE_TEXT], repeat=2):
        check_texts((first, *others))


def check_texts(sizes: tuple[int, ...]) -> None:
    """Texts of these sizes, one value each and then all as one."""
    column = TextColumn()
    texts = [letter.encode() * size for letter, size in zip("abc", sizes, strict=True)]
    for text in texts:
        column.add(text)
    column.add_none()
    for text in texts:
        column.write(text)
    column.end(True)
    assert column.size_bytes == 2 * sum(sizes), sizes
    check(column, [*(text.decode() for text in texts), None, b"".join(texts).decode()], pyarrow.string())


def test_names_that_repeat_and_names_that_do_not() -> None:
    """One object twice, an equal one, another one, none."""
    names = ["orders", "orders", "".join(["ord", "ers"]), None, "payments", "orders", "\udcff"]
    column = NameColumn()
    for name in names:
        column.put(name)
    check(column, [*names[:-1], "\\udcff"], pyarrow.string())


def test_lists_end_where_they_are_ended() -> None:
    """Empty ones included."""
    names = NameColumn()
    column = ListColumn(names)
    for values in (["a", "b"], [], ["c"]):
        for name in values:
            names.put(name)
        column.end(True)
    check(column, [["a", "b"], [], ["c"]], pyarrow.list_(pyarrow.string()))


def test_many_short_texts_are_held_in_pieces() -> None:
    """What is held is one copy of them, and no more until they become an array."""
    text, count = b"x" * 1000, 4 * PIECE_BYTES // 1000
    column = TextColumn()
    tracemalloc.start()
    for _ in range(count):
        column.add(text)
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert count * 1000 < held < count * 1000 + 3 * PIECE_BYTES
    check(column, [text.decode()] * count, pyarrow.string())
