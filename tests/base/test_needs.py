"""The union of needs: as deep as the deepest, and no short way that one of them has not allowed."""

from __future__ import annotations

from kwiresniff.base.needs import Needs


def text(value: object) -> bytes:
    return b""


def test_the_deeper_reading_and_all_extras_are_needed() -> None:
    """Whoever asks for less is served by more."""
    both = Needs("errors", topics=True) | Needs("bodies", sessions=True, attempts=True)
    assert both == Needs("bodies", topics=True, sessions=True, attempts=True)


def test_who_looks_into_bodies_decides_how_they_come() -> None:
    """Who does not has no say."""
    summary, counts = Needs("bodies", digests=True), Needs("errors")
    assert (summary | counts).digests == (counts | summary).digests is True
    assert (Needs(text=text) | counts).text is text
    assert (counts | counts) == counts


def test_a_short_way_is_taken_if_all_allow_it() -> None:
    """Text for one and values for the other are values."""
    assert (Needs(text=text) | Needs()).text is None
    assert (Needs(text=text) | Needs(text=text)).text is text
    assert not (Needs(shown=True) | Needs()).shown
    assert (Needs(digests=True) | Needs()).digests is False
