"""What collecting commands say of messages whose texts are no text: odd, withheld, or beside fields nobody knows."""

from __future__ import annotations

import pytest

from tests.support.analyses import text_of_analyses
from tests.support.harmful_text import UNSAFE_JSON, WRITTEN_BY_PYTHON
from tests.support.odd_bodies import conversations


@pytest.mark.parametrize("digests", [True, False], ids=["digests", "bodies"])
@pytest.mark.parametrize("damage", [False, True], ids=["whole", "damaged"])
@pytest.mark.parametrize("seed", ["a", pytest.param("b", marks=pytest.mark.slow)])
def test_odd_texts_are_told_as_text(seed: str, damage: bool, digests: bool) -> None:
    """No message of any API in any version ends a command, and nothing is told as Python would write it."""
    for wire in conversations(seed, damage=damage):
        said = text_of_analyses(wire.segments, digests=digests)
        for wrong in (WRITTEN_BY_PYTHON, UNSAFE_JSON):
            found = wrong.search(said)
            assert found is None, said[max(0, found.start() - 80) : found.end() + 40]


def test_a_group_whose_name_is_no_utf_8_is_named_by_its_bytes() -> None:
    said = "".join(text_of_analyses(wire.segments) for wire in conversations("a"))
    assert r"\xff\xfe\xff\xfe\xff\xfe\xff\xfe" in said
