"""Draws what the terminal shows as an SVG picture: ``python -m tests.render.picture README.svg``.

Reads text with ANSI colours from standard input (``kwiresniff read x.pcap --color always | ...``).
"""

from __future__ import annotations

import argparse
import io
import sys

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

#: The sixteen colours as GNOME's and Apple's terminals show them, roughly: what most readers will see.
_NORMAL = [(46, 52, 54), (204, 0, 0), (62, 134, 6), (176, 140, 0), (52, 101, 164), (117, 80, 123), (6, 130, 134)]
_DARK = [(0, 0, 0), (239, 60, 60), (98, 190, 60), (218, 180, 40), (86, 140, 210), (180, 125, 185), (52, 190, 196)]

THEMES = {
    "light": TerminalTheme((255, 255, 255), (36, 36, 36), [*_NORMAL, (211, 215, 207)]),
    "dark": TerminalTheme((24, 26, 31), (214, 216, 220), [*_DARK, (211, 215, 207)]),
}


def picture(ansi: str, width: int, theme: str = "dark", title: str = "") -> str:
    """An SVG of ``ansi`` in a terminal ``width`` columns wide."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True, color_system="standard")
    console.print(Text.from_ansi(ansi), soft_wrap=False)
    return console.export_svg(title=title, theme=THEMES[theme])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output")
    parser.add_argument("--width", type=int, default=110)
    parser.add_argument("--theme", choices=sorted(THEMES), default="dark")
    parser.add_argument("--title", default="")
    options = parser.parse_args()
    with open(options.output, "w", encoding="utf-8") as file:
        file.write(picture(sys.stdin.read(), options.width, options.theme, options.title))


if __name__ == "__main__":
    main()
