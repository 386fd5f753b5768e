"""One definition out of many releases."""

from __future__ import annotations

import pytest

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition_language import parse, print_messages
from kwiresniff.schema.merge import merge


def merged(*releases: str) -> str:
    return print_messages((merge([parse(text)[0] for text in releases]),))


def test_versions_that_a_release_dropped_stay() -> None:
    old = "data A 0-1\n  a int8\n  b int16 1+\n"
    new = "data A 1-2\n  a int8\n  b int16\n  c int32 2+\n"
    assert merged(old, new) == "data A 0-2\n  a int8\n  b int16 1+\n  c int32 2+\n"


def test_a_whole_message_that_was_dropped_keeps_its_versions() -> None:
    assert merged("data A 0-3 flexible 2+\n  a int8\n") == "data A 0-3 flexible 2+\n  a int8\n"


def test_a_version_that_changed_in_place_has_its_newest_shape() -> None:
    assert (
        merged("data A 0\n  a int8\n  b int8\n", "data A 0\n  a int8\n  c int64\n") == "data A 0\n  a int8\n  c int64\n"
    )


def test_an_early_version_that_looked_different_keeps_its_own_fields() -> None:
    early = "data A 0\n  limit int32\n  a int8\n"
    later = "data A 1-2\n  a int8\n  limit int64\n"
    assert merged(early, later) == "data A 0-2\n  limit int32 0\n  a int8\n  limit int64 1+\n"


def test_a_field_that_was_renamed_has_its_new_name_in_dropped_versions_too() -> None:
    old = "data A 0-1\n  time int32\n  rows []struct\n    name string\n"
    new = "data A 1\n  time_ms int32\n  topics []struct\n    topic string\n"
    assert merged(old, new) == (
        "data A 0-1\n  time_ms int32 was time\n  topics []struct was rows\n    topic string was name\n"
    )


def test_older_names_survive_another_merging() -> None:
    existing = "data A 0-1\n  rows []struct was lines\n    name string was title\n"
    new = "data A 1-2\n  topics []struct\n    name string\n"
    assert merged(existing, new) == "data A 0-2\n  topics []struct was lines,rows\n    name string was title\n"


def test_an_api_that_was_renamed_keeps_its_older_name() -> None:
    old = "api 2 ListOffset\nrequest 0\n"
    new = "api 2 ListOffsets\nrequest 1\n"
    assert merged(old, new).splitlines()[:2] == ["api 2 ListOffsets", "was ListOffset"]


def test_an_entity_and_a_default_that_only_fills_in_follow_the_newest_release() -> None:
    old = "data A 0\n  id int32\n"
    new = "data A 1\n  id int32 = -1 entity brokerId key\n"
    assert merged(old, new) == "data A 0-1\n  id int32 = -1 entity brokerId key\n"


def test_a_default_that_stands_for_an_absent_tagged_field_belongs_to_its_version() -> None:
    old = "data A 0 flexible 0+\n  id int32 tag 0\n"
    new = "data A 1 flexible 1+\n  id int32 tag 0 = -1\n"
    assert merged(old, new) == "data A 0-1 flexible 0+\n  id int32 0 tag 0\n  id int32 1+ tag 0 = -1\n"


def test_a_string_that_never_became_compact_stays_so() -> None:
    text = "header request 1-2 flexible 2+\n  client_id string null flexible none\n"
    assert merged(text) == text


def test_a_field_that_went_and_came_back_stands_on_two_lines() -> None:
    releases = ["data A 0\n  a int8\n", "data A 1\n", "data A 2\n  a int8\n"]
    assert merged(*releases) == "data A 0-2\n  a int8 0\n  a int8 2+\n"


def test_a_hole_between_the_versions_is_refused() -> None:
    with pytest.raises(SchemaError, match="a release is missing"):
        merged("data A 0\n", "data A 2\n")
