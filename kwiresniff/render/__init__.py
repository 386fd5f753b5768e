"""What people see in a terminal: trees, one-line summaries, tables, problems.

Everything here gets ready data (exchanges, annotated messages, rows of numbers) and a stream to write to. Nothing from
the wire reaches the stream unescaped, and nothing is said by colour alone.
"""

from __future__ import annotations

from kwiresniff.base.lazy_names import lazy_names
from kwiresniff.base.light_typing import TYPE_CHECKING
from kwiresniff.render.escape import escape

if TYPE_CHECKING:
    from kwiresniff.render.problems import problem_line
    from kwiresniff.render.summary import SummaryWriter
    from kwiresniff.render.tables import plain_table, stats_table
    from kwiresniff.render.terminal import console, is_unicode, printable, stdout_for, use_color, width_of
    from kwiresniff.render.tree import TreeWriter

__all__ = [
    "SummaryWriter",
    "TreeWriter",
    "console",
    "escape",
    "is_unicode",
    "plain_table",
    "printable",
    "problem_line",
    "stats_table",
    "stdout_for",
    "use_color",
    "width_of",
]

#: Where each of the others is. Imported on use: a command needs one of them, and all together take 15 ms.
_HOMES = {
    "SummaryWriter": "summary",
    "TreeWriter": "tree",
    "console": "terminal",
    "is_unicode": "terminal",
    "plain_table": "tables",
    "printable": "terminal",
    "problem_line": "problems",
    "stats_table": "tables",
    "stdout_for": "terminal",
    "use_color": "terminal",
    "width_of": "terminal",
}

if not TYPE_CHECKING:
    __getattr__ = lazy_names(__name__, _HOMES)
