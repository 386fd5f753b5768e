"""The left margin of ``-v`` and ``-vv``: the offset of a field in its frame, and its bytes, as a disassembly shows
them.

``-v`` shows offset and length in bytes, both counted in the frame without its 4-byte length. ``-vv`` shows the offset
and the bytes in hex. Every byte stands on exactly one row: a structure shows only what comes before its first field.
What was decompressed has a ``+`` before its offset, which then counts in the decompressed data, and no bytes.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.model import Node
from kwiresniff.render.values import is_plain

#: Bytes of one field shown in hex before the rest is only counted: 64 rows of 16.
HEX_LIMIT = 1024


class Gutter:
    """The margin for one frame at one verbosity; every part of it is ``width`` columns wide."""

    __slots__ = ("_frame", "_per_row", "_verbosity", "width")

    def __init__(self, verbosity: int, frame: bytes | None, bytes_per_row: int) -> None:
        self._verbosity = verbosity
        self._frame = frame
        self._per_row = bytes_per_row
        self.width = 0
        if verbosity == 1:
            self.width = 16
        elif verbosity > 1:
            self.width = 8 + 3 * bytes_per_row + 1

    def blank(self) -> str:
        """The margin of a row without bytes."""
        return " " * self.width

    def lines(self, node: Node | None) -> Iterator[str]:
        """The margin of the node's own row, then of the rows that carry on its bytes; at least one."""
        if not self.width or node is None or node.offset < 0:
            yield self.blank()
            return
        # What was withheld is derived too, but it has its place in the frame.
        decompressed = node.derived and not isinstance(node.value, dict)
        offset = f"{'+' if decompressed else ''}{node.offset}"
        if self._verbosity == 1:
            yield f"{offset:>8} {node.length:>6} "
            return
        data = self._own_bytes(node)
        shown = data[:HEX_LIMIT]
        yield self._hex(offset, shown[: self._per_row])
        for at in range(self._per_row, len(shown), self._per_row):
            yield self._hex(str(node.offset + at), shown[at : at + self._per_row])
        if len(shown) < len(data):
            yield f"{f'{len(data) - len(shown):,} more bytes':>{self.width - 2}}  "

    def _hex(self, offset: str, data: bytes) -> str:
        return f"{offset:>7} {data.hex(' '):<{3 * self._per_row}} "

    def _own_bytes(self, node: Node) -> bytes:
        if self._frame is None:
            return b""
        start, stop = own_range(node)
        return self._frame[start:stop]


def own_range(node: Node) -> tuple[int, int]:
    """Where the bytes of a node begin and end that none of those below it has, empty for what has none to be shown."""
    if node.derived or node.offset < 0:
        return 0, 0
    stop = node.offset + node.length
    if any(child.derived for child in node.children) and (is_plain(node) or node.children[0].derived):
        # Compressed records, whose hex would say nothing; or what was withheld, whose hex would show all.
        return 0, 0
    if not is_plain(node):
        own = [child.offset for child in node.children if not child.derived and child.offset >= node.offset]
        stop = min(own, default=node.offset)
    return node.offset, stop
