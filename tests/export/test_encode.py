"""What JSON is written for what a body can hold."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwiresniff.export.encode import json_line


def written(value: Any) -> Any:
    line = json_line(value)
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


def test_an_object_without_json_form_is_an_error_not_a_guess() -> None:
    with pytest.raises(TypeError, match="object has no JSON form"):
        json_line({"a": object()})


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
