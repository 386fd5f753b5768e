"""What people see in a terminal: trees, one-line summaries, tables, problems.

Everything here gets ready data (exchanges, annotated messages, rows of numbers) and a stream to write to. Nothing from
the wire reaches the stream unescaped, and nothing is said by colour alone.
"""

from __future__ import annotations

from kwiresniff.render.escape import escape
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
