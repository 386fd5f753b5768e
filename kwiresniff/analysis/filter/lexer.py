"""A filter expression cut into tokens.

A quoted string ends at the next quote of its kind; ``\\"`` is a quote inside it and every other backslash stands
for itself, so that regular expressions need no second layer of escapes.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from kwiresniff.errors import FilterError

#: Far beyond what a person writes; bounds time and nesting for filters from other programs.
MAX_EXPRESSION_CHARS = 16_384

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<op>==|!=|<=|>=|<|>|~|&&|\|\||!|=|&|\|)
      | (?P<punctuation>[(),])
      | (?P<word>[^\s()!=<>~,"'&|]+)
      | (?P<open>["'])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)


class Token(NamedTuple):
    """``kind`` is ``word``, ``string``, ``op``, ``punctuation`` or ``end``; ``position`` is its 0-based column."""

    kind: str
    text: str
    position: int

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end"
        return f'"{self.text}"' if self.kind == "string" else f"'{self.text}'"


def tokens(text: str) -> list[Token]:
    """The tokens of an expression, the last one of kind ``end``; raises FilterError for an open quote."""
    if len(text) > MAX_EXPRESSION_CHARS:
        raise FilterError(f"expected at most {MAX_EXPRESSION_CHARS} characters", position=MAX_EXPRESSION_CHARS)
    result: list[Token] = []
    at = 0
    while True:
        match = _TOKEN.match(text, at)
        assert match is not None and match.lastgroup is not None  # every character starts one of the alternatives
        kind, start, at = match.lastgroup, match.start(match.lastgroup), match.end()
        found = match[kind]
        if kind == "open":
            raise FilterError(f"expected a closing {found} for the quote opened here", position=start)
        if kind == "string":
            found = found[1:-1].replace("\\" + found[0], found[0])
        result.append(Token(kind, found, start))
        if kind == "end":
            return result
