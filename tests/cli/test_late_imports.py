"""What commands do without: modules that click or a capture without anything unusual does not need."""

from __future__ import annotations

import inspect
import subprocess
import sys
import uuid
from pathlib import Path

import click
import pytest

from kwiresniff.cli.late_imports import LongNames
from kwiresniff.cli.options import TrafficCommand
from tests.support.capture_files import heartbeats, save
from tests.support.paths import ROOT

#: Modules that take a millisecond or more, and that none of these commands uses.
HEAVY = ("inspect", "ast", "uuid", "platform", "locale", "difflib", "dataclasses", "rich", "google_crc32c", "cramjam")
#: Modules that only trees need, and what is wrong with a message.
CAREFUL = ("threading", "datetime", "kwiresniff.codec.dissector", "kwiresniff.codec.folding")


@pytest.mark.parametrize("command", [["stats"], ["read"], ["read", "-o", "summary"]], ids=" ".join)
def test_a_short_run_imports_nothing_that_it_does_not_use(tmp_path: Path, command: list[str]) -> None:
    """In a process of its own, on a capture without records."""
    capture = save(tmp_path / "a.pcap", heartbeats(2))
    heavy = HEAVY if command == ["read"] else HEAVY + CAREFUL
    script = (
        "import sys\n"
        f"sys.argv, heavy = ['kwiresniff', *{command!r}, {capture!r}], {heavy!r}\n"
        "from kwiresniff.__main__ import main\n"
        "import kwiresniff.__main__ as start\n"
        "start._leave = lambda code: print(code, *(name for name in heavy if name in sys.modules), file=sys.stderr)\n"
        "main()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "0")
    assert "Heartbeat" in done.stdout


def test_names_of_types_are_not_compiled_while_click_is_imported() -> None:
    """Python's own event for what is compiled, in a process of its own; a reference made later is a real one."""
    script = (
        "import sys, typing\n"
        "def told(event, arguments):\n"
        "    if event == 'compile' and sys._getframe(1).f_code.co_name == '__init__':\n"
        "        print('compiled', arguments[0])\n"
        "sys.addaudithook(told)\n"
        "from kwiresniff.cli.late_imports import import_click\n"
        "import_click()\n"
        "print('imported')\n"
        "print(typing.get_args(typing.Optional['later'])[0].__class__ is typing.ForwardRef)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    told = done.stdout.splitlines()
    assert (done.stderr, told[0], told[-1]) == ("", "imported", "True")


def test_click_has_its_modules_when_it_uses_them() -> None:
    """In a process where click was imported without them: its types for UUIDs and dates, a help text of lines."""
    script = (
        "import sys\n"
        "from kwiresniff.cli.late_imports import import_click\n"
        "import_click()\n"
        "assert not {'inspect', 'uuid', 'threading', 'datetime'} & set(sys.modules)\n"
        "import click\n"
        "print(click.UUID.convert('12345678-1234-5678-1234-567812345678', None, None).int)\n"
        "date = click.DateTime().convert('2026-01-02', None, None)\n"
        "print(date, click.DateTime().convert(date, None, None) is date)\n"
        "import threading\n"
        "print(click.globals.local is threading.local)\n"
        "print(repr(click.Option(['--x'], help='  One.\\n\\n      Two.\\n').help))\n"
        "import inspect\n"
        "print(inspect.isfunction(import_click))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)
    number = uuid.UUID("12345678-1234-5678-1234-567812345678").int
    help_text = inspect.cleandoc("  One.\n\n      Two.\n")
    assert (done.stderr, done.stdout) == ("", f"{number}\n2026-01-02 00:00:00 True\nTrue\n{help_text!r}\nTrue\n")


def test_a_long_name_that_is_not_there_still_has_those_that_are_spelt_like_it() -> None:
    """The parser asks for a name and then whether there are any others; for a short one there are none."""
    names = LongNames({"--limit": 1}, {"-o": 2})
    assert ("--limit" in names, names["--limit"], "-o" in names, names["-o"], list(names)) == (
        True, 1, True, 2, ["--limit"],
    )  # fmt: skip
    assert "-z" not in names and not names
    assert "--limt" not in names and names
    command = TrafficCommand("x", params=[click.Option(["--limit"]), click.Option(["-o"]), click.Option(["-q"])])
    with pytest.raises(click.NoSuchOption) as raised:
        command.make_context("x", ["-o", "1", "--limt", "2"])
    assert raised.value.possibilities == ["--limit"]
    with pytest.raises(click.NoSuchOption) as raised:
        command.make_context("x", ["-z"])
    assert not raised.value.possibilities


@pytest.mark.parametrize(
    "args",
    [["-o", "1"], ["-o1"], ["-o=1"], ["-qo", "1"], ["-q", "--limit=2"], ["-q", "-o", "-q"], ["--limit", "2", "-o=a"],
     ["-o"], ["-o="], ["-q=1"], ["-"], ["--", "-o"], ["-z"], ["-zo"], ["--limt", "1"], ["--lim", "1"]],
    ids=" ".join,
)  # fmt: skip
def test_short_names_are_parsed_as_click_parses_them(args: list[str]) -> None:
    """Values or a complaint, whichever click itself has."""
    told = []
    for kind in (click.Command, TrafficCommand):
        options = [click.Option(["--limit"]), click.Option(["-o"]), click.Option(["-q"], is_flag=True)]
        command = kind("x", params=[*options, click.Argument(["rest"], nargs=-1)])
        try:
            told.append(str(command.make_context("x", list(args)).params))
        except click.UsageError as error:
            told.append(error.format_message())
    assert told[0] == told[1]
