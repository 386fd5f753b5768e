"""Colours as they are written: the escape sequences of ECMA-48 (SGR) around pieces of text."""

from __future__ import annotations

from typing import Final

from kwiresniff.render.theme import STYLES, UNICODE, Glyphs, Span

_SGR: Final = {
    "bold": "1",
    "dim": "2",
    "underline": "4",
    "black": "30",
    "red": "31",
    "green": "32",
    "magenta": "35",
    "cyan": "36",
    "on yellow": "43",
}


def _sgr(style: str) -> str:
    """The escape sequence of a style of the table above (rich's own parser costs 20 ms of start-up)."""
    words = style.replace("on yellow", "on_yellow").split()
    return f"\x1b[{';'.join(_SGR[word.replace('_', ' ')] for word in words)}m" if words else ""


_SEQUENCES: Final = {kind: _sgr(style) for kind, style in STYLES.items()}


class Paint:
    """Turns spans into the characters that are written: with escape sequences when ``color``, else plain."""

    __slots__ = ("_sequences", "color", "glyphs")

    def __init__(self, color: bool, glyphs: Glyphs = UNICODE) -> None:
        self.color = color
        self.glyphs = glyphs
        self._sequences = _SEQUENCES if color else dict.fromkeys(_SEQUENCES, "")

    def text(self, kind: str, text: str) -> str:
        """One piece of text in its style."""
        sequence = self._sequences[kind]
        return f"{sequence}{text}\x1b[0m" if sequence and text else text

    def spans(self, spans: list[Span]) -> str:
        """Pieces of a line, joined."""
        if not self.color:
            return "".join([text for _, text in spans])
        return "".join([self.text(kind, text) for kind, text in spans])
