"""A definition at one version."""

from __future__ import annotations

import pytest

from kwiresniff.errors import SchemaError
from kwiresniff.schema.definition_language import parse

(MESSAGE,) = parse(
    """\
data Sample 1-4 flexible 3+
  late string 3+ tag 1
  first int32
  early uuid 3+ tag 0
  middle []int8 2-3 null 3+
  header string flexible none
  place struct null 4+
    host string = "localhost"
    port uint16
"""
)


def test_fields_stand_in_wire_order_with_tagged_ones_last_by_tag() -> None:
    names = {version: [shape.name for shape in MESSAGE.at(version)] for version in range(1, 5)}
    assert names == {
        1: ["first", "header", "place"],
        2: ["first", "middle", "header", "place"],
        3: ["first", "middle", "header", "place", "early", "late"],
        4: ["first", "header", "place", "early", "late"],
    }


def test_nullability_and_compact_lengths_follow_the_version() -> None:
    at_two, at_three = ({shape.name: shape for shape in MESSAGE.at(version)} for version in (2, 3))
    assert (at_two["middle"].nullable, at_three["middle"].nullable) == (False, True)
    assert (at_two["middle"].compact, at_three["middle"].compact, at_three["header"].compact) == (False, True, False)


def test_a_default_that_is_not_given_is_zero_or_made_of_the_defaults_inside() -> None:
    defaults = {shape.name: shape.default for shape in MESSAGE.at(3)}
    assert defaults == {
        "first": 0,
        "middle": [],
        "header": "",
        "place": {"host": "localhost", "port": 0},
        "early": "AAAAAAAAAAAAAAAAAAAAAA",
        "late": "",
    }


@pytest.mark.parametrize("version", [-1, 0, 5])
def test_a_version_it_does_not_have_is_refused(version: int) -> None:
    with pytest.raises(SchemaError, match=f"Sample has no version {version}, it has 1 to 4"):
        MESSAGE.at(version)
