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
