"""Mistakes in SQL that can be told before Spark starts, which takes seconds: what is open, what begins no statement,
and tables that there are not. Everything else Spark tells; what is not certain is left to it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import NamedTuple

from kwiresniff.errors import KwiresniffError

_TOKEN = re.compile(
    r"""(?P<space>\s+|--[^\n]*|/\*.*?\*/)
    |(?P<text>'(?:[^'\\]|\\.|'')*'|"(?:[^"\\]|\\.|"")*")
    |(?P<name>`(?:[^`]|``)*`|[A-Za-z_]\w*)
    |(?P<open>['"`]|/\*)
    |(?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
#: Statements that Spark knows and that can be asked here.
_BEGINNINGS = frozenset({
    "select", "with", "from", "values", "table", "show", "describe", "desc", "explain", "set", "reset", "cache",
    "uncache", "create", "drop", "refresh", "analyze", "declare", "execute", "begin", "reduce", "map",
})  # fmt: skip


#: Words behind FROM and JOIN that are no names.
_NO_TABLES = frozenset({"lateral", "values", "select", "table", "stream"})


class _Token(NamedTuple):
    kind: str
    text: str

    @property
    def word(self) -> str:
        """A name as SQL compares it, a sign as it is."""
        return self.text.strip("`").lower()


def check_sql(sql: str, tables: Collection[str]) -> None:
    """Raises KwiresniffError for a mistake that shows without Spark; ``tables`` are those there are."""
    tokens = list(_tokens(sql))
    if not tokens:
        raise KwiresniffError("query: there is no SQL in it")
    words = [token.word for token in tokens if token.text != "("]
    if words and words[0] not in _BEGINNINGS:
        raise KwiresniffError(f"query: near {words[0].upper()!r}: no statement begins so; one does with SELECT or WITH")
    _check_brackets(tokens)
    known = {*tables, *_named_inside(tokens)}
    for name in _asked_for(tokens):
        if name not in known:
            raise KwiresniffError(f"query: there is no table {name!r}; there are {', '.join(sorted(tables))}")


def _tokens(sql: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(sql):
        kind = str(match.lastgroup)
        if kind == "open":
            raise KwiresniffError(f"query: {match[0]} is opened at character {match.start() + 1} and not closed")
        if kind != "space":
            yield _Token(kind, match[0])


def _check_brackets(tokens: list[_Token]) -> None:
    depth = 0
    for token in tokens:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if depth < 0:
            raise KwiresniffError("query: a ) closes nothing")
    if depth:
        raise KwiresniffError("query: a ( is not closed")


def _named_inside(tokens: list[_Token]) -> Iterator[str]:
    """Tables that the statement defines: ``name AS (`` and ``name (a, b) AS (``, and whatever is created."""
    for at, token in enumerate(tokens):
        if token.kind == "name" and token.word not in ("as", "in", "and", "or", "not", "exists"):
            rest = [one.word for one in tokens[at + 1 : at + 3]]
            if rest[:2] == ["as", "("] or rest[:1] == ["("]:
                yield token.word
    if tokens[0].word in ("create", "cache", "declare", "begin"):
        yield from (token.word for token in tokens if token.kind == "name")


def _asked_for(tokens: list[_Token]) -> Iterator[str]:
    """Names that can be nothing but tables: behind FROM and JOIN, in a SELECT and not in ``extract(day FROM time)``."""
    selects = [False]
    for at, token in enumerate(tokens):
        if token.text == "(":
            selects.append(False)
        elif token.text == ")":
            selects.pop()
        elif token.kind != "name":
            continue
        elif token.word == "select":
            selects[-1] = True
        elif token.word in ("from", "join") and selects[-1] and at and tokens[at - 1].word != "distinct":
            found, behind = (*tokens[at + 1 : at + 3], *[_Token("sign", "")] * 2)[:2]
            if found.kind == "name" and behind.text not in ("(", ".") and found.word not in _NO_TABLES:
                yield found.word
