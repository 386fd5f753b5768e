"""What is learned of an exchange without decoding its bodies: error codes and topics, as the bytes have them."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.model import Exchange
from tests.support.conversation import Wire, events, exchanges, heartbeat, heartbeat_response, request, response, string

NOT_LEADER, UNKNOWN_TOPIC = 6, 3


def produce(correlation_id: int, *topics: str) -> bytes:
    """Produce v2, a partition without records for each topic."""
    parts = b"".join(string(topic) + pack(">iii", 1, 0, 0) for topic in topics)
    return request(0, 2, correlation_id, pack(">hii", 1, 1000, len(topics)) + parts)


def produced(correlation_id: int, **codes: int) -> bytes:
    parts = b"".join(string(topic) + pack(">iihqq", 1, 0, code, 5, -1) for topic, code in codes.items())
    return response(correlation_id, pack(">i", len(codes)) + parts + pack(">i", 0))


def scanned(ask: bytes, answer: bytes, depth: str = "errors", *, topics: bool = False) -> Exchange:
    (exchange,) = exchanges(events(Wire().open().up(ask).down(answer), depth=depth, topics=topics))
    return exchange


@pytest.mark.parametrize("topics", [False, True])
def test_error_codes_are_found_wherever_they_stand(topics: bool) -> None:
    """Two of three partitions; without bodies there are no paths."""
    ask, answer = produce(1, "a", "b", "c"), produced(1, a=NOT_LEADER, b=0, c=UNKNOWN_TOPIC)
    exchange = scanned(ask, answer, topics=topics)
    assert exchange.outcome == "error"
    assert [(code, name) for _, code, name, _ in exchange.errors] == [
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
    ]


def test_topics_are_those_of_request_and_response_each_once() -> None:
    exchange = scanned(produce(1, "a", "b", "a"), produced(1, b=0, c=0), "headers", topics=True)
    assert (exchange.topics, exchange.outcome, exchange.errors) == (("a", "b", "c"), "ok", [])


def test_topics_are_not_looked_for_unless_they_are_wanted() -> None:
    assert scanned(produce(1, "a"), produced(1, a=0)).topics == ()


def test_headers_alone_tell_no_errors() -> None:
    exchange = scanned(heartbeat(1), heartbeat_response(1, 27), "headers")
    assert (exchange.outcome, exchange.errors) == ("ok", [])


def test_a_body_that_does_not_fit_is_undecoded() -> None:
    """Unless what there is of it holds an error."""
    assert scanned(heartbeat(1), response(1, b"\0")).outcome == "undecoded"
    broken = produced(1, a=NOT_LEADER, b=0)[4:-9]
    assert scanned(produce(1, "a", "b"), pack(">i", len(broken)) + broken).outcome == "error"


def test_an_api_that_nobody_knows_is_undecoded() -> None:
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(request(999, 0, 2, b"?")).down(response(2, b"\0\6"))
    _, exchange = exchanges(events(wire, depth="errors"))
    assert (exchange.outcome, exchange.errors) == ("undecoded", [])


def test_a_refused_version_of_api_versions_is_answered_in_another() -> None:
    """In version 0 (KIP-511), also after the same version was understood, whose answer has other fields behind it."""
    ask = (request(18, 3, number, b"\2a\2b\0", tags=b"\0") for number in (1, 2, 3))
    whole, refused = pack(">hBhhhBiB", 0, 2, 18, 0, 4, 0, 0, 0), pack(">hihhh", 35, 1, 18, 0, 2)
    wire = Wire().open()
    for number, (asked, answer) in enumerate(zip(ask, (whole, refused, whole), strict=True), 1):
        wire.up(asked).down(response(number, answer))
    found = exchanges(events(wire, depth="errors"))
    assert [(one.outcome, [name for _, _, name, _ in one.errors]) for one in found] == [
        ("ok", []), ("error", ["UNSUPPORTED_VERSION"]), ("ok", []),
    ]  # fmt: skip


def test_an_unanswered_request_has_its_topics() -> None:
    wire = Wire().open().up(produce(1, "a"))
    (exchange,) = exchanges(events(wire, depth="headers", topics=True))
    assert (exchange.topics, exchange.outcome) == (("a",), "unanswered")


def test_topic_ids_go_by_the_names_that_were_learned() -> None:
    """From a Metadata answer; an id that nobody has named stays an id."""
    known, unknown = b"\1" * 16, b"\0" * 15 + b"\2"
    topic = b"\0\0" + b"\7orders" + known + b"\0" + b"\1" + pack(">i", 0) + b"\0"
    answer = pack(">i", 0) + b"\1" + b"\0" + pack(">i", 1) + b"\2" + topic + b"\0"
    wire = (
        Wire().open().up(request(3, 12, 1, b"\0" + b"\0\0" + b"\0", tags=b"\0")).down(response(1, answer, tags=b"\0"))
    )
    fetches = b"\3" + b"".join(one + b"\1\0" for one in (known, unknown))
    front = pack(">iiiibii", -1, 500, 1, 1000, 0, 0, -1)
    wire.up(request(1, 13, 2, front + fetches + b"\1" + b"\1" + b"\0", tags=b"\0"))
    _, fetch = exchanges(events(wire, depth="errors", topics=True))
    assert len(fetch.topics) == 2
    assert fetch.topics[0] == "orders" and fetch.topics[1].startswith("AAAA")
