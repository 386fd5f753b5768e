from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kwiresniff.render.line_wrapping import cells, fit, join, pad, pad_left, split, wrap
from kwiresniff.render.theme import UNICODE


def texts(chunks: list[list[tuple[str, str]]], width: int | None) -> list[str]:
    return ["".join(text for _, text in line) for line in wrap(chunks, width)]


def words(*all_words: str) -> list[list[tuple[str, str]]]:
    return [[("", word)] for word in all_words]


def test_chunks_stand_two_spaces_apart_while_they_fit() -> None:
    assert texts(words("one", "two", "three"), 10) == ["one  two", "three"]
    assert texts(words("one", "two", "three"), None) == ["one  two  three"]


def test_a_long_chunk_starts_beside_the_last_one_and_breaks_after_words() -> None:
    assert texts(words("key", "the value is long enough to need three lines"), 20) == [
        "key  the value is",
        "long enough to need",
        "three lines",
    ]


def test_a_word_without_spaces_breaks_anywhere() -> None:
    assert texts(words("x" * 25), 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_wide_characters_count_two_columns() -> None:
    assert cells("東京") == 4
    assert fit("東京東京", 5) == "東京…"
    assert pad("東", 4) == "東  "
    assert pad_left("東", 4) == "  東"
    assert split("東京", 3) == ("東", "京")


def test_marks_of_ours_are_one_column_wide_as_rich_counts_them() -> None:
    assert [cells(one) for one in ("µ", "→", "…", "873 µs", "a → b…")] == [
        cell_len(one) for one in ("µ", "→", "…", "873 µs", "a → b…")
    ]


def test_fit_leaves_what_fits_and_marks_what_it_cuts() -> None:
    assert fit("abc", 3) == "abc"
    assert fit("abcd", 3) == "ab…"
    assert fit("abcdef", 5, "...") == "ab..."


def test_a_value_of_a_megabyte_is_folded_in_linear_time() -> None:
    assert len(texts(words("x" * 1_000_000), 80)) == 12_500


spans = st.lists(st.tuples(st.just("value"), st.text("ab 東…", min_size=1, max_size=60)), min_size=1, max_size=4)


@given(st.lists(spans, max_size=6), st.integers(8, 60))
def test_no_line_is_too_wide_and_nothing_but_spaces_is_lost(chunks: list[list[tuple[str, str]]], width: int) -> None:
    lines = texts(chunks, width)
    assert all(cells(line) <= width for line in lines)
    whole = "".join(text for _, text in join(chunks))
    assert "".join(lines).replace(" ", "") == whole.replace(" ", "")


def test_bars_of_histograms_need_nobody_who_knows_all_of_unicode(monkeypatch: pytest.MonkeyPatch) -> None:
    """To import its table would take a tenth of a run of ``stats`` on a small capture."""
    monkeypatch.setitem(sys.modules, "rich.cells", None)
    assert cells(UNICODE.bars) == len(UNICODE.bars)
