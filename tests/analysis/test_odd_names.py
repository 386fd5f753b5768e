"""What collecting commands say of messages whose texts are no text: odd, withheld, or beside fields nobody knows."""

from __future__ import annotations

from itertools import product

import pytest

from kwiresniff import schema
from kwiresniff.schema.errorcodes import error_codes
from tests.support.analyses import text_of_analyses
from tests.support.harmful_text import UNSAFE_JSON, WRITTEN_BY_PYTHON
from tests.support.odd_bodies import conversations, refusals
from tests.support.sample import sampled

#: Seed, whether messages are damaged, and whether they are looked at as digests. Quick are whole ones as digests, and
#: damaged ones as bodies.
ODD = [
    *product("ab", [False], [True, False]),
    *product("ab", [True], [False, True]),
]


@pytest.mark.parametrize("case", sampled(ODD, 4, 1), ids=str)
def test_odd_texts_are_told_as_text(case: tuple[str, bool, bool]) -> None:
    """No message of any API in any version ends a command, and nothing is told as Python would write it."""
    seed, damage, digests = case
    for wire in conversations(seed, damage=damage):
        assert harmful(text_of_analyses(wire.segments, digests=digests)) == []


def harmful(said: str) -> list[str]:
    """Places of a text, with a few characters around, that harm a terminal or are written as Python would."""
    found = (wrong.search(said) for wrong in (WRITTEN_BY_PYTHON, UNSAFE_JSON))
    return [said[max(0, place.start() - 80) : place.end() + 40] for place in found if place is not None]


@pytest.mark.parametrize("error", sampled(error_codes(), 40), ids=lambda error: error.name)
def test_any_api_may_answer_with_any_error(error: schema.KafkaError) -> None:
    """One that Kafka never gives there ends no command, such as OFFSET_OUT_OF_RANGE for DescribeLogDirs. Every other
    code is looked at in digests."""
    segments = refusals(error.name, error.code).segments
    assert harmful(text_of_analyses(segments, digests=error.code % 2 == 0)) == []


def test_a_group_whose_name_is_no_utf_8_is_named_by_its_bytes() -> None:
    said = "".join(text_of_analyses(wire.segments) for wire in conversations("a"))
    assert r"\xff\xfe\xff\xfe\xff\xfe\xff\xfe" in said
