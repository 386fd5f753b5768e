"""Blocks of lines: a title, and below it, indented, labelled facts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TextIO

from kwiresniff.model import file_index, packet_number
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk, cells, pad, wrap
from kwiresniff.render.paint import Paint
from kwiresniff.render.terminal import glyphs_for, printable
from kwiresniff.render.theme import Span

INDENT: Final = "  "
_LABEL: Final = 10


class BlockWriter:
    """Writes lines to ``out``; ``width`` None is a pipe, where no line is broken. ``files`` are the captures."""

    def __init__(self, out: TextIO, width: int | None, color: bool, files: Sequence[str] = ()) -> None:
        self._out = out
        self._width = width
        self._paint = Paint(color, glyphs_for(out))
        self._files = files

    def _line(self, chunks: list[Chunk], lead: Sequence[Span] = ()) -> None:
        """Chunks behind ``lead``, below which further lines are left blank."""
        taken = sum([cells(text) for _, text in lead])
        for number, line in enumerate(wrap(chunks, None if self._width is None else self._width - taken)):
            front = lead if not number else [("", " " * taken)]
            self._out.write(printable(self._paint.spans([*front, *line]), self._out).rstrip() + "\n")

    def _fact(self, label: str, chunks: list[Chunk]) -> None:
        """A line of a block behind a label."""
        self._line(chunks, [("", INDENT), ("name", pad(label, _LABEL))])

    def _between(self, index: int) -> None:
        """An empty line before every block but the first."""
        if index:
            self._out.write("\n")

    def _packet_of(self, packet: int) -> str:
        """``packet 4``, and of which file where there are several."""
        file = f" of {escape(self._files[file_index(packet)])}" if len(self._files) > 1 else ""
        return f"packet {packet_number(packet)}{file}"

    def _in_packet(self, packet: int) -> str:
        """The same with the file first."""
        file = f"{escape(self._files[file_index(packet)])} " if len(self._files) > 1 else ""
        return f"{file}packet {packet_number(packet)}"


def cluster_words(cluster: str) -> str:
    """A cluster by its id, or by an address in it, which is a text of its own; not escaped."""
    return cluster if cluster.startswith("cluster ") else f"cluster {cluster}"


def cluster_name(cluster: str) -> str:
    """The same, escaped for a terminal."""
    return escape(cluster_words(cluster))
