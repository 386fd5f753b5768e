"""The examples of docs/values.md print what stands below them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator

import pytest

from tests.support.command import Done
from tests.support.paths import ROOT

pytest.importorskip("fastavro")
pytest.importorskip("msgpack")
pytest.importorskip("cbor2")
pytest.importorskip("jsonschema")

PAGE = (ROOT / "docs" / "values.md").read_text(encoding="utf-8")


def examples() -> Iterator[tuple[str, list[str]]]:
    """Each command, and the parts of its output that the page shows."""
    for block in re.findall(r"^```console\n(.+?)^```", PAGE, re.MULTILINE | re.DOTALL):
        for example in block.split("$ kwiresniff ")[1:]:
            command, *lines = example.splitlines()
            yield command, lines


@pytest.mark.parametrize(("command", "lines"), list(examples()))
def test_an_example_prints_what_the_page_shows(
    command: str, lines: list[str], kwiresniff: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of the project."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "250")
    done = kwiresniff(*shlex.split(command))
    assert done.code == 0, done.err
    assert lines and [line for line in lines if line not in done.out] == []
