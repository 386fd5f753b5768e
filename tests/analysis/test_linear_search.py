"""Regular expressions in filters: the same verdicts as Python's engine, in bounded time whatever the text."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kwiresniff.analysis.filter import compile_filter, linear_search
from kwiresniff.analysis.filter.linear_search import MAX_SEARCHED_CHARS, search_function
from kwiresniff.errors import FilterError
from tests.support.exchanges import exchange

#: What cannot be told apart by backtracking in the time that the universe has.
EXPLOSIVE = [
    "(a+)+$",
    "^(a|a)*$",
    "(a|aa)+$",
    "(.*a){12}$",
    "(a?){30}a{30}$",
    r"^(\w+\s?)*$",
    "(?=(a+)+$)b",
    "^a*a*a*a*a*$",
]


@pytest.mark.parametrize("pattern", EXPLOSIVE)
def test_an_expression_that_explodes_is_answered(pattern: str) -> None:
    """With as many characters as are looked at, and one that spoils the match at the end."""
    search = search_function(pattern)
    assert not search("a" * (MAX_SEARCHED_CHARS - 1) + "!")
    assert not search("a" * 30 + "!")


def test_what_a_later_python_may_read_otherwise_is_no_warning() -> None:
    """Nobody at the command line knows what to do with a FutureWarning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert search_function("(?i)[[:alpha:]]+")("x:]")


def test_a_hostile_client_id_gets_the_verdict_of_the_expression() -> None:
    wanted = compile_filter('client_id ~ "^(a+)+$"')
    assert [wanted.matches(exchange(client_id=name)) for name in ("a" * 40, "a" * 40 + "!", "b")] == [
        True,
        False,
        False,
    ]


LEAVES = st.sampled_from(
    ["a", "b", "A", "é", ".", "[ab]", "[^a]", r"\w", r"\d", r"\s", "^", "$", r"\b", r"\B", r"\A", r"\Z", "1", " ", "\n"]
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Sequences, repetitions, alternatives, flags and look-arounds of expressions."""
    counts = st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,3}", "{2,}", "*?", "+?", "??"])
    around = st.sampled_from(["({})", "(?i:{})", "(?s:{})", "(?={})", "(?!{})"])
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, counts).map(lambda parts: f"(?:{parts[0]}){parts[1]}"),
        st.tuples(inner, inner).map(lambda parts: f"({parts[0]}|{parts[1]})"),
        st.tuples(around, inner).map(lambda parts: parts[0].format(parts[1])),
        LEAVES.map(lambda leaf: f"(?<={leaf})"),
    )


@settings(max_examples=200)
@given(pattern=st.recursive(LEAVES, larger, max_leaves=8), texts=st.lists(st.text("abA1 \né", max_size=8), max_size=6))
def test_the_verdict_is_that_of_pythons_engine(pattern: str, texts: list[str]) -> None:
    """The automaton alone, which is otherwise asked where Python's engine could take long."""
    compiled = re.compile(pattern)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_search, "MAX_BACKTRACKING_STEPS", -1)
        search = search_function(pattern)
        assert [search(text) for text in texts] == [compiled.search(text) is not None for text in texts]


def test_what_was_remembered_of_texts_is_bounded_and_forgetting_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With room for next to nothing, every text begins anew."""
    monkeypatch.setattr(linear_search, "MAX_REMEMBERED", 10)
    search = search_function("(x|y.?)+[0-9]z$")
    texts = [f"{'xyq' * number}{number % 10}z" for number in range(40)]
    assert [search(text) for text in texts] == [re.search("(x|y.?)+[0-9]z$", text) is not None for text in texts]


@pytest.mark.parametrize(
    ("pattern", "says"),
    [
        (r"(a+)\1", "references to groups are not supported: they can take forever"),
        ("(?>a+)b", "atomic groups are not supported"),
        ("a++b", "possessive repetitions are not supported"),
        ("((a{1,900}){1,900}b?)+", "too large: more than 2000 steps"),
        ("(a", "missing )"),
        ("(" * 2000 + "a" + ")" * 2000, "expected a regular expression (its parentheses nest too deeply)"),
        ("(a|" * 900 + "b" + ")*" * 900, "its parentheses nest too deeply"),
    ],
)
def test_what_cannot_be_searched_is_said_in_one_line(pattern: str, says: str) -> None:
    with pytest.raises(FilterError, match=re.escape(says)):
        compile_filter(f'client_id ~ "{pattern}"')
