"""docs/plugins.md: the plugin on the page does what the page says."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from kwiresniff.plugins import Hooks
from tests.support.command import Done

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text(encoding="utf-8")
(PLUGIN,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
#: Each command with the lines that stand below it.
COMMANDS = [
    (command, [line for line in rest.splitlines() if line])
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for command, rest in re.findall(r"^\$ kwiresniff (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.mark.parametrize(("command", "lines"), COMMANDS)
def test_the_plugin_of_the_page_prints_what_the_page_shows(
    command: str, lines: list[str], kwiresniff: Callable[..., Done], tmp_path: Path
) -> None:
    """As it stands there, in a file of the name that the page gives it."""
    (tmp_path / "orders.py").write_text(PLUGIN)
    capture = "captures/first-look.pcap"
    replaced = {"orders.py": str(tmp_path / "orders.py"), capture: str(ROOT / capture)}
    done = kwiresniff(*[replaced.get(word, word) for word in shlex.split(command)])
    assert done.err.count("\n") <= 1, done.err
    assert lines
    assert [line for line in lines if line not in done.out] == []


def test_it_has_no_more_than_fifteen_lines() -> None:
    """As the heading says; empty ones do not count."""
    assert sum(line != "" for line in PLUGIN.splitlines()) <= 15
    assert len(COMMANDS) == 3


def test_the_page_names_every_hook() -> None:
    """One that is added is described."""
    hooks = [name for name in vars(Hooks) if not name.startswith("_")]
    assert [name for name in hooks if f"hooks.{name}(" not in PAGE] == []
