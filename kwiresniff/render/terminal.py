"""The abilities of an output stream: colours, width, characters.

``NO_COLOR`` is https://no-color.org, ``FORCE_COLOR`` its counterpart; ``CLICOLOR`` and ``CLICOLOR_FORCE`` are those of
https://bixense.com/clicolors. The clock, the files and the network are none of
this module's business; it only asks a stream what it is.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, TextIO

from kwiresniff.render.theme import ASCII, UNICODE, Glyphs

if TYPE_CHECKING:
    from rich.console import Console

#: Narrower than this nothing can be laid out; narrower terminals wrap as they like.
MIN_WIDTH = 40

#: The width a table may have in a pipe, where there is no terminal to ask: enough for any key, so that none is cut.
PIPE_WIDTH = 1000


def use_color(out: TextIO, when: str | None = None) -> bool:
    """Whether to write colours to ``out``; ``when`` is ``always``, ``never``, or ``auto`` (None)."""
    if when in ("always", "never"):
        return when == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR") or os.environ.get("CLICOLOR_FORCE", "0") not in ("", "0"):
        return True
    if os.environ.get("CLICOLOR") == "0":
        return False
    return out.isatty() and os.environ.get("TERM") != "dumb"


def width_of(out: TextIO) -> int | None:
    """The columns of the terminal behind ``out``, or None for a pipe or a file, where no line is ever cut."""
    if not out.isatty():
        return None
    if (columns := os.environ.get("COLUMNS", "")).isdecimal() and columns != "0":
        return max(int(columns), MIN_WIDTH)
    try:
        return max(os.get_terminal_size(out.fileno()).columns, MIN_WIDTH)
    except (OSError, ValueError):
        return 80


def stdout_for(when: str | None = None) -> tuple[TextIO, int | None, bool]:
    """Standard output, its width and whether to write colours to it: what writers of tables and trees are made with."""
    return sys.stdout, width_of(sys.stdout), use_color(sys.stdout, when)


def is_unicode(out: TextIO) -> bool:
    """Whether ``out`` can print any character (an in-memory stream has no encoding and can)."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    return encoding.lower().replace("_", "-").startswith(("utf", "cp65001"))


def glyphs_for(out: TextIO) -> Glyphs:
    """The drawing characters that ``out`` can print."""
    return UNICODE if is_unicode(out) else ASCII


def printable(text: str, out: TextIO) -> str:
    """The text with what the encoding of ``out`` cannot say as visible escapes."""
    if text.isascii() or is_unicode(out):
        return text
    encoding = out.encoding
    return text.encode(encoding, "backslashreplace").decode(encoding)


def console(color: str | None = None, stderr: bool = False) -> Console:
    """A rich console for standard output or standard error that follows the rules above.

    Nothing it prints is highlighted, and markup is off: text from the wire is never markup.
    """
    from rich.console import Console

    out = sys.stderr if stderr else sys.stdout
    colored = use_color(out, color)
    return Console(
        file=out,
        width=width_of(out) or PIPE_WIDTH,
        color_system="standard" if colored else None,
        force_terminal=True if colored else None,
        no_color=not colored,
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )
