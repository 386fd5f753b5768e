"""What the project's pages link to is there, and the commands in them have the options that they are given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import click
import pytest

from kwiresniff.cli.main import group
from tests.support.paths import ROOT

PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "captures" / "README.md")
}
#: A block of shell commands, and a line of it that runs kwiresniff, by itself or behind a pipe.
BLOCK = re.compile(r"^```sh\n(.+?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|[|;&]\s*)(?:sudo )?kwiresniff (\S.*?)(?= \| | && |$)", re.MULTILINE)


def commands() -> Iterator[tuple[str, str]]:
    """Page and arguments of every run of kwiresniff in a block of shell commands."""
    for page, text in PAGES.items():
        for block in BLOCK.findall(text):
            for found in COMMAND.findall(block):
                yield page, found


def options(words: list[str]) -> tuple[set[str], list[str]]:
    """The options of the command that some words name, and those of the words that are options."""
    context = click.Context(group, info_name="kwiresniff", **group.context_settings)
    command: click.Command = group
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(context, words[0])
        assert found is not None, words[0]
        command, words = found, words[1:]
    known = {text for param in command.get_params(context) for text in (*param.opts, *param.secondary_opts)}
    return known, [word.split("=")[0] for word in words if re.fullmatch(r"--?[a-zA-Z][\w-]*(=.*)?", word)]


@pytest.mark.parametrize("page", PAGES)
def test_a_file_that_a_page_links_to_is_there(page: str) -> None:
    """Links to the web are left alone, those to a place in a page end at the page."""
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", PAGES[page]):
        if "://" not in target:
            assert (ROOT / page).parent.joinpath(target).exists(), target


def test_a_file_that_the_architecture_names_is_there() -> None:
    """Below the package or, of tests and tools, below the checkout."""
    files = set(re.findall(r"`((?:\w+/)+[\w.]+\.(?:py|txt))`", PAGES["docs/architecture.md"]))
    assert len(files) > 20
    assert [one for one in files if not (ROOT / "kwiresniff" / one).is_file() and not (ROOT / one).is_file()] == []


def test_commands_are_found() -> None:
    assert len(list(commands())) > 20


@pytest.mark.parametrize(("page", "command"), list(commands()))
def test_a_command_of_a_page_has_the_options_that_it_is_given(page: str, command: str) -> None:
    """The command is there, and so is each option; ``-vv`` is ``-v`` twice."""
    known, given = options(shlex.split(command, comments=True))
    unknown = [option for option in given if option not in known and not re.fullmatch("-v+", option)]
    assert unknown == [], f"{page}: {command}"
