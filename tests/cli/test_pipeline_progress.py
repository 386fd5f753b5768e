"""The last line of a pipeline's run."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.cli.pipeline_progress import MAX_NAMED_FILES, summary


def manifest(exchanges: int, files: int, in_all: int) -> dict[str, Any]:
    run = {"rows": {"exchanges": exchanges}, "files": files, "not_read": []}
    return {"this_run": {**run, "sources": 1, "units": 1}, "total": {"rows": {"exchanges": in_all}, "files": 2}}


@pytest.mark.parametrize(
    ("exchanges", "files", "text"),
    [
        (0, 0, "0 exchanges from 0 files; 9 exchanges in all"),
        (4, 1, "4 exchanges from 1 files; 9 exchanges in all"),
        (4, 0, "4 exchanges from files that were begun before; 9 exchanges in all"),
    ],
)
def test_exchanges_come_from_files(exchanges: int, files: int, text: str) -> None:
    """A file counts with the first of its shards, which an earlier run may have read."""
    assert summary(manifest(exchanges, files, 9)) == text


def test_files_that_were_not_read_are_named() -> None:
    """Some of them, without what a name could do to a terminal; where nothing at all was read, that is said first."""
    nothing = manifest(0, 0, 0)
    nothing["this_run"]["not_read"] = [f"{number}.txt" for number in range(MAX_NAMED_FILES + 2)]
    nothing["this_run"]["not_read"][0] = "\x1b[31m"
    nothing["total"]["files"] = 0
    text = summary(nothing)
    assert text.startswith("nothing was read") and "\x1b" not in text
    assert text.endswith(f"{MAX_NAMED_FILES - 1}.txt and 2 more")
