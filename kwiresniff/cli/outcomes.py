"""How commands end: exit codes, and what is said of errors.

Exit codes: 0 done, 1 found or failed, 2 usage, 130 interrupted. A broken pipe is not an error. An error is one line
on stderr, ``kwiresniff: what, where, what to do``; with ``-v`` the traceback stands above it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import click

from kwiresniff.errors import ExportError, FilterError, KwiresniffError

FAILED = 1
USAGE = 2
INTERRUPTED = 130


def outcome(work: Callable[[], object], wants_traceback: Callable[[], bool]) -> object:
    """What ``work`` returns, or the exit code of the error that ended it, which is told on stderr.

    What click raises is left to the caller.
    """

    def complain(message: str, code: int = FAILED) -> int:
        if wants_traceback():
            import traceback

            traceback.print_exc()
        print(f"kwiresniff: {one_line(message)}", file=sys.stderr)
        return code

    try:
        return work()
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        return reader_left()
    except FilterError as error:
        return complain(f"filter: at column {error.position + 1}: {error}", USAGE)
    except ExportError as error:
        _give_up_stdout()
        return complain(str(error))
    except KwiresniffError as error:
        return complain(str(error))
    except OSError as error:
        if not error.filename:
            _give_up_stdout()
        return complain(f"{error.filename or 'standard output'}: {error.strerror or error}")
    except Exception as error:
        what = f"internal error, {type(error).__name__}: {error}; run again with -v and report what it prints"
        return complain(what)


def exit_code(work: Callable[[], object]) -> int:
    """The exit code of the process that does ``work``, which returns its own or nothing, once all is written."""
    try:
        code = work()
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(file=sys.stderr)  # a terminal has written ^C
        return INTERRUPTED
    except BrokenPipeError:
        return reader_left()
    except OSError as error:
        _give_up_stdout()
        print(f"kwiresniff: standard output: {error.strerror}", file=sys.stderr)
        return FAILED
    return code if isinstance(code, int) else 0


def usage(path: str, message: str) -> int:
    """Tells what is wrong with the command line of the command ``path``; returns the exit code.

    ``kwiresniff: read: missing argument 'CAPTURE...'; see 'kwiresniff read --help'``.
    """
    command = path.partition(" ")[2]
    message = message.rstrip(".")
    if message.partition(" ")[0].isalpha():  # click's own begin with a capital; a file keeps its name
        message = message[:1].lower() + message[1:]
    where = f"{command}: " if command else ""
    print(f"kwiresniff: {where}{one_line(message)}; see '{path} --help'", file=sys.stderr)
    return USAGE


def one_line(message: str) -> str:
    """A message on one line, without what moves the cursor of a terminal: it may quote a capture or a file's name."""
    line = " ".join(message.split())
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def reader_left() -> int:
    """Whoever read our output has seen enough; that is no error."""
    _give_up_stdout()
    return 0


def _give_up_stdout() -> None:
    """What is still buffered goes nowhere, instead of failing again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
