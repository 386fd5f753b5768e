from __future__ import annotations

from kwiresniff.model import Node
from kwiresniff.render.gutter import HEX_LIMIT, Gutter

FRAME = bytes(range(256)) * 8


def test_v_shows_offset_and_length() -> None:
    assert list(Gutter(1, FRAME, 16).lines(Node("x", "INT32", 12, 4, 1))) == ["      12      4 "]


def test_vv_shows_the_bytes_and_carries_on_below() -> None:
    lines = list(Gutter(2, FRAME, 8).lines(Node("x", "BYTES", 16, 10, b"")))
    assert [line.strip() for line in lines] == ["16 10 11 12 13 14 15 16 17", "24 18 19"]
    assert len({len(line) for line in lines}) == 1


def test_a_structure_shows_only_what_comes_before_its_first_field() -> None:
    node = Node("topics", "ARRAY", 4, 8, children=[Node("[0]", "STRUCT", 8, 4, children=[Node("a", "INT32", 8, 4, 1)])])
    assert next(Gutter(2, FRAME, 8).lines(node)).split() == ["4", "04", "05", "06", "07"]


def test_decompressed_data_has_an_offset_of_its_own_and_no_bytes() -> None:
    assert next(Gutter(2, FRAME, 8).lines(Node("x", "INT8", 3, 1, 1, derived=True))).split() == ["+3"]


def test_what_was_withheld_is_not_shown_by_the_structure_around_it() -> None:
    secret = Node("auth_bytes", "BYTES", 8, 12, {"withheld": True}, derived=True)
    whole = Node("body", "STRUCT", 4, 16, children=[secret])
    array = Node("secrets", "ARRAY", 4, 16, children=[secret])
    record = Node("[0]", "RECORD", 4, 16, children=[Node("offset", "VARINT", 6, 1, 0), secret])
    gutter = Gutter(2, FRAME, 8)
    assert [next(gutter.lines(node)).split() for node in (secret, whole, array)] == [["8"], ["4"], ["4"]]
    assert next(gutter.lines(record)).split() == ["4", "04", "05"]


def test_a_field_of_a_megabyte_is_cut_with_a_told_count() -> None:
    lines = list(Gutter(2, bytes(1_000_000), 16).lines(Node("x", "BYTES", 0, 1_000_000, b"")))
    assert len(lines) == HEX_LIMIT // 16 + 1
    assert lines[-1].strip() == "998,976 more bytes"


def test_verbosity_0_has_no_margin() -> None:
    assert list(Gutter(0, FRAME, 16).lines(Node("x", "INT8", 0, 1, 1))) == [""]
