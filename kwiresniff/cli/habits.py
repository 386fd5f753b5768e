"""Command lines as users of tcpdump and tshark type them.

What means the same there and here works (``-r FILE``, ``-i NAME``, ``-D`` without a subcommand). What is called
something else here is answered with its name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

#: Options without a subcommand, and the subcommand that they mean; -n, -q and -v may stand in one word before them.
_SUBCOMMANDS: Final = (
    (re.compile(r"-[nqv]*D|--list-interfaces"), "sniff"),
    (re.compile(r"-[nqv]*r.*"), "read"),
    (re.compile(r"-[nqv]*i.*|--interface(?:=.*)?"), "sniff"),
)
#: Options behind which the name of a file or an interface stands, which may be that of a subcommand.
_NAMES: Final = re.compile(r"-[nqv]*[riw]|--interface|--write")
#: Options that begin a command line of this program itself.
_OWN: Final = frozenset({"-h", "--help", "--version"})

#: Options of tcpdump, tshark, jq and kcat that are called something else here.
_CALLED: Final = {
    "-T": "-o chooses the form of the output; 'kwiresniff read' has tree, summary, json, jsonl; -e FIELD prints fields",
    "-E": "fields of -e are separated by tabs; -o csv prints tables as CSV",
    "-z": "statistics are commands: stats, topics, groups, clients, flows",
    "-j": "-e FIELD prints fields; jq chooses members of -o jsonl",
    "-x": "-vv prints the bytes of each field",
    "-X": "-vv prints the bytes of each field",
    "-A": "records are printed as text; -vv prints the bytes of each field",
    "-J": "'kwiresniff plugins' lists plugins, -o chooses the form of the output",
    "--json": "it is -o json, or -o jsonl for one object a line, where a command prints JSON",
    "--jsonl": "it is -o jsonl",
    "--csv": "it is -o csv where there is a table; 'kwiresniff export -O FILE.csv' writes exchanges",
    "--fields": "-e FIELD prints fields",
    "-V": "trees are what 'kwiresniff read' prints; -v adds offsets; 'kwiresniff --version' tells the version",
}


def with_subcommand(args: Sequence[str], commands: Sequence[str]) -> list[str]:
    """The command line with the subcommand that it means where it begins with an option instead."""
    named = (arg for before, arg in zip(("", *args), args, strict=False) if not _NAMES.fullmatch(before))
    if not args or not args[0].startswith("-") or args[0] in _OWN or any(arg in commands for arg in named):
        return list(args)
    for option, name in _SUBCOMMANDS:
        if any(option.fullmatch(arg) for arg in args):
            return [name, *args]
    return list(args)


def called_here(option: str) -> str:
    """The name here of an option of another program; empty where none is known."""
    return _CALLED.get(option, "")
