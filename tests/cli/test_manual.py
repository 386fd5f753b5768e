"""docs/kwiresniff.1, the manual page, and the files for completion."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from kwiresniff.cli.main import COMMANDS, group
from tests.cli.manual import manual, roff

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "kwiresniff.1").read_text(encoding="utf-8")


def options(command: click.Command, context: click.Context) -> Iterator[str]:
    """The options of a command and of those below it, as they are typed."""
    for param in command.get_params(context):
        if isinstance(param, click.Option) and not param.hidden:
            yield from param.opts
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            assert inner is not None
            yield from options(inner, context)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_page_has_every_command_with_its_options(name: str) -> None:
    """Made anew with ``python -m tests.cli.manual > docs/kwiresniff.1`` where it has not."""
    context = click.Context(group, info_name="kwiresniff", **group.context_settings)
    command = group.get_command(context, name)
    assert command is not None
    assert f".SS kwiresniff {name}" in PAGE
    lacking = [one for one in options(command, context) if one not in ("-h", "--help") and roff(one) not in PAGE]
    assert lacking == []


def test_the_page_speaks_of_nothing_that_is_gone() -> None:
    """The headings of what is shipped are those that would be made."""
    headings = [line for line in PAGE.splitlines() if line.startswith((".SH", ".SS"))]
    assert headings == [line for line in manual().splitlines() if line.startswith((".SH", ".SS"))]


def test_text_is_never_a_request_of_roff() -> None:
    assert roff(".gz files") == "\\&.gz files"
    assert roff("a\\b --c ``d`` `e`") == "a\\eb \\-\\-c d e"


@pytest.mark.parametrize("file", ["kwiresniff.bash", "_kwiresniff", "kwiresniff.fish"])
def test_the_files_for_completion_ask_the_command(file: str) -> None:
    assert "_KWIRESNIFF_COMPLETE=" in (DOCS / "completion" / file).read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "expected"), [("kwiresniff top", "plain,topics"), ("kwiresniff read --no-pa", "plain,--no-pager")]
)
def test_the_command_completes_what_is_typed(words: str, expected: str) -> None:
    asked = {"_KWIRESNIFF_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run(
        [sys.executable, "-m", "kwiresniff"], capture_output=True, text=True, check=True, env={**os.environ, **asked}
    )
    assert done.stdout.split() == [expected]
