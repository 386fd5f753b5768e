"""Lines that fit: chunks of spans packed into the width of the terminal, broken where a reader expects it.

A line is a list of chunks; a chunk (a field's name, value and meaning) stays together while it can. Without a width,
in a pipe, a line is never broken and never cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from kwiresniff.render.theme import Span

Chunk: TypeAlias = list[Span]

#: The gap between two chunks of a line. Two spaces, because values can contain one.
GAP = "  "

#: A line gets at least this many columns, however deep its branch: two wide characters.
MIN_ROOM = 4

#: Characters broken into lines at a time: some dozens of lines.
_PIECE = 4096


#: Drawing characters of nearly every line, one column each: their width needs no table of Unicode.
_OWN = str.maketrans("µ→…✓✗¿▁▂▃▄▅▆▇█", "u>.+x<########")


def cells(text: str) -> int:
    """How many columns the text takes in a terminal."""
    if text.isascii() or text.translate(_OWN).isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """The text cut to ``width`` columns, an ellipsis at the end of what was cut."""
    if len(text) <= width and (text.isascii() or cells(text) <= width):
        return text
    room = max(width - len(ellipsis), 0)
    return split(text, room)[0] + ellipsis[: width - room]


def pad(text: str, width: int) -> str:
    """The text filled up with spaces on the right to ``width`` columns, never cut."""
    return text.ljust(width) if text.isascii() else text + " " * (width - cells(text))


def pad_left(text: str, width: int) -> str:
    """The text filled up with spaces on the left to ``width`` columns, never cut."""
    return text.rjust(width) if text.isascii() else " " * (width - cells(text)) + text


def split(text: str, width: int) -> tuple[str, str]:
    """The longest front of the text that takes no more than ``width`` columns, and the rest."""
    if text.isascii():
        return text[:width], text[width:]
    used = 0
    for index, char in enumerate(text):
        used += cells(char)
        if used > width:
            return text[:index], text[index:]
    return text, ""


def join(chunks: Iterable[Chunk]) -> Chunk:
    """All chunks as one line."""
    line: Chunk = []
    for chunk in chunks:
        if line:
            line.append(("", GAP))
        line += chunk
    return line


def wrap(chunks: list[Chunk], width: int | None) -> Iterator[Chunk]:
    """The chunks as one or more lines of at most ``width`` columns.

    A break comes between chunks if possible, else after a space, else anywhere. A long chunk starts on the line it
    comes to when a third of that is still free, so that a record's value stands beside its key.
    """
    if width is None:
        yield join(chunks)
        return
    width = max(width, MIN_ROOM)
    line: Chunk = []
    used = 0
    for chunk in chunks:
        need = sum([cells(text) for _, text in chunk])
        room = width - used - (len(GAP) if line else 0)
        # What is long because of one long text may be broken inside it; short pieces are better kept together.
        flows = need > room and room * 3 > width and max([len(text) for _, text in chunk]) * 2 > width
        if line and need > room and not flows:
            yield line
            line, used, room = [], 0, width
        if line:
            line.append(("", GAP))
            used += len(GAP)
        if need <= room:
            line += chunk
            used += need
            continue
        first, *others = _break(chunk, width, room)
        line += first
        for other in others:
            yield _stripped(line)
            line = other
        used = sum([cells(text) for _, text in line])
    yield line


def _break(chunk: Chunk, width: int, room: int) -> Iterator[Chunk]:
    """A chunk over several lines, of which the first has only ``room`` columns."""
    line: Chunk = []
    # In pieces, so that a value of megabytes is not copied once per line.
    pieces = [(kind, text[at : at + _PIECE], at) for kind, text in chunk for at in range(0, len(text), _PIECE)]
    for kind, text, at in pieces:
        while cells(text) > room:
            front, rest = split(text, room)
            cut = len(front) if rest[:1] == " " else front.rfind(" ") + 1
            # Break after a word, unless that would leave most of the line empty.
            if cut and (width - room + cut) * 3 > width:
                front, rest = text[:cut], text[cut:]
            elif not cut and not at and (width - room) * 3 > width:
                front, rest = "", text
            line.append((kind, front))
            yield _stripped(line)
            line, room, text = [], width, rest.lstrip(" ")
        line.append((kind, text))
        room -= cells(text)
    yield line


def _stripped(line: Chunk) -> Chunk:
    """The line without the spaces at its end."""
    while line and not line[-1][1].rstrip(" "):
        line = line[:-1]
    return [*line[:-1], (line[-1][0], line[-1][1].rstrip(" "))] if line else []
