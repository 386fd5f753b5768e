"""What JSON is written for what a body can hold."""

from __future__ import annotations

import json
import subprocess
import sys
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwiresniff.export import JsonEncoder
from kwiresniff.export.encode import CAREFUL_AFTER_FAILURE, PLAIN_BYTES
from tests.support.paths import ROOT


def late() -> JsonEncoder:
    """An encoder that has written so much that it leaves all of it to orjson."""
    encoder = JsonEncoder()
    encoder.line("a" * PLAIN_BYTES)
    return encoder


def written(value: Any) -> Any:
    line = JsonEncoder().line(value)
    assert line == late().line(value)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    return json.loads(line)


def test_text_bytes_are_a_string_and_others_are_base64() -> None:
    # "zzk=" is RFC 4648 for the two bytes of an unfinished UTF-8 sequence.
    assert written({"key": "grün".encode(), "value": b"\xcf\x39"}) == {"key": "grün", "value": {"base64": "zzk="}}


def test_tagged_fields_keep_their_numbers_as_names() -> None:
    assert written({"_tagged_fields": {3: b"a", 70_000: b"\xff"}}) == {
        "_tagged_fields": {"3": "a", "70000": {"base64": "/w=="}}
    }


def test_integers_beyond_64_bits_are_written_in_full() -> None:
    assert written({"timestamp_ns": 2**70}) == {"timestamp_ns": 2**70}


def test_lone_surrogates_do_not_stop_the_output() -> None:
    assert written({"client_id": "\ud800"}) == {"client_id": "\ud800"}


def test_binary_values_go_on_being_written_after_the_quick_way_failed() -> None:
    encoder = JsonEncoder()
    for _ in range(2 * CAREFUL_AFTER_FAILURE + 4):
        assert encoder.line({"a": b"\xff"}) == b'{"a":{"base64":"/w=="}}\n'
        assert encoder.line({"a": b"x"}) == b'{"a":"x"}\n'


def test_what_looks_like_a_plain_value_and_is_none_is_left_to_the_library() -> None:
    """Enumerations, classes derived from plain ones, text that needs escapes, numbers at and beyond 64 bits."""

    class Name(str):
        __slots__ = ()

    class Code(IntEnum):
        NONE = 0

    for value in [
        "\x7f", '"', "\\", "\n", "\u202e", "\x9b", "é", Code.NONE, 1.5, -0.0, 1e300, (1, (2, "b")), b"a\"", b"\x7f",
        2**63, 2**64 - 1, -(2**63), True, None, [], {}, (), "", b"",
    ]:  # fmt: skip
        assert JsonEncoder().line({"a": [value]}) == late().line({"a": [value]})
    for wrong in ({1: "a"}, {None: 1}, {b"a": 1}, {"a": Name("b")}, 2**64, -(2**63) - 1):
        results = []
        for encoder in (JsonEncoder(), late()):
            try:
                results.append(encoder.line(wrong))
            except TypeError as error:
                results.append(str(error).encode())
        assert results[0] == results[1]


@pytest.mark.parametrize("size", [PLAIN_BYTES - 2, 2 * PLAIN_BYTES])
def test_orjson_is_loaded_when_more_than_little_is_written(size: int) -> None:
    """``size`` are the characters of a text; its quotes count, too."""
    script = (
        "import sys\n"
        "from kwiresniff.export import JsonEncoder\n"
        "encoder = JsonEncoder()\n"
        f"encoder.line('a' * {size - 1})\n"
        "encoder.line('a')\n"
        "print('orjson' in sys.modules)\n"
        "encoder.line('a')\n"
        "print('orjson' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == (["False", "True"] if size < PLAIN_BYTES else ["True", "True"])


def test_an_object_without_json_form_is_an_error_not_a_guess() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        JsonEncoder().line({"a": object()})


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | st.binary(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_every_body_is_written_as_json_that_means_the_same(value: Any) -> None:
    def expected(item: Any) -> Any:
        if isinstance(item, bytes):
            try:
                return item.decode("utf-8")
            except UnicodeDecodeError:
                import base64

                return {"base64": base64.b64encode(item).decode()}
        if isinstance(item, list):
            return [expected(each) for each in item]
        if isinstance(item, dict):
            return {name: expected(each) for name, each in item.items()}
        return item

    assert written(value) == expected(value)
