from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Node
from kwiresniff.render.style import Style
from kwiresniff.render.theme import ASCII, UNICODE
from kwiresniff.render.values import leaf, scalar, scalars

STYLE = Style(UNICODE)


def plain(chunk: list[tuple[str, str]]) -> str:
    return "".join(text for _, text in chunk)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (-1, "-1"),
        ("orders", "orders"),
        ("", '""'),
        ("null", '"null"'),
        ("two words", '"two words"'),
        ('{"a": 1}', '{"a": 1}'),
        (b"", '""'),
        (b"text", "text"),
        (b"\xff\xfe\xfd", "0xfffefd"),
        (b"\0\0\0\0\x07abcdef", "\\x00\\x00\\x00\\x00\\x07abcdef"),
        ("a\x1bb", "a\\x1bb"),
        (b"a\x1b[2Jbcdefgh", "a\\x1b[2Jbcdefgh"),
        ({"withheld": True, "size_bytes": 12}, "(withheld, size_bytes 12)"),
        ("NaN", "NaN"),
        (1.5, "1.5"),
    ],
)
def test_a_value_cannot_be_taken_for_another(value: Any, text: str) -> None:
    assert scalar(value, STYLE)[1] == text


def test_a_cut_goes_between_characters_and_says_how_much_is_missing() -> None:
    style = Style(UNICODE, value_limit=5)
    assert scalar("Größe" + "x" * 25, style)[1] == "Größe… 25 more characters"
    assert scalar(("ö" * 20).encode(), style)[1] == "öö… 36 more bytes"
    assert scalar(b"\xff" * 40, style)[1] == "0xffff… 38 more bytes"
    assert scalar(b"x" * 2000, Style(ASCII, value_limit=1))[1] == "x... 1,999 more bytes"
    assert scalar("x" * 2000, Style(UNICODE, verbosity=1, value_limit=None))[1] == "x" * 2000


def test_a_cut_that_saves_nothing_is_not_made() -> None:
    style = Style(UNICODE, value_limit=5)
    assert scalar("x" * 29, style)[1] == "x" * 29
    assert scalar(b"x" * 29, style)[1] == "x" * 29
    assert scalar(b"\xff" * 29, style)[1] == "0x" + "ff" * 29


def test_the_meaning_stands_beside_the_value() -> None:
    assert (
        plain(leaf(Node("acks", "INT16", 0, 2, -1, "all in-sync replicas"), STYLE)) == "acks -1 (all in-sync replicas)"
    )


def test_an_error_code_without_a_known_name_is_still_marked() -> None:
    chunk = leaf(Node("error_code", "INT16", 0, 2, 999, "UNKNOWN_ERROR_CODE_999"), STYLE)
    assert chunk == [("bad", "error_code 999 UNKNOWN_ERROR_CODE_999")]


def test_a_problem_stands_behind_the_field_it_is_in() -> None:
    chunk = leaf(Node("name", "STRING", 0, 3, b"\xff", problem="not UTF-8 \x1b"), STYLE)
    assert plain(chunk) == "name 0xff ! not UTF-8 \\x1b"
    assert chunk[-1][0] == "warn"


def test_how_to_see_more_is_told_from_v_on() -> None:
    node = Node("metrics", "BYTES", 0, 3, b"\xff", hint="install what reads it")
    assert plain(leaf(node, STYLE)) == "metrics 0xff"
    assert plain(leaf(node, Style(UNICODE, 1))) == "metrics 0xff  install what reads it"


def test_an_array_of_values_is_one_line() -> None:
    array = Node("replica_nodes", "ARRAY", 0, 0, children=[Node(f"[{at}]", "INT32", 0, 4, at) for at in range(40)])
    assert plain(scalars(array, STYLE)).startswith("replica_nodes 0, 1, 2, 3")
    assert plain(scalars(array, STYLE)).endswith("31, … 8 more")
    assert plain(scalars(array, Style(UNICODE, 1))).endswith("38, 39")
    assert plain(scalars(Node("topics", "ARRAY", 0, 4), STYLE)) == "topics empty"
    assert plain(scalars(Node("topics", "ARRAY", 0, 4, null=True, meaning="all topics"), STYLE)) == (
        "topics null (all topics)"
    )
