"""docs/coverage.md and the README say what the manifest says."""

from __future__ import annotations

from tests.captures.coverage import PAGE, README, page, ranges, summary


def test_the_page_is_that_of_the_manifest() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "write it anew: python -m tests.captures.coverage"


def test_the_readme_has_the_summary() -> None:
    assert summary() in README.read_text(encoding="utf-8")


def test_versions_are_written_as_ranges() -> None:
    assert ranges({0, 1, 2, 5, 7, 8}) == "0-2, 5, 7-8"
    assert ranges(()) == ""
