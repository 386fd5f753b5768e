"""The command ``kwiresniff``: its subcommands, imported on use, and what every one of them does with errors.

Exit codes: 0 done, 1 found or failed, 2 usage, 130 interrupted. A broken pipe is not an error. An error is one line
on stderr, ``kwiresniff: what, where, what to do``; with ``-v`` the traceback stands above it.
"""

from __future__ import annotations

import gc
import os
import sys
from importlib import import_module
from typing import Any, NoReturn

import click

from kwiresniff.base.process_memory import GARBAGE_THRESHOLD
from kwiresniff.cli.help import COMMANDS, HELP_OF_HELP, help_text, version_text
from kwiresniff.errors import ExportError, FilterError, KwiresniffError

FAILED = 1
USAGE = 2
INTERRUPTED = 130

#: Set in ``Context.meta`` by ``-v``: errors come with their traceback.
TRACEBACK = "kwiresniff.traceback"


class SuggestingGroup(click.Group):
    """A group that answers a command it does not have with those that are spelt like it."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The subcommand that ``args`` begin with; raises UsageError where there is none."""
        known = self.list_commands(ctx)
        if args and args[0] not in known and not args[0].startswith("-"):
            from difflib import get_close_matches

            near = get_close_matches(args[0], known, n=2, cutoff=0.55)
            hint = f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(known)}"
            ctx.fail(f"no such command {args[0]!r}: {hint}")
        return super().resolve_command(ctx, args)


def _print_help(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()


def add_help(command: click.Command) -> None:
    """Give a command its ``--help``: click looks in catalogues of translations for the text of its own."""
    option = click.option(
        "-h", "--help", is_flag=True, is_eager=True, expose_value=False, callback=_print_help, help=HELP_OF_HELP
    )
    option(command)
    command.add_help_option = False


class CommandGroup(SuggestingGroup):
    """A group that imports a subcommand when it is used and turns every failure into one line and an exit code."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        add_help(self)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"kwiresniff.cli.{name}").command
        if not gc.isenabled():  # see kwiresniff.__main__
            gc.freeze()
            gc.set_threshold(GARBAGE_THRESHOLD)
            gc.enable()
        return command

    def get_help(self, ctx: click.Context) -> str:
        return help_text()

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Runs and exits; never returns, never shows a traceback unasked."""
        kwargs.setdefault("prog_name", "kwiresniff")
        kwargs["standalone_mode"] = False
        try:
            result = super().main(*args, **kwargs)
            sys.stdout.flush()
        except click.UsageError as error:
            sys.exit(_usage(error))
        except (click.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except SystemExit as error:
            if not isinstance(error.__context__, BrokenPipeError):
                raise
            sys.exit(_reader_left())  # click found it first, while printing help
        except BrokenPipeError:
            sys.exit(_reader_left())
        except OSError as error:
            _give_up_stdout()
            click.echo(f"kwiresniff: standard output: {error.strerror}", err=True)
            sys.exit(FAILED)
        sys.exit(result if isinstance(result, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except BrokenPipeError:
            return _reader_left()
        except FilterError as error:
            return _complain(ctx, f"filter: at column {error.position + 1}: {error}", USAGE)
        except ExportError as error:
            _give_up_stdout()
            return _complain(ctx, str(error), FAILED)
        except KwiresniffError as error:
            return _complain(ctx, str(error), FAILED)
        except OSError as error:
            if not error.filename:
                _give_up_stdout()
            return _complain(ctx, f"{error.filename or 'standard output'}: {error.strerror or error}", FAILED)
        except Exception as error:
            what = f"internal error, {type(error).__name__}: {error}; run again with -v and report what it prints"
            return _complain(ctx, what, FAILED)


def one_line(message: str) -> str:
    """A message on one line, without what moves the cursor of a terminal: it may quote a capture or a file's name."""
    line = " ".join(message.split())
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in line)


def _complain(ctx: click.Context, message: str, code: int) -> int:
    """Says what went wrong on one line and returns the exit code. Call it while the exception is being handled."""
    if ctx.meta.get(TRACEBACK):
        import traceback

        traceback.print_exc()
    click.echo(f"kwiresniff: {one_line(message)}", err=True)
    return code


def _usage(error: click.UsageError) -> int:
    """``kwiresniff: read: missing argument 'CAPTURE...'; see 'kwiresniff read --help'``."""
    path = error.ctx.command_path if error.ctx else "kwiresniff"
    command = path.partition(" ")[2]
    message = error.format_message().rstrip(".")
    message = message[:1].lower() + message[1:]
    where = f"{command}: " if command else ""
    click.echo(f"kwiresniff: {where}{one_line(message)}; see '{path} --help'", err=True)
    return USAGE


def _reader_left() -> int:
    """Whoever read our output has seen enough; that is no error."""
    _give_up_stdout()
    return 0


def _give_up_stdout() -> None:
    """What is still buffered goes nowhere, instead of failing again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_version(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        click.echo(version_text())
        ctx.exit()


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version)
def main() -> None:
    """Sniffs Kafka's wire protocol."""
