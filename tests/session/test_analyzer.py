"""The one loop, on conversations made by hand: what comes out of it, how deep it reads, and what a gap costs."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.model import ACK, FIN, Connection, Exchange, Sink
from kwiresniff.session import Analyzer
from tests.support.conversation import (
    Wire,
    events,
    exchanges,
    heartbeat,
    heartbeat_response,
    problems,
    request,
    response,
    string,
)
from tests.support.exchange_facts import facts


def test_an_exchange_has_its_packets_times_sizes_and_latency() -> None:
    """Latency is last byte of the request to first byte of the response, over several packets each."""
    ask, answer = heartbeat(7), heartbeat_response(7)
    wire = Wire().open().up(ask[:9]).up(ask[9:]).down(answer[:2]).down(answer[2:])
    (exchange,) = exchanges(events(wire))
    assert facts(exchange) == ("Heartbeat", 0, 7, "ok")
    assert exchange.request is not None and exchange.response is not None
    assert (exchange.request.first_packet, exchange.request.last_packet) == (4, 5)
    assert (exchange.response.first_packet, exchange.response.last_packet) == (6, 7)
    assert (exchange.request.size_bytes, exchange.response.size_bytes) == (len(ask) - 4, len(answer) - 4)
    assert exchange.latency_ns == 1_000_000
    assert exchange.request.body == {"group_id": "group", "generation_id": 5, "member_id": "member"}
    assert (exchange.connection.client, exchange.connection.broker) == ("10.0.0.1:40000", "10.0.0.2:9092")


def test_a_sink_is_given_exchanges_when_their_segment_has_been_read() -> None:
    """Three answers in one segment are complete before the first is given."""
    asked = [heartbeat(number) for number in range(1, 6)]
    answers = [heartbeat_response(number) for number in range(1, 6)]
    wire = Wire().open().up(*asked).down(*answers[:3]).down(*answers[3:])

    class Shown(Sink):
        def __init__(self) -> None:
            self.exchanges: list[tuple[int, int]] = []

        def on_exchange(self, exchange: Exchange) -> None:
            self.exchanges.append((exchange.correlation_id, exchange.connection.exchanges["ok"]))

    shown = Shown()
    analyzer = Analyzer(sink=shown)
    for segment in wire.segments:
        assert not analyzer.segment(*segment)
    assert shown.exchanges == [(1, 3), (2, 3), (3, 3), (4, 5), (5, 5)]


def test_a_hole_in_a_body_leaves_the_pair_and_the_footing() -> None:
    """The exchange keeps its time and says what is missing."""
    body = string("g" * 200) + pack(">i", 5) + string("member")
    ask = request(12, 0, 5, body)
    wire = Wire().open().up(heartbeat(4)).down(heartbeat_response(4))
    wire.up(ask[:60]).up(ask[60:120], drop=True).up(ask[120:]).down(heartbeat_response(5))
    wire.up(heartbeat(6)).down(heartbeat_response(6))
    _, damaged, after = exchanges(events(wire))
    assert (damaged.outcome, damaged.latency_ns) == ("undecoded", 1_000_000)
    assert "gap" in {problem.code for problem in damaged.problems}
    assert after.outcome == "ok"


def test_credentials_are_withheld_unless_asked_for() -> None:
    """The token of SaslAuthenticate never reaches the body; the principal reaches the connection."""
    token = b"\0alice\0wonderland"
    wire = Wire().open().up(request(17, 1, 1, string("PLAIN"))).down(response(1, pack(">hi", 0, 1) + string("PLAIN")))
    wire.up(request(36, 0, 2, pack(">i", len(token)) + token)).down(response(2, pack(">hhi", 0, -1, 0)))
    hidden = exchanges(events(wire))[1]
    assert hidden.request is not None and hidden.request.body == {
        "auth_bytes": {"withheld": True, "size_bytes": len(token)}
    }
    assert hidden.connection.sasl is not None and hidden.connection.sasl["principal"] == "alice"
    shown = exchanges(events(wire, show_secrets=True))[1]
    assert shown.request is not None and shown.request.body == {"auth_bytes": token}


def test_an_incomplete_request_at_the_end_is_a_problem_with_its_name() -> None:
    """The request is no exchange: its length was announced and its end never came."""
    ask = heartbeat(3)
    found = events(Wire().open().up(heartbeat(2)).down(heartbeat_response(2)).up(ask[:-4]))
    assert len(exchanges(found)) == 1
    (problem,) = problems(found)
    assert problem.code == "incomplete_request"
    assert "Heartbeat v0" in problem.message


def test_depth_errors_finds_error_codes_without_bodies() -> None:
    """The outcome is the same as that of a full decode."""
    wire = Wire().open().up(heartbeat(1), heartbeat(2)).down(heartbeat_response(1, 25), heartbeat_response(2))
    first, second = exchanges(events(wire, depth="errors"))
    assert [(code, name) for _, code, name, _ in first.errors] == [(25, "UNKNOWN_MEMBER_ID")]
    assert (first.outcome, second.outcome) == ("error", "ok")
    assert first.request is not None and first.request.body is None


def test_a_filter_on_headers_keeps_unwanted_bodies_undecoded() -> None:
    """Dropped exchanges still count on their connection."""
    wire = Wire().open().up(heartbeat(1), heartbeat(2)).down(heartbeat_response(1), heartbeat_response(2)).close()
    found = events(wire, exchange_filter=lambda exchange: exchange.correlation_id == 2)
    assert [x.correlation_id for x in exchanges(found)] == [2]
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert connection.exchanges == {"ok": 2}


@pytest.mark.parametrize(("after", "ordinary"), [(100, True), (5_000, False)])
def test_a_long_poll_under_way_at_the_end_is_negotiation(after: int, ordinary: bool) -> None:
    """The broker may hold a Fetch for its 500 ms and a second of grace; until then it counts as waiting."""
    body = pack(">iiiib", -1, 500, 1, 1 << 20, 0) + pack(">i", 0)
    wire = Wire().open().up(request(1, 4, 7, body))
    wire.packet += after
    wire.send(0, flags=FIN | ACK)
    (exchange,) = exchanges(events(wire))
    assert (exchange.outcome, exchange.waiting != "", exchange.is_negotiation) == ("unanswered", ordinary, ordinary)
