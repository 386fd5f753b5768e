"""The manual page, made of what ``--help`` says: ``python -m tests.cli.manual > docs/kwiresniff.1``."""

from __future__ import annotations

import re
from collections.abc import Iterator

import click

from kwiresniff import __version__
from kwiresniff.cli.click_commands import SharedOption, TrafficCommand
from kwiresniff.cli.main import COMMANDS, group

_FILES = """\
.SH EXIT STATUS
0 done. 1 the command found what it exists to find (audit, doctor), or something failed, or \\-\\-strict and there were
problems. 2 wrong usage. 130 interrupted, after what was decoded so far has been printed.
.SH ENVIRONMENT
.TP
.B KWIRESNIFF_PAGER, PAGER
What long output of read goes through on a terminal; less by default.
.TP
.B KWIRESNIFF_REDACT_KEY
The key of \\-\\-redact\\-key; a file that \\-\\-redact\\-key\\-file names comes before it.
.TP
.B NO_COLOR, FORCE_COLOR, CLICOLOR, CLICOLOR_FORCE
Whether output has colours where \\-\\-color does not say.
.SH SEE ALSO
.BR tcpdump (8),
.BR tshark (1),
.BR jq (1)
"""


def roff(text: str) -> str:
    """Text as roff prints it: nothing in it is a request or an escape."""
    text = re.sub(r"``?([^`]+)``?", r"\1", " ".join(text.split()))
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text.startswith((".", "'")) else text


def manual() -> str:
    """The page as roff, with the macros of man(7)."""
    return "\n".join(_lines()) + "\n" + _FILES


def _lines() -> Iterator[str]:
    lead, _, inputs = (group.help or "").partition("\n\n")
    yield f'.TH KWIRESNIFF 1 "" "kwiresniff {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"kwiresniff \\- {roff(lead[0].lower() + lead[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield ".B kwiresniff"
    yield ".I COMMAND\n[\\fIOPTION\\fR]... [\\fIARGUMENT\\fR]..."
    yield ".SH DESCRIPTION"
    yield roff(inputs)
    shared: dict[str, tuple[str, str]] = {}
    yield ".SH COMMANDS"
    with click.Context(group, info_name="kwiresniff", **group.context_settings) as context:
        for name in COMMANDS:
            command = group.get_command(context, name)
            assert command is not None
            yield from _command(context, f"kwiresniff {name}", command, shared)
    yield ".SH SHARED OPTIONS"
    yield "Those of all commands that read traffic."
    for names, text in shared.values():
        yield from _entry(names, text)


def _command(
    above: click.Context, name: str, command: click.Command, shared: dict[str, tuple[str, str]]
) -> Iterator[str]:
    with click.Context(command, info_name=name, parent=above) as context:
        yield f".SS {roff(name)} {roff(' '.join(command.collect_usage_pieces(context)))}"
        for number, paragraph in enumerate((command.help or "").split("\n\n")):
            if number:
                yield ".PP"
            yield roff(paragraph)
        for param in command.get_params(context):
            record = param.get_help_record(context)
            if record is None or not isinstance(param, click.Option) or "--help" in record[0]:
                continue
            if isinstance(param, SharedOption) and isinstance(command, TrafficCommand):
                shared.setdefault(record[0], record)
            else:
                yield from _entry(*record)
        if isinstance(command, click.Group):
            for inner in command.list_commands(context):
                found = command.get_command(context, inner)
                assert found is not None
                yield from _command(context, f"{name} {inner}", found, shared)


def _entry(names: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f".B {roff(names)}"
    yield roff(text)


if __name__ == "__main__":
    print(manual(), end="")
