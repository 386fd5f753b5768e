"""Tokens into a tree of comparisons.

::

    expression := all ("or" all)*            also ||
    all        := one ("and" one)*           also &&
    one        := "not" one | "(" expression ")" | comparison        also !
    comparison := field [operator value | ["not"] "in" "(" value ("," value)* ")"]
    operator   := == != < <= > >= ~ contains            also matches, which is ~

A field on its own is true when it has a value that is not null, false, zero or empty.
"""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from kwiresniff.analysis.filter.lexer import Token, tokens
from kwiresniff.errors import FilterError

#: Parentheses and nots inside each other. Python's own stack allows some hundreds of the frames this needs.
MAX_NESTING = 50

#: Similar names in the message about an unknown field.
MAX_NEAR = 3

OPERATORS = ("==", "!=", "<", "<=", ">", ">=", "~")
#: Operators that are words, as in Wireshark's display filters, and what they are here.
WORD_OPERATORS = {"contains": "contains", "matches": "~"}
#: Operators that look into a text.
TEXT_OPERATORS = frozenset(WORD_OPERATORS.values())
_AND = frozenset({"and", "&&"})
_OR = frozenset({"or", "||"})
_NOT = frozenset({"not", "!"})


class Comparison(NamedTuple):
    """``operator`` is one of ``OPERATORS``, ``contains``, ``in``, or ``exists`` without values."""

    field: Token
    operator: Token
    values: tuple[Token, ...]


class Not(NamedTuple):
    part: Tree


class AllOf(NamedTuple):
    parts: tuple[Tree, ...]


class AnyOf(NamedTuple):
    parts: tuple[Tree, ...]


Tree: TypeAlias = Comparison | Not | AllOf | AnyOf


def parse(text: str, is_field: Callable[[str], bool], fields: str) -> Tree:
    """The tree of an expression.

    ``is_field`` knows a field's name, ``fields`` is the list of them for messages. Raises FilterError at the first
    token that fits nowhere, saying what would have.
    """
    return _Parser(text, is_field, fields).whole()


class _Parser:
    def __init__(self, text: str, is_field: Callable[[str], bool], fields: str) -> None:
        self._tokens = tokens(text)
        self._at = 0
        self._depth = 0
        self._is_field = is_field
        self._fields = fields

    def whole(self) -> Tree:
        tree = self._any()
        if self._peek.kind != "end":
            raise self._expected("'and', 'or' or the end")
        return tree

    @property
    def _peek(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _skip(self, words: frozenset[str]) -> bool:
        token = self._peek
        if token.kind in ("word", "op") and token.text.lower() in words:
            self._at += 1
            return True
        return False

    def _expected(self, what: str, token: Token | None = None) -> FilterError:
        token = token or self._peek
        return FilterError(f"expected {what}, not {token}", position=token.position)

    def _punctuation(self, text: str) -> bool:
        return self._peek.kind == "punctuation" and self._peek.text == text

    def _any(self) -> Tree:
        parts = [self._all()]
        while self._skip(_OR):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _all(self) -> Tree:
        parts = [self._one()]
        while self._skip(_AND):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _one(self) -> Tree:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise FilterError(f"expected at most {MAX_NESTING} levels of nesting", position=self._peek.position)
        try:
            if self._skip(_NOT):
                return Not(self._one())
            if self._punctuation("("):
                self._at += 1
                tree = self._any()
                if not self._punctuation(")"):
                    raise self._expected("'and', 'or' or ')'")
                self._at += 1
                return tree
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> Tree:
        field = self._peek
        if field.kind != "word" or not self._is_field(field.text):
            near = get_close_matches(field.text, self._fields.split(", "), n=MAX_NEAR)
            listed = f"near it: {', '.join(near)}; all: {self._fields}" if near else self._fields
            raise self._expected(f"a field ({listed}), 'not' or '('")
        self._at += 1
        operator = self._peek
        if operator.kind == "op" and operator.text in OPERATORS:
            self._at += 1
            return Comparison(field, operator, (self._value(),))
        if operator.kind == "word" and (known := WORD_OPERATORS.get(operator.text.lower())) is not None:
            self._at += 1
            return Comparison(field, Token("op", known, operator.position), (self._value(),))
        if operator.kind == "word" and operator.text.lower() == "in":
            self._at += 1
            return self._in(field, operator)
        if operator.kind == "word" and operator.text.lower() == "not":
            self._at += 1
            if not self._skip(frozenset({"in"})):
                raise self._expected("'in'")
            return Not(self._in(field, operator))
        if operator.kind == "end" or self._punctuation(")") or operator.text.lower() in _AND | _OR:
            return Comparison(field, Token("op", "exists", field.position), ())
        raise self._expected(f"one of {' '.join([*OPERATORS, *WORD_OPERATORS])}, 'in', 'and' or 'or'")

    def _in(self, field: Token, operator: Token) -> Comparison:
        if not self._punctuation("("):
            raise self._expected("'(' and a list of values")
        self._at += 1
        values = [self._value()]
        while self._punctuation(","):
            self._at += 1
            values.append(self._value())
        if not self._punctuation(")"):
            raise self._expected("',' or ')'")
        self._at += 1
        return Comparison(field, Token("op", "in", operator.position), tuple(values))

    def _value(self) -> Token:
        if self._peek.kind not in ("word", "string"):
            raise self._expected("a value")
        return self._take()
