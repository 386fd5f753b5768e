"""The bytes of a message, those of the selected field lit."""

from __future__ import annotations

from typing import Final

from kwiresniff.browse.details import MAX_HEX_BYTES, Details
from kwiresniff.browse.line_view import LineView
from kwiresniff.model import Direction, Node
from kwiresniff.render.theme import Span

#: What stands for a byte that is not shown.
_HIDDEN: Final = "··"


class HexView(LineView):
    """Shows the frame of one side of an exchange without its 4-byte length."""

    def __init__(self, id: str) -> None:
        super().__init__(id)
        self._frame = b""
        self._visible = b""
        self._note = ""
        self._title = ""
        self._lit = (0, 0)
        self._shown: tuple[Details | None, Direction] = (None, "request")

    @property
    def per_line(self) -> int:
        """Bytes on a line."""
        return 16 if self.size.width >= 8 + 16 * 4 else 8

    def show_node(self, details: Details | None, side: Direction, node: Node | None) -> None:
        """Shows a side of an exchange, with the bytes of a node lit."""
        if (details, side) != self._shown or details is None:
            self._shown = (details, side)
            self._frame = details.frame(side) if details is not None else b""
            self._visible = details.visible(side) if details is not None else b""
        message = details.message(side) if details is not None else None
        self._note = ""
        if message is not None and not self._frame:
            large = message.size_bytes > MAX_HEX_BYTES
            self._note = "too large to be shown here: see kwiresniff read -vv" if large else "no bytes"
            if details is not None and not details.shows_bytes:
                self._note = "not shown with --redact"
        self._title = f"{side} {len(self._frame):,} bytes" if details is not None else ""
        self._lit = (0, 0)
        if node is not None and node.offset >= 0:
            decompressed = node.derived and not isinstance(node.value, dict)
            if decompressed:
                self._title = f"+{node.offset} in decompressed data, {node.length} bytes {node.type}"
            else:
                self._lit = (node.offset, node.offset + node.length)
                self._title = f"{node.offset} in {side}, {node.length} bytes {node.type}"
        self.show(self._lit[0] // self.per_line if self._lit[1] else None)

    def header(self, width: int) -> list[Span]:
        return [("heading", self._title)]

    @property
    def line_count(self) -> int:
        return -(-len(self._frame) // self.per_line) if self._frame else int(bool(self._note))

    def line(self, number: int, width: int) -> list[Span]:
        if not self._frame:
            return [("dim", self._note)]
        size = self.per_line
        start = number * size
        spans: list[Span] = [("dim", f"{start:06x} ")]
        text: list[Span] = []
        low, high = self._lit
        for at in range(start, start + size):
            if at >= len(self._frame):
                spans.append(("", "   "))
                continue
            byte = self._frame[at]
            kind = "lit" if low <= at < high else "value" if self._visible[at] else "dim"
            spans += [
                (kind, f"{byte:02x}" if self._visible[at] else _HIDDEN),
                ("lit" if low < at + 1 < high else "", " "),
            ]
            seen = self._visible[at] and 0x20 <= byte < 0x7F
            text.append((kind if seen else "lit" if kind == "lit" else "dim", chr(byte) if seen else "·"))
        return [*spans, ("", " "), *text]
