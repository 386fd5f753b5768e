"""Requests that brokers forward in an Envelope (KIP-590): read, and their secrets withheld."""

from __future__ import annotations

from io import StringIO

import pytest

from kwiresniff import schema
from kwiresniff.model import Body, Direction, Exchange, Node
from kwiresniff.render.tree import TreeWriter
from kwiresniff.session.annotation import dissect_message
from tests.support.conversation import (
    request,
    response,
)
from tests.support.encoding import encoder
from tests.support.made_up_bodies import body_of, conversation, inner


def enveloped(api_key: int, version: int, asked: Body, answered: Body) -> tuple[Exchange, str]:
    raw = request(api_key, version, 7, encoder(api_key, version, "request")(asked), tags=b"\0")[4:]
    back = response(7, encoder(api_key, version, "response")(answered), tags=b"\0")[4:]
    outer = {"request_data": raw, "request_principal": b"\0\0\5User\6alice\0\0", "client_host_address": b"\x7f\0\0\1"}
    exchange, topics = conversation(58, 0, outer, {"response_data": back, "error_code": 0})
    assert exchange.problems == []
    dissections = [dissect_message(exchange, which, topics) for which in BOTH]
    return exchange, "".join(
        everything(dissection.root) + repr(dissection.problems) for dissection in dissections if dissection is not None
    )


def everything(node: Node) -> str:
    """All that an annotated message says, in no form for people."""
    said = f"{node.name} {node.value!r} meaning={node.meaning!r} {node.problem} {node.hint}"
    return "\n".join([said, *map(everything, node.children)])


def test_an_enveloped_request_and_its_response_are_read() -> None:
    topic = {"name": "orders", "topic_id": None}
    asked = body_of(schema.message(20, 6, "request").fields, topics=[{**topic, "topic_id": "A" * 22}], timeout_ms=5000)
    fields = schema.message(20, 6, "response").fields
    result = body_of(inner(fields, "responses"), name="orders", error_code=29)
    exchange, tree = enveloped(20, 6, asked, body_of(fields, responses=[result]))
    assert exchange.request is not None and exchange.response is not None
    forwarded = (exchange.request.body or {})["request_data_decoded"]
    assert {name: forwarded[name] for name in forwarded if name != "body"} == {
        "api_key": 20, "api": "DeleteTopics", "api_version": 6, "correlation_id": 7, "client_id": "c-1",
    }  # fmt: skip
    assert forwarded["body"] == asked
    principal = (exchange.request.body or {})["request_principal_decoded"]["data"]
    assert principal == {"type": "User", "name": "alice", "token_authenticated": False}
    answer = (exchange.response.body or {})["response_data_decoded"]
    assert (answer["api"], answer["correlation_id"]) == ("DeleteTopics", 7)
    assert answer["body"]["responses"][0]["error_code"] == 29
    assert "meaning='TOPIC_AUTHORIZATION_FAILED'" in tree
    path = "response_data_decoded.body.responses[0].error_code"
    assert (exchange.outcome, exchange.errors) == ("error", [(path, 29, "TOPIC_AUTHORIZATION_FAILED", False)])


def answered_with(raw: bytes, request_data: bytes) -> tuple[Body, list[str], str]:
    """An Envelope's response body, what is wrong with the exchange, and its tree."""
    asked = body_of(schema.message(58, 0, "request").fields, request_data=request_data)
    exchange, known = conversation(58, 0, asked, {"response_data": raw, "error_code": 0})
    assert exchange.response is not None and exchange.response.body is not None
    out = StringIO()
    TreeWriter(out, None, False).write(exchange, *(dissect_message(exchange, which, known) for which in BOTH))
    return exchange.response.body, [problem.message for problem in exchange.problems], out.getvalue()


BOTH: tuple[Direction, Direction] = ("request", "response")


def asked_with(api_key: int, version: int) -> bytes:
    body = encoder(api_key, version, "request")(body_of(schema.message(api_key, version, "request").fields))
    return request(api_key, version, 7, body, tags=b"\0")[4:]


def test_an_enveloped_answer_that_cannot_be_read_is_read_as_far_as_it_goes_and_shown_escaped() -> None:
    raw = b"\0\0\0\7\0" + b"\0\0\0\5" + b"\x1b[31m\xff"
    body, problems, tree = answered_with(raw, asked_with(37, 3))
    assert body["response_data"] == raw
    inner = body["response_data_decoded"]
    assert (inner["api"], inner["body"]["throttle_time_ms"]) == ("CreatePartitions", 5)
    (problem,) = problems
    assert problem.startswith("response_data should hold CreatePartitions response v3: ")
    assert tree.count(problem) == 1
    assert "undecoded [31m\\xff" in tree
    assert "\x1b" not in tree


def test_an_enveloped_answer_that_may_hold_a_secret_is_not_shown_when_it_cannot_be_read() -> None:
    body, _, tree = answered_with(b"\0\0\0\7\0\xffhunter2", asked_with(38, 3))
    assert body["response_data"] == {"withheld": True, "size_bytes": 13}
    assert "hunter2" not in repr(body) + tree


def test_an_answer_too_short_for_a_header_is_a_problem() -> None:
    body, problems, tree = answered_with(b"\0\x9b", asked_with(19, 7))
    assert problems[0].startswith("response_data should hold CreateTopics response: ")
    assert "response_data_decoded" not in body
    assert problems[0] in tree


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"\x1b", "request_data should hold a request: "),
        (b"\x03\xe7\0\0\0\0\0\1\0\1x", "request_data should hold a request: no API has key 999"),
        (b"\0\x3a\0\0\0\0\0\1\0\1x\0", "request_data should hold a request: it is an envelope itself"),
    ],
)
def test_bytes_that_are_no_forwarded_request_stay_with_a_problem(raw: bytes, reason: str) -> None:
    body, problems, tree = answered_with(b"answer", raw)
    assert problems[0].startswith(reason)
    assert problems[0] in tree
    assert body["response_data"] == {"withheld": True, "size_bytes": 6}  # it does not say what it answers
    assert "\x1b" not in tree


def test_secrets_in_an_envelope_are_withheld() -> None:
    fields = schema.message(51, 0, "request").fields
    upsertion = body_of(
        inner(fields, "upsertions"),
        name="alice",
        mechanism=1,
        iterations=4096,
        salt=b"salt-salt",
        salted_password=b"hunter2!",
    )
    asked = body_of(fields, upsertions=[upsertion], deletions=[])
    answered = body_of(schema.message(51, 0, "response").fields, results=[])
    exchange, tree = enveloped(51, 0, asked, answered)
    assert exchange.request is not None and exchange.request.body is not None
    body = exchange.request.body
    assert body["request_data"]["withheld"]
    inside = body["request_data_decoded"]["body"]["upsertions"][0]
    assert (inside["name"], inside["salted_password"]) == ("alice", {"withheld": True, "size_bytes": 8})
    for text in (repr(body), tree):
        assert "hunter2" not in text
        assert "salt-salt" not in text
    assert "'alice'" in tree


def test_a_tokens_hmac_in_an_envelopes_response_is_withheld() -> None:
    asked = body_of(schema.message(38, 3, "request").fields, renewers=[])
    answered = body_of(schema.message(38, 3, "response").fields, hmac=b"hmac-hmac", token_id="t-1")
    exchange, tree = enveloped(38, 3, asked, answered)
    assert exchange.response is not None and exchange.response.body is not None
    body = exchange.response.body
    assert body["response_data"]["withheld"]
    assert body["response_data_decoded"]["body"]["token_id"] == "t-1"
    assert "hmac-hmac" not in repr(body) + tree
