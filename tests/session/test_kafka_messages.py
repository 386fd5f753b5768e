"""Requests and responses of one connection: which response belongs to which request, and what each costs when lost."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.model import Exchange
from kwiresniff.session.in_flight import MAX_IN_FLIGHT
from tests.support.conversation import (
    HEARTBEAT_BODY,
    Wire,
    api_versions_v0_response,
    events,
    exchanges,
    heartbeat,
    heartbeat_response,
    known_wire,
    problems,
    request,
    response,
    string,
)
from tests.support.exchange_facts import facts


def test_pipelined_requests_are_paired_by_correlation_id() -> None:
    """Three requests in one segment, three responses in another."""
    wire = Wire().open().up(*map(heartbeat, (1, 2, 3))).down(*map(heartbeat_response, (1, 2, 3)))
    assert [facts(x)[2:] for x in exchanges(events(wire))] == [(1, "ok"), (2, "ok"), (3, "ok")]


def test_a_reused_correlation_id_gets_the_older_answer_first() -> None:
    """Both outstanding requests with id 0 are answered, in order."""
    wire = Wire().open().up(heartbeat(0), heartbeat(0)).down(heartbeat_response(0), heartbeat_response(0, 27))
    first, second = exchanges(events(wire))
    assert first.errors == []
    assert second.errors == [("error_code", 27, "REBALANCE_IN_PROGRESS", False)]
    assert second.outcome == "error"
    assert first.request is not None and second.request is not None
    assert first.request.first_packet == second.request.first_packet


def test_a_response_sent_before_a_request_came_does_not_answer_it() -> None:
    """Its own request was lost, and the next one has the same correlation id."""
    wire = Wire().open().up(heartbeat(7), drop=True).down(heartbeat_response(7, 27)).up(heartbeat(7))
    wire.down(heartbeat_response(7)).up(heartbeat(8)).down(heartbeat_response(8))
    found = exchanges(events(wire))
    assert sorted((x.correlation_id, x.outcome, len(x.errors)) for x in found) == [
        (7, "ok", 0), (7, "request_missing", 0), (8, "ok", 0)
    ]  # fmt: skip


def test_a_response_seen_before_its_request_answers_it_when_it_acknowledges_it() -> None:
    """The capture point put it there: what it acknowledges shows that the broker had the request."""
    wire = Wire().open().up(heartbeat(7)).down(heartbeat_response(7, 27)).up(heartbeat(8)).down(heartbeat_response(8))
    asked, answered = wire.segments[3:5]
    wire.segments[3:5] = [answered, asked]
    found = exchanges(events(wire))
    assert [(x.correlation_id, x.outcome, len(x.errors)) for x in found] == [(7, "error", 1), (8, "ok", 0)]


def test_two_early_responses_with_one_correlation_id_wait_for_a_request_each() -> None:
    """Both requests lie behind a hole when the responses come, and only one of them is there when it is given up."""
    wire = Wire().open().up(heartbeat(0)).down(heartbeat_response(0)).up(heartbeat(1), drop=True)
    wire.down(heartbeat_response(1)).up(heartbeat(5)).down(heartbeat_response(5, 27)).up(heartbeat(5))
    wire.down(heartbeat_response(5)).up(heartbeat(6)).down(heartbeat_response(6))
    found = exchanges(events(wire))
    told = [(x.correlation_id, x.outcome) for x in found if x.outcome != "request_missing"]
    assert told == [(0, "ok"), (5, "error"), (5, "ok"), (6, "ok")]


@pytest.mark.parametrize(
    ("sent", "shown"), [(b"b\xfcro", r"b\xfcro"), (b"\x1b[31m", "\x1b[31m"), (b"\0", "\0"), (b"a\nb", "a\nb")]
)
def test_a_client_id_that_is_no_text_does_not_hide_a_connection(sent: bytes, shown: str) -> None:
    """Brokers accept any bytes; those that are not UTF-8 are shown as escapes."""
    ask = heartbeat(1, "?" * len(sent)).replace(b"?" * len(sent), sent)
    (exchange,) = exchanges(events(Wire().open().up(ask).down(heartbeat_response(1))))
    assert facts(exchange) == ("Heartbeat", 0, 1, "ok")
    assert exchange.client_id == shown


def test_produce_with_acks_0_expects_no_response_and_does_not_wait_for_one() -> None:
    """Its correlation id is free for the next request at once, at every position of ``acks``."""
    v2 = request(0, 2, 1, pack(">hii", 0, 1000, 0))
    v3 = request(0, 3, 2, string(None) + pack(">hii", 0, 1000, 0))
    v9 = request(0, 9, 3, b"\x00" + pack(">hi", 0, 1000) + b"\x01\x00", tags=b"\x00")
    wire = Wire().open().up(v2, v3, v9, heartbeat(3)).down(heartbeat_response(3))
    found = exchanges(events(wire))
    assert [facts(x)[1:] for x in found] == [
        (2, 1, "no_response_expected"),
        (3, 2, "no_response_expected"),
        (9, 3, "no_response_expected"),
        (0, 3, "ok"),
    ]


def test_api_versions_of_an_unknown_version_is_answered_in_version_0() -> None:
    """KIP-511: the broker answers UNSUPPORTED_VERSION in v0 with the range it has, and the pair stands."""
    ask = request(18, 3, 1, b"\x05java\x061.2.3\x00", tags=b"\x00")
    wire = Wire().open().up(ask).down(api_versions_v0_response(1, 35))
    (exchange,) = exchanges(events(wire))
    assert exchange.errors == [("error_code", 35, "UNSUPPORTED_VERSION", False)]
    assert exchange.response is not None and exchange.response.version == 0
    assert exchange.response.body == {
        "error_code": 35,
        "api_keys": [{"api_key": 18, "min_version": 0, "max_version": 3}],
    }
    assert exchange.problems == []
    assert exchange.connection.client_software == {"name": "java", "version": "1.2.3"}


def test_a_request_whose_body_does_not_decode_is_still_paired_and_timed() -> None:
    """The header is enough."""
    wire = Wire().open().up(request(12, 0, 4, b"\x00\xffgarbage")).down(heartbeat_response(4))
    (exchange,) = exchanges(events(wire))
    assert facts(exchange) == ("Heartbeat", 0, 4, "undecoded")
    assert exchange.latency_ns == 1_000_000
    assert exchange.problems


def test_an_unknown_api_is_named_by_its_key_and_paired() -> None:
    """Nothing is decoded, everything is timed."""
    wire = known_wire()
    wire.up(request(9999, 1, 2, b"??")).down(response(2, b"!!"))
    _, exchange = exchanges(events(wire))
    assert (exchange.api_key, exchange.outcome) == (9999, "undecoded")
    assert [problem.code for problem in exchange.problems] == ["unknown_api"]
    assert exchange.latency_ns == 1_000_000


def test_a_version_newer_than_known_is_read_as_the_newest_when_that_fits_exactly() -> None:
    """ListGroups v6 with the body of v5 is a guess that is marked; with another body it is not made."""
    fits = request(16, 6, 1, b"\x01\x01\x00", tags=b"\x00")
    does_not = request(16, 6, 2, b"\x01\x01\x00\x07", tags=b"\x00")
    found = exchanges(events(Wire().open().up(fits, does_not)))
    assert [[problem.code for problem in x.problems] for x in found] == [["guessed_version"], ["unknown_version"]]
    assert found[0].request is not None and found[0].request.body == {"states_filter": [], "types_filter": []}


def test_requests_that_nobody_answers_come_in_the_order_of_their_times_at_the_end() -> None:
    """Of two connections one asks first and last, the other in between; their ends are told behind that."""
    one, other = Wire(client_port=40_001).open(), Wire(client_port=40_002).open()
    one.packet = 10
    one.up(heartbeat(2))
    other.up(heartbeat(1))
    other.packet = 20
    other.up(heartbeat(3))
    found = events(one, other)
    assert [exchange.correlation_id for exchange in exchanges(found)] == [1, 2, 3]
    assert [isinstance(event, Exchange) for event in found] == [True] * 3 + [False] * 2


def test_a_lost_request_costs_only_its_own_exchange() -> None:
    """Its response has no request; the next exchange is whole."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(heartbeat(2), drop=True).down(heartbeat_response(2)).up(heartbeat(3)).down(heartbeat_response(3))
    found = events(wire)
    assert [facts(x)[2:] for x in exchanges(found)] == [(1, "ok"), (2, "request_missing"), (3, "ok")]
    assert [problem.code for problem in problems(found)] == ["gap"]


def test_a_lost_response_costs_only_its_own_exchange() -> None:
    """Its request stays unanswered; the next exchange is whole."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(heartbeat(2)).down(heartbeat_response(2), drop=True).up(heartbeat(3)).down(heartbeat_response(3))
    assert [facts(x)[2:] for x in exchanges(events(wire))] == [(1, "ok"), (2, "unanswered"), (3, "ok")]


def test_outstanding_requests_are_bounded_oldest_out_first() -> None:
    """One more than the limit gives up the oldest as unanswered."""
    wire = Wire().open()
    for first in range(0, MAX_IN_FLIGHT + 1, 100):
        wire.up(*(heartbeat(n) for n in range(first, min(first + 100, MAX_IN_FLIGHT + 1))))
    found = exchanges(events(wire, depth="headers"))
    assert len(found) == MAX_IN_FLIGHT + 1
    assert [x.correlation_id for x in found[:3]] == [0, 1, 2]


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    """Request header v0: the broker id follows the correlation id."""
    ask = pack(">ihhii", 12, 7, 0, 1, 42)
    wire = Wire().open().up(heartbeat(0)).down(heartbeat_response(0)).up(ask).down(response(1, pack(">hi", 0, 0)))
    _, exchange = exchanges(events(wire))
    assert facts(exchange) == ("ControlledShutdown", 0, 1, "ok")
    assert exchange.request is not None and exchange.request.body == {"broker_id": 42}


def test_a_null_client_id_is_null_and_an_empty_one_is_empty() -> None:
    """Both are legal and different."""
    wire = Wire().open().up(request(12, 0, 1, HEARTBEAT_BODY, None), request(12, 0, 2, HEARTBEAT_BODY, ""))
    assert [x.client_id for x in exchanges(events(wire))] == [None, ""]
