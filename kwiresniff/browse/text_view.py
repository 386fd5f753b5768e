"""Tables and blocks as other commands print them, as lines of which some lead to exchanges."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.segment import Segment
from rich.text import Text
from textual.strip import Strip

from kwiresniff.browse.blocks import Block, Target
from kwiresniff.browse.line_view import LineView
from kwiresniff.render.theme import Span


class TextView(LineView):
    """Shows blocks; the cursor goes from line to line."""

    def __init__(self, id: str, note: str) -> None:
        super().__init__(id)
        self._note = note
        self._blocks: Sequence[Block] = ()
        self._lines: list[Text] = []
        self._targets: list[Target | None] = []
        self._numbers: list[int] = []  # of the block, for each line

    def show_blocks(self, blocks: Sequence[Block], note: str) -> None:
        """Shows these blocks, or the note where there is none."""
        self._blocks, self._note = blocks, note
        self._write()

    def on_resize(self) -> None:
        self._write()

    def _write(self) -> None:
        """Writes the blocks for the width that there is."""
        self._lines, self._targets, self._numbers = [], [], []
        width = max(self.size.width, 40)
        for number, block in enumerate(self._blocks):
            out = io.StringIO()
            block.write(out, width)
            lines = out.getvalue().splitlines()
            self._lines += [Text.from_ansi(line) for line in lines]
            self._numbers += [number] * len(lines)
            self._targets += [block.target] * len(lines) if block.targets is None else block.targets(width)
        self.show()

    @property
    def target(self) -> Target | None:
        """What the line of the cursor leads to."""
        return self._targets[self.cursor] if self.cursor < len(self._targets) else None

    @property
    def line_count(self) -> int:
        return len(self._lines) or int(bool(self._note))

    def line(self, number: int, width: int) -> list[Span]:
        return [("dim", self._note)] if not self._lines else [("", self._lines[number].plain)]

    def render_line(self, y: int) -> Strip:
        number = y + round(self.scroll_offset.y)
        if not 0 <= number < len(self._lines):
            return super().render_line(y)
        base = self.rich_style
        if number == self.cursor and self.has_focus:
            base = self.get_component_rich_style("line--focused")
        elif number == self.cursor or (
            self._numbers[number] == self._numbers[self.cursor] and self._targets[number] is self.target is not None
        ):
            base = self.get_component_rich_style("line--cursor")
        segments = [
            Segment(one.text, base + one.style if one.style else base)
            for one in self._lines[number].render(self.app.console)
            if one.text != "\n"
        ]
        return Strip(segments).adjust_cell_length(self.size.width, base)
