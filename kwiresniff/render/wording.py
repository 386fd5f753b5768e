"""The wording of trees for the writers of rows as bytes: parts of a row, made by the functions that draw them.

A row is UTF-8. With colours or without, it can be written as it is; for a terminal, where it has to be folded, each
text is led by the mark of its kind and each part but the first by a mark, too, so that ``chunks_of`` can take the row
apart again. Marks are control characters, which no text has: all is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from kwiresniff.base.tree_sizes import is_range
from kwiresniff.model import Node
from kwiresniff.render import format_units
from kwiresniff.render.batch_rows import hidden_batches, hidden_records, records_facts
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import GAP, Chunk
from kwiresniff.render.style import Style
from kwiresniff.render.theme import STYLES, Paint
from kwiresniff.render.tree_rows import IDENTIFYING, hidden_elements
from kwiresniff.render.values import SLACK, bytes_value, hidden_parts, leaf, meaning_spans, more, scalar, text_value
from kwiresniff.render.version_ranges import range_head, version_range

#: The mark between two parts of a row, and those of the kinds.
PART: Final = "\x1f"
MARKS: Final = {kind: chr(0x0E + index) for index, kind in enumerate(STYLES)}
_KINDS: Final = {mark: kind for kind, mark in MARKS.items()}
_SPANS: Final = "([\x0e-\x1e])([^\x0e-\x1e]*)"
assert PART not in _KINDS

#: Stands for no limit to the length of a value.
UNLIMITED: Final = 1 << 40


class Words:
    """See ``kwiresniff.codec.text.tree_wording``. ``marked`` rows can be taken apart."""

    def __init__(self, paint: Paint, style: Style, *, marked: bool) -> None:
        self._paint = paint
        self._style = style
        self._marked = marked
        self.limit = UNLIMITED if style.value_limit is None else style.value_limit
        self.slack = SLACK
        self.gap = (PART if marked else GAP).encode()

    def on(self, kind: str) -> bytes:
        return (MARKS[kind] if self._marked else self._paint.text(kind, "x").partition("x")[0]).encode()

    def off(self, kind: str) -> bytes:
        return b"" if self._marked else self._paint.text(kind, "x").partition("x")[2].encode()

    def span(self, kind: str, text: str) -> bytes:
        return (MARKS[kind] + text if self._marked else self._paint.text(kind, text)).encode()

    def chunk(self, chunk: Chunk) -> bytes:
        """One part of a row."""
        if self._marked:
            return "".join([MARKS[kind] + text for kind, text in chunk]).encode()
        return self._paint.spans(chunk).encode()

    def row(self, chunks: Sequence[Chunk]) -> bytes:
        """A whole row."""
        if self._marked:
            return self.gap.join([self.chunk(chunk) for chunk in chunks])
        if self._paint.color:
            return GAP.join([self._paint.spans(chunk) for chunk in chunks]).encode()
        return GAP.join(["".join([text for _, text in chunk]) for chunk in chunks]).encode()

    def arrow(self) -> bytes:
        return self.span("dim", f" {self._style.glyphs.arrow} ")

    def identifies(self, name: str) -> bool:
        return name in IDENTIFYING

    def is_range(self, names: list[str]) -> bool:
        return is_range(names)

    def key(self, name: str) -> bytes:
        return self.span("key", escape(name))

    def label(self, name: str, width: int) -> bytes:
        return self.span("name", f"{escape(name):<{width}} ")

    def value(self, name: str, type: str, value: Any, meaning: str, identifies: bool) -> bytes:
        return self.chunk(leaf(Node(name, type, 0, 1, value, meaning), self._style, ident=identifies)[1:])

    def error(self, name: str, width: int, value: int, meaning: str) -> bytes:
        return self.chunk(leaf(Node(name, "INT16", 0, 2, value, meaning), self._style, name_width=width))

    def opened(self, name: str, content: str, version: int) -> bytes:
        return self.key(name) + self.span("meaning", f" ({content} v{version})")

    def element(self, type: str, value: Any, meaning: str) -> bytes:
        return self.chunk([scalar(value, self._style), *meaning_spans(Node("", type, 0, 1, value, meaning))])

    def text(self, value: str | bytes, quote: bool) -> str:
        if isinstance(value, str):
            return text_value(value, self._style, quote=quote)
        return bytes_value(value, self._style, quote=quote)

    def more(self, count: int, unit: str) -> bytes:
        return more(count, unit, self._style).encode()

    def size(self, size: int) -> bytes:
        return format_units.size(size).encode()

    def clock(self, second: int) -> bytes:
        return format_units.clock(second * 1_000_000_000, 3)[:-3].encode()

    def instant(self, second: int) -> bytes:
        return format_units.instant(second * 1_000_000_000, 3)[:-4].encode()

    def batch(self, count: int, size: int, compressed: int, uncompressed: int, codec: int) -> bytes:
        return self.row(records_facts(count, codec, size, compressed, uncompressed, self._style))

    def ranges(self, name: str, count: int) -> bytes:
        return self.chunk(range_head(escape(name), count))

    def version_range(self, name: str, low: int, high: int) -> bytes:
        return self.chunk(version_range(name, low, high))

    def hidden_elements(self, name: str, hidden: int, count: int, calm: bool) -> bytes:
        return self.row([hidden_elements(escape(name), hidden, count, self._style, calm=calm)])

    def hidden_batches(self, hidden: int, size: int) -> bytes:
        return self.row([hidden_batches(hidden, size, self._style, calm=True)])

    def hidden_records(self, hidden: int) -> bytes:
        return self.row([hidden_records(hidden, self._style, calm=True)])

    def hidden_parts(self, hidden: int) -> bytes:
        return self.chunk([hidden_parts(hidden, self._style)])


def chunks_of(row: bytes) -> list[Chunk]:
    """The parts of a marked row."""
    return [[(_KINDS[mark], text) for mark, text in re.findall(_SPANS, part)] for part in row.decode().split(PART)]
