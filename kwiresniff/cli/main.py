"""The command ``kwiresniff``: one line and an exit code for every way in which a command may end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Any, NoReturn

import click

from kwiresniff import __version__
from kwiresniff.cli.click_commands import TRACEBACK, SuggestingGroup
from kwiresniff.cli.habits import called_here, with_subcommand
from kwiresniff.cli.outcomes import INTERRUPTED, exit_code, outcome, reader_left, usage

#: Subcommands: what they do, in a line. Each lives in ``kwiresniff.cli.<name>`` as ``command``.
COMMANDS = {
    "read": "Decode captures: one annotated tree per exchange, or JSON.",
    "sniff": "The same, live from a network interface.",
    "stats": "Latency and traffic tables.",
    "query": "SQL over captures, on a laptop.",
    "export": "Decoded sessions to JSON Lines, JSON, CSV or Parquet.",
    "clients": "Who talks to which broker, with which software, about what.",
    "audit": "Which clients would break on another version of Kafka.",
    "topics": "Who produces to each topic, who consumes, how far behind.",
    "producers": "Idempotent and transactional producers: sequences, transactions.",
    "groups": "What happened in each group: joins, assignments, commits, leaves.",
    "flows": "Who produces to what, who consumes it: table, JSON, graph.",
    "browse": "A full-screen program: exchanges, trees, bytes, findings.",
    "follow": "One connection, client, group or producer, message by message.",
    "doctor": "What is wrong, the worst first, with evidence and a remedy.",
    "diff": "What changed from one capture to another, told from noise.",
    "report": "One self-contained page: findings, plots, tables, groups.",
    "decode": "One message from hex, base64 or a file.",
    "schema": "The protocol as data: browse it, extend it, verify it.",
    "pipeline": "Many captures at once, on Spark: to Parquet, and SQL over it.",
    "plugins": "What is loaded, from where, and what it adds.",
}


class CommandGroup(SuggestingGroup):
    """A group that imports a subcommand when it is used and turns every failure into one line and an exit code."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Reads the command line up to the subcommand; prints help and the version, which a reader may leave early."""
        try:
            return super().make_context(*args, **kwargs)
        except BrokenPipeError:
            sys.exit(reader_left())

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"kwiresniff.cli.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the subcommand; returns what it returns, or the exit code of the error that ended it."""
        work = super().invoke
        return outcome(lambda: work(ctx), lambda: bool(ctx.meta.get(TRACEBACK)))


def build() -> str:
    """The build of this installation: with its hot modules as extension modules, or pure Python (hatch_build.py)."""
    module = os.path.join(os.path.dirname(__file__), os.pardir, "base", "fastint")
    return "compiled" if any(os.path.exists(module + suffix) for suffix in EXTENSION_SUFFIXES) else "pure Python"


@click.group(
    cls=CommandGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    no_args_is_help=False,
)
@click.version_option(__version__, message=f"%(prog)s %(version)s ({build()})")
def group() -> None:
    """Sniffs Kafka's wire protocol: captures in, annotated exchanges and latency out.

    Captures are pcap or pcapng files, plain or compressed (.gz .zst .xz .bz2 .lz4), folders or globs of them, or "-"
    for standard input.
    """


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Runs the command line, by default that of this process, and exits; never shows a traceback unasked."""
    sys.exit(exit_code(lambda: _run(args)))


def _run(args: Sequence[str] | None) -> object:
    """Returns the result of the command, or the exit code of a mistake in the command line."""
    line = with_subcommand(sys.argv[1:] if args is None else args, list(COMMANDS))
    try:
        return group.main(line, prog_name="kwiresniff", standalone_mode=False)
    except click.NoSuchOption as error:
        hint = called_here(error.option_name)
        message = f"no such option {error.option_name}: {hint}" if hint else error.format_message()
        return usage(error.ctx.command_path if error.ctx else "kwiresniff", message)
    except click.UsageError as error:
        return usage(error.ctx.command_path if error.ctx else "kwiresniff", error.format_message())
    except click.Abort:
        return INTERRUPTED
