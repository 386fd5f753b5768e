"""Blocks of lines: a title, and below it, indented, labelled facts."""

from __future__ import annotations

from typing import Final, TextIO

from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk, pad, wrap
from kwiresniff.render.terminal import glyphs_for, printable
from kwiresniff.render.theme import Paint, Span

INDENT: Final = "  "
_LABEL: Final = 10


class BlockWriter:
    """Writes lines to ``out``; ``width`` None is a pipe, where no line is broken."""

    def __init__(self, out: TextIO, width: int | None, color: bool) -> None:
        self._out = out
        self._width = width
        self._paint = Paint(color, glyphs_for(out))

    def _line(self, label: str, chunks: list[Chunk], indent: str = "") -> None:
        lead: list[Span] = [("", indent)]
        if indent:
            lead.append(("name", pad(label, _LABEL)))
        taken = len(indent) + (_LABEL if indent else 0)
        for number, line in enumerate(wrap(chunks, None if self._width is None else self._width - taken)):
            front = lead if not number else [("", " " * taken)]
            self._out.write(printable(self._paint.spans([*front, *line]), self._out).rstrip() + "\n")


def cluster_words(cluster: str) -> str:
    """A cluster by its id, or by an address in it, which is a text of its own; not escaped."""
    return cluster if cluster.startswith("cluster ") else f"cluster {cluster}"


def cluster_name(cluster: str) -> str:
    """The same, escaped for a terminal."""
    return escape(cluster_words(cluster))
