"""The command ``kwiresniff``: ordinary command lines are read and run here; click has all others.

Click is a tenth of the time of a short run, and imported for help, mistakes, completion, and the commands that read no
captures.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module

from kwiresniff.base.light_typing import Any, NoReturn
from kwiresniff.base.process_memory import collect_from_here
from kwiresniff.cli.command_line import values_of
from kwiresniff.cli.help import COMMANDS, COMPLETION
from kwiresniff.cli.options import CaptureCommand
from kwiresniff.cli.outcomes import UsageMistake, exit_code, outcome, usage


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line, by default that of this process, and exits; never shows a traceback unasked."""
    words = list(sys.argv[1:] if args is None else args)
    sys.exit(exit_code(lambda: _run(words)))


def _run(words: Sequence[str]) -> object:
    """Runs a command line; returns its exit code, or exits."""
    values: dict[str, Any] = {}
    try:
        code = outcome(lambda: _run_ordinary(words, values), lambda: bool(values.get("verbose")), (UsageMistake,))
    except UsageMistake as mistake:
        return usage(f"kwiresniff {words[0]}", str(mistake))
    if code is not None:
        return code
    from kwiresniff.cli.click_commands import group

    group.main(list(words))


def _run_ordinary(words: Sequence[str], values: dict[str, Any]) -> int | None:
    """Runs an ordinary command line and returns its exit code; None where click has to look at it.

    What it says of the command's options is put into ``values``.
    """
    if not words or words[0] not in COMMANDS or COMPLETION in os.environ:
        return None
    command = import_module(f"kwiresniff.cli.{words[0]}").command
    if not isinstance(command, CaptureCommand):
        return None
    read = values_of(command.options, words[1:])
    if read is None:
        return None
    values.update(read)
    collect_from_here()
    return command.call(read)
