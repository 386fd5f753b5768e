"""Error codes. Expected values: the protocol guide's table; test_kio.py compares all of them."""

from __future__ import annotations

import pytest

from kwiresniff import schema
from kwiresniff.errors import SchemaError


def test_a_code_has_its_official_name_and_says_whether_to_try_again() -> None:
    assert (schema.error(0).name, schema.error(0).retriable) == ("NONE", False)
    assert (schema.error(-1).name, schema.error(-1).retriable) == ("UNKNOWN_SERVER_ERROR", False)
    assert (schema.error(6).name, schema.error(6).retriable) == ("NOT_LEADER_OR_FOLLOWER", True)
    assert (schema.error(27).name, schema.error(27).retriable) == ("REBALANCE_IN_PROGRESS", False)


def test_an_unknown_code_is_named_by_its_number() -> None:
    assert schema.error(12345).name == "UNKNOWN_ERROR_CODE_12345"
    assert schema.error(-7).name == "UNKNOWN_ERROR_CODE_-7"


@pytest.mark.parametrize("name", ["NOT_LEADER_OR_FOLLOWER", "not_leader_or_follower", "NOT_LEADER_FOR_PARTITION"])
def test_an_error_is_found_by_its_name_and_by_an_older_one(name: str) -> None:
    assert schema.error_by_name(name).code == 6


def test_an_unknown_name_is_answered_with_the_nearest_ones() -> None:
    with pytest.raises(SchemaError, match=r"did you mean .*UNKNOWN_MEMBER_ID"):
        schema.error_by_name("UNKNOWN_MEMBER")
