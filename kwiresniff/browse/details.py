"""What is shown of one exchange: its rows as a tree, and which bytes of its frames may be seen."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Final

from kwiresniff.model import Direction, Dissection, Exchange, Message, Node
from kwiresniff.render.gutter import own_range
from kwiresniff.render.headline import headline
from kwiresniff.render.line_wrapping import join
from kwiresniff.render.paint import Paint
from kwiresniff.render.style import Style
from kwiresniff.render.theme import UNICODE, Span
from kwiresniff.render.tree import TreeWriter
from kwiresniff.render.tree_row import Row

#: Bytes of a frame up to which its hex is shown; a larger one has that of ``decode`` and ``read -vv``.
MAX_HEX_BYTES: Final = 1 << 20
#: Characters of a value in a tree; its bytes are beside it.
MAX_VALUE_CHARS: Final = 400

#: ``dissect(exchange, which, folded)``
Dissect = Callable[[Exchange, Direction, bool], "Dissection | None"]


class Details:
    """The rows of ``exchange``; with ``whole`` one for every field. Without ``shows_bytes`` there are no frames."""

    def __init__(
        self, exchange: Exchange, dissect: Dissect, files: list[str], *, whole: bool, shows_bytes: bool = True
    ) -> None:
        self.exchange = exchange
        self.shows_bytes = shows_bytes
        self._dissect = dissect
        self._visible: dict[Direction, bytes] = {}
        writer = TreeWriter(io.StringIO(), MAX_VALUE_CHARS, False, int(whole), files=files)
        read = [dissect(exchange, which, not whole) for which in ("request", "response")]
        self.rows: list[Row] = writer.branches(exchange, *read)

    def headline(self) -> list[Span]:
        """The line above the tree."""
        return join(headline(self.exchange, Paint(False), Style(UNICODE)))

    def message(self, which: Direction) -> Message | None:
        """A side of the exchange."""
        return self.exchange.request if which == "request" else self.exchange.response

    def frame(self, which: Direction) -> bytes:
        """The frame of a side, empty where there is none, or it is too large to be shown."""
        message = self.message(which)
        frame = message.frame if message is not None and self.shows_bytes else None
        return frame if frame is not None and len(frame) <= MAX_HEX_BYTES else b""

    def visible(self, which: Direction) -> bytes:
        """For each byte of a frame, 1 where it may be shown: not those of secrets, nor what nobody could read."""
        found = self._visible.get(which)
        if found is None:
            frame = self.frame(which)
            dissection = self._dissect(self.exchange, which, False) if frame else None
            found = self._visible[which] = _visible(dissection, len(frame))
        return found


def _visible(dissection: Dissection | None, size: int) -> bytes:
    mask = bytearray(size)
    todo: list[Node] = [dissection.root] if dissection is not None else []
    derived = False
    while todo:
        node = todo.pop()
        derived = derived or node.derived
        start, stop = own_range(node)
        stop = min(stop, size)
        if start < stop:
            mask[start:stop] = b"\1" * (stop - start)
        todo += node.children
    if dissection is not None and not derived and not dissection.problems and dissection.end == size:
        return b"\1" * size  # what no field has are numbers of tagged fields
    return bytes(mask)
