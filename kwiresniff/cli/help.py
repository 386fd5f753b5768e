"""What ``--help`` and ``--version`` of the command itself print: text that needs neither click nor any other module."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES

from kwiresniff import __version__

#: What a shell sets that asks for completion (click's name for it).
COMPLETION = "_KWIRESNIFF_COMPLETE"

#: Subcommands: what they do, in a line. Each lives in ``kwiresniff.cli.<name>`` as ``command``.
COMMANDS = {
    "read": "Decode captures: one annotated tree per exchange, or JSON.",
    "sniff": "The same, live from a network interface.",
    "stats": "Latency and traffic tables.",
    "export": "Decoded sessions to JSON Lines, JSON, CSV or Parquet.",
    "clients": "Who talks to which broker, with which software, about what.",
    "audit": "Which clients would break on another version of Kafka.",
    "topics": "Who produces to each topic, who consumes, how far behind.",
    "producers": "Idempotent and transactional producers: sequences, transactions.",
    "groups": "What happened in each group: joins, assignments, commits, leaves.",
    "doctor": "What is wrong, the worst first, with evidence and a remedy.",
    "report": "One self-contained page: findings, plots, tables, clients, groups.",
    "decode": "One message from hex, base64 or a file.",
    "schema": "The protocol as data: browse it, extend it, verify it.",
    "pipeline": "Many captures at once, on Spark: to Parquet, and SQL over it.",
    "plugins": "What is loaded, from where, and what it adds.",
}

SUMMARY = """\
Sniffs Kafka's wire protocol: captures in, annotated exchanges and latency out.

  Captures are pcap or pcapng files, plain or compressed (.gz .zst .xz .bz2
  .lz4), folders or globs of them, or "-" for standard input."""

HELP_OF_HELP = "Show this message and exit."
_OPTIONS = {"--version": "Show the version and exit.", "-h, --help": HELP_OF_HELP}


def build() -> str:
    """What this installation is: its hot modules are extension modules, or Python like the rest (hatch_build.py)."""
    module = os.path.join(os.path.dirname(__file__), os.pardir, "base", "fastint")
    return "compiled" if any(os.path.exists(module + suffix) for suffix in EXTENSION_SUFFIXES) else "pure Python"


def version_text() -> str:
    """The line of ``kwiresniff --version``."""
    return f"kwiresniff {__version__} ({build()})"


def help_text() -> str:
    """The page of ``kwiresniff --help``."""
    lines = ["Usage: kwiresniff [OPTIONS] COMMAND [ARGS]...", "", f"  {SUMMARY}", "", "Options:"]
    lines += (f"  {name:10}  {what}" for name, what in _OPTIONS.items())
    lines += ["", "Commands:"]
    lines += (f"  {name:9}  {what}" for name, what in COMMANDS.items())
    return "\n".join(lines)


#: Arguments that are answered without any command.
_ANSWERS: dict[tuple[str, ...], Callable[[], str]] = {
    ("--help",): help_text,
    ("-h",): help_text,
    ("--version",): version_text,
}


def answered() -> bool:
    """Print help or version where nothing else was asked for; False where a command has to run."""
    text = _ANSWERS.get(tuple(sys.argv[1:]))
    if text is None or sys.flags.inspect or COMPLETION in os.environ:
        return False
    try:
        sys.stdout.write(text() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read it has seen enough; what is left goes nowhere
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        return False  # the command says what is wrong with standard output
    return True
