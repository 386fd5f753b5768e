"""The filters in the documentation work, and it names every field."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kwiresniff.analysis.filter import compile_filter, fields
from kwiresniff.errors import FilterError

TEXT = (Path(__file__).parents[2] / "docs" / "filters.md").read_text()
EXAMPLES = [
    *TEXT.split("```")[1].strip().splitlines(),
    *[example for line in TEXT.splitlines() if line.startswith("| `") for example in
      re.findall(r"`([^`]+)`", line.rsplit("|", 2)[1])],
]  # fmt: skip


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_is_understood(example: str) -> None:
    compile_filter(example)


def test_every_field_is_described() -> None:
    described = {
        name
        for line in TEXT.splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([^`]+)`", line.split("|")[1])
    }
    paths = {"request.body.PATH", "response.body.PATH", "record.key.PATH", "record.value.PATH", "record.header.NAME"}
    assert described == {*fields(), *paths, "record.key", "record.value"}


def test_the_mistake_is_answered_as_described() -> None:
    with pytest.raises(FilterError) as caught:
        compile_filter("latency > 100")
    assert f"kwiresniff: filter: at column {caught.value.position + 1}: {caught.value}\n" in TEXT
