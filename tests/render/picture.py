"""Draws what a terminal shows as an SVG picture that follows the reader's dark or light theme.

    COLUMNS=120 script -qc "kwiresniff read captures/first-look.pcap -Y 'api in (CreateTopics, Produce)'" /dev/null |
        python -m tests.render.picture README.svg --columns 120 --rows 1-30

Reads text with the escape sequences of ``kwiresniff.render.theme`` from standard input. Every run of text has its own
place on the grid, and no font is fetched, so that it looks the same in a browser, on a project page and in print.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

CELL_WIDTH, CELL_HEIGHT, MARGIN = 8.4, 19, 14

#: Colours by the number of the escape sequence: on light paper and on dark.
COLORS = {
    31: ("#c01c28", "#ff6b6b"),
    32: ("#2e7d32", "#7ccf7c"),
    35: ("#8e3fa8", "#d69bea"),
    36: ("#00708a", "#4fc4d8"),
}
PAPER, INK, DIM = ("#ffffff", "#181a1f"), ("#24292f", "#d6d9de"), ("#80868e", "#7d848e")

#: A space that no SVG reader folds into its neighbours.
NO_BREAK = "\u00a0"

STYLE = """
text {{ font: 14px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; fill: {ink}; }}
.paper {{ fill: {paper}; }} .c1 {{ font-weight: bold; }} .c2 {{ fill: {dim}; }} .c4 {{ text-decoration: underline; }}
.c30 {{ fill: #000000; }} .mark {{ fill: #e5b800; }} {colors}
"""


def runs(line: str) -> Iterator[tuple[str, str]]:
    """The line as (numbers of the escape sequence, text)."""
    numbers = ""
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            numbers = "" if part == "\x1b[0m" else part[2:-1]
        elif part:
            yield numbers, part


def style(theme: int) -> str:
    colors = " ".join(f".c{number} {{ fill: {pair[theme]}; }}" for number, pair in COLORS.items())
    return STYLE.format(ink=INK[theme], paper=PAPER[theme], dim=DIM[theme], colors=colors)


def picture(text: str, columns: int) -> str:
    """An SVG of the text in a terminal of so many columns."""
    lines = text.rstrip("\n").split("\n")
    width, height = columns * CELL_WIDTH + 2 * MARGIN, len(lines) * CELL_HEIGHT + 2 * MARGIN
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}">',
        f"<style>{style(0)}@media (prefers-color-scheme: dark) {{{style(1)}}}</style>",
        f'<rect class="paper" width="{width:.0f}" height="{height}" rx="8"/>',
    ]
    for row, line in enumerate(lines):
        column = 0
        for numbers, run in runs(line):
            start = column + len(run) - len(run.lstrip(" "))
            column += len(run)
            if not (shown := run.strip(" ")):
                continue
            x, y = MARGIN + start * CELL_WIDTH, MARGIN + row * CELL_HEIGHT
            length = f'textLength="{len(shown) * CELL_WIDTH:.1f}" lengthAdjust="spacingAndGlyphs"'
            if "43" in numbers:
                size = f'width="{len(shown) * CELL_WIDTH:.1f}" height="{CELL_HEIGHT}"'
                out.append(f'<rect class="mark" x="{x:.1f}" y="{y}" {size}/>')
            names = " ".join(f"c{number}" for number in numbers.split(";") if number)
            out.append(
                f'<text class="{names}" x="{x:.1f}" y="{y + 14}" {length}>{escape(shown).replace(" ", NO_BREAK)}</text>'
            )
    return "\n".join([*out, "</svg>", ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("output", type=Path)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--rows", default="", help="first-last, counted from 1; several with commas")
    options = parser.parse_args()
    lines = sys.stdin.read().replace("\r", "").split("\n")
    if options.rows:
        spans = [part.split("-") for part in options.rows.split(",")]
        lines = [line for first, last in spans for line in lines[int(first) - 1 : int(last)]]
    options.output.write_text(picture("\n".join(lines), options.columns), encoding="utf-8")


if __name__ == "__main__":
    main()
