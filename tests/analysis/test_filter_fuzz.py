"""Whatever is typed is either understood or answered with FilterError; what is understood never fails on a body."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kwiresniff.analysis.filter import Filter, compile_filter
from kwiresniff.analysis.filter.fields import fields
from kwiresniff.errors import FilterError
from kwiresniff.model import OUTCOMES
from tests.support.exchanges import exchange

WORDS = [
    *fields(),
    "request.body.acks", "response.body.topics[0].b", "==", "!=", "<", "<=", ">", ">=", "~", "in", "not", "and", "or",
    "(", ")", ",", "&&", "||", "!", "null", "5", "-1", "1.5", "100ms", "1MB", "Fetch", "NONE", "ok", "orders", '"a b"',
    "'", '"', "10.0.0.1", ":9092", "[::1]:1", "2026-01-01", "(a", "**", "\\", "é", "\0", "٣",
]  # fmt: skip

BODIES: st.SearchStrategy[dict[str, Any]] = st.dictionaries(
    st.sampled_from(["a", "b", "topics", "name", "topic", "topic_id", "partitions", "group_id", "key", "records"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.binary(max_size=5) | st.just("NaN"),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["a", "b", "name", "topic_id", "records", "partition"]), inner, max_size=3
            )
        ),
        max_leaves=8,
    ),
    max_size=4,
)


def understood(text: str) -> Filter | None:
    try:
        return compile_filter(text)
    except FilterError as error:
        assert 0 <= error.position <= len(text)
        assert str(error).startswith("expected ")
        return None


@given(st.text())
def test_any_text_is_understood_or_refused_with_a_position(text: str) -> None:
    understood(text)


@given(st.lists(st.sampled_from(WORDS)), BODIES, BODIES, st.sampled_from(OUTCOMES))
def test_any_words_are_understood_or_refused_and_work_on_any_body(
    words: list[str], request: dict[str, Any], response: dict[str, Any], outcome: str
) -> None:
    compiled = understood(" ".join(words))
    if compiled is not None:
        given = exchange(request=request, response=response, outcome=outcome)
        compiled.matches_header(given)
        compiled.matches(given)


OPERANDS = [
    "api == Fetch", "api == Produce", "latency > 1s", "latency", "outcome == ok", "outcome == unanswered", "topic == t",
    "error == NONE", "error", "response.body.error_code == 1", "client_id == null", "size > 1",
]  # fmt: skip


@given(
    st.recursive(
        st.sampled_from(OPERANDS),
        lambda inner: (
            st.builds("({} and {})".format, inner, inner)
            | st.builds("({} or {})".format, inner, inner)
            | st.builds("not {}".format, inner)
        ),
        max_leaves=6,
    ),
    BODIES,
    st.sampled_from([("ok", []), ("error", [("e", 6, "NOT_LEADER_OR_FOLLOWER", True)]), ("undecoded", [])]),
)
def test_what_the_header_decides_is_what_the_bodies_confirm(
    text: str, body: dict[str, Any], end: tuple[str, list[Any]]
) -> None:
    compiled = compile_filter(text)
    early = compiled.matches_header(exchange())
    outcome, errors = end
    final = compiled.matches(exchange(request=body, response=body, outcome=outcome, errors=errors))
    assert early in (None, final)
    if compiled.depth == "headers":
        assert early is final
