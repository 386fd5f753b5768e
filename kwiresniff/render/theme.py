"""Colours and marks: what a kind of thing looks like, in one place.

Only the sixteen ANSI colours are used, because only those follow the reader's own theme, and of them only the ones
that can be read on black and on white: red, green, magenta, cyan, bold and dim. A problem is black on yellow, like a
highlighter, because yellow letters vanish on white paper. Nothing is said by colour alone.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

#: Every kind of thing that is shown, and its style in rich's words.
STYLES: Final[dict[str, str]] = {
    "": "",
    "api": "bold",
    "bad": "bold red",
    "client": "cyan",
    "dim": "dim",
    "good": "green",
    "ident": "bold",
    "key": "cyan",
    "meaning": "green",
    "name": "dim",
    "heading": "bold underline",
    "title": "bold",
    "value": "",
    "wait": "magenta",
    "warn": "black on yellow",
}

#: The kinds of severities.
SEVERITY_KINDS: Final = {"error": "bad", "warning": "warn", "info": "dim"}

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

#: A piece of a line: what kind of thing it is, and its text, already escaped.
Span: TypeAlias = tuple[str, str]


class Glyphs(NamedTuple):
    """The few drawing characters, in Unicode or in ASCII."""

    branch: str
    last: str
    pipe: str
    blank: str
    arrow: str
    ellipsis: str
    micro: str
    times: str
    marks: dict[str, str]
    bars: str
    rule: str


UNICODE: Final = Glyphs(
    branch="├─ ",
    last="└─ ",
    pipe="│  ",
    blank="   ",
    arrow="→",
    ellipsis="…",
    micro="µ",
    times="×",  # noqa: RUF001 - the multiplication sign is meant
    marks={
        "ok": "✓",
        "error": "✗",
        "no_response_expected": "→",
        "unanswered": "?",
        "request_missing": "¿",
        "undecoded": "!",
    },
    bars=" ▁▂▃▄▅▆▇█",
    rule="─",
)

ASCII: Final = Glyphs(
    branch="|- ",
    last="`- ",
    pipe="|  ",
    blank="   ",
    arrow="->",
    ellipsis="...",
    micro="u",
    times="x",
    marks={
        "ok": "+",
        "error": "x",
        "no_response_expected": ">",
        "unanswered": "?",
        "request_missing": "<",
        "undecoded": "!",
    },
    bars=" .:-=+*#@",
    rule="-",
)

#: The style of an outcome. What went wrong is red, what only cannot be judged is marked.
OUTCOME_STYLE: Final = {
    "ok": "good",
    "error": "bad",
    "no_response_expected": "dim",
    "unanswered": "warn",
    "request_missing": "dim",
    "undecoded": "warn",
}

#: An outcome in words, for every outcome but ok.
OUTCOME_WORDS: Final = {
    "ok": "",
    "error": "error",
    "no_response_expected": "no response expected",
    "unanswered": "unanswered",
    "request_missing": "request missing",
    "undecoded": "undecoded",
}


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
