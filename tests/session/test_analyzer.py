"""Who is the broker, which response belongs to which request: on conversations made by hand."""

from __future__ import annotations

import gc
from struct import pack

import pytest

from kwiresniff.analysis.intake import CallingIntake
from kwiresniff.model import ACK, FIN, RST, SYN, Connection, ConnectionAttempt, Exchange, Problem
from kwiresniff.session import Analyzer
from kwiresniff.session.connection import ConnectionAnalyzer
from kwiresniff.session.in_flight import MAX_IN_FLIGHT
from tests.support.conversation import (
    HEARTBEAT_BODY,
    Wire,
    api_versions_v0,
    api_versions_v0_response,
    events,
    exchanges,
    heartbeat,
    heartbeat_response,
    problems,
    request,
    response,
    string,
)
from tests.support.sample import slow_if


def facts(exchange: Exchange) -> tuple[object, ...]:
    return (exchange.api, exchange.api_version, exchange.correlation_id, exchange.outcome)


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


def test_an_end_without_the_answer_to_the_handshake_is_waited_for_only_once() -> None:
    """All that came from the broker is lost but its FIN, which does not tell where it began to count."""
    wire = Wire()
    wire.send(0, flags=SYN)
    wire.send(1, flags=SYN | ACK, drop=True)
    wire.up(heartbeat(1), drop=True).down(heartbeat_response(1), drop=True)
    wire.send(1, flags=FIN | ACK)
    wire.packet += 100
    later = Wire(client_port=40_001)
    later.packet = wire.packet
    later.open().up(heartbeat(2)).down(heartbeat_response(2))
    assert [facts(x) for x in exchanges(events(wire, later))] == [("Heartbeat", 0, 2, "ok")]


def test_pipelined_requests_are_paired_by_correlation_id() -> None:
    """Three requests in one segment, three responses in another."""
    wire = Wire().open().up(*map(heartbeat, (1, 2, 3))).down(*map(heartbeat_response, (1, 2, 3)))
    assert [facts(x)[2:] for x in exchanges(events(wire))] == [(1, "ok"), (2, "ok"), (3, "ok")]


@pytest.mark.parametrize("interrupted", [False, True])
def test_who_shows_exchanges_is_offered_them_when_their_segment_has_been_read(interrupted: bool) -> None:
    """Three answers in one segment are complete before the first is offered; what is left stays in its order."""
    asked = [heartbeat(number) for number in range(1, 6)]
    answers = [heartbeat_response(number) for number in range(1, 6)]
    wire = Wire().open().up(*asked).down(*answers[:3]).down(*answers[3:])
    waiting: list[Problem] = []
    shown: list[tuple[int, int]] = []

    def show(exchange: Exchange) -> None:
        shown.append((exchange.correlation_id, exchange.connection.exchanges["ok"]))
        if interrupted:
            waiting.append(Problem("capture_damaged", "to be told before the next exchange"))

    analyzer, intake = Analyzer(), CallingIntake(show)
    intake.follow(waiting)
    analyzer.show(intake)
    left = [x.correlation_id for x in exchanges(list(analyzer.process(wire.segments)))]
    assert shown == ([(1, 3)] if interrupted else [(1, 3), (2, 3), (3, 3), (4, 5), (5, 5)])
    assert left == ([2, 3, 4, 5] if interrupted else [])


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


def test_trailing_bytes_are_a_warning_and_cost_no_pair() -> None:
    """Old librdkafka sends four extra bytes after ApiVersions v0."""
    wire = Wire().open().up(request(18, 0, 1, b"\0\0\0\0")).down(api_versions_v0_response(1))
    (exchange,) = exchanges(events(wire))
    assert exchange.outcome == "ok"
    assert [problem.code for problem in exchange.problems] == ["trailing_bytes"]


def test_a_request_whose_body_does_not_decode_is_still_paired_and_timed() -> None:
    """The header is enough."""
    wire = Wire().open().up(request(12, 0, 4, b"\x00\xffgarbage")).down(heartbeat_response(4))
    (exchange,) = exchanges(events(wire))
    assert facts(exchange) == ("Heartbeat", 0, 4, "undecoded")
    assert exchange.latency_ns == 1_000_000
    assert exchange.problems


def test_an_unknown_api_is_named_by_its_key_and_paired() -> None:
    """Nothing is decoded, everything is timed."""
    wire = Wire().open().up(api_versions_v0(1)).down(api_versions_v0_response(1))
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


def test_requests_without_response_are_unanswered_and_responses_without_request_are_told() -> None:
    """Both kinds are exchanges with one side."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(9)).close()
    orphan, waiting = exchanges(events(wire))
    assert (orphan.outcome, orphan.correlation_id, orphan.request) == ("request_missing", 9, None)
    assert (waiting.outcome, waiting.response) == ("unanswered", None)


@pytest.mark.parametrize("broker_port", [9092, 1024, 65_000])
def test_roles_come_from_content_not_from_ports(broker_port: int) -> None:
    """In mid-stream, with the response of an earlier request first."""
    wire = Wire(client_port=30_000, broker_port=broker_port)
    wire.down(heartbeat_response(6)).up(heartbeat(7)).down(heartbeat_response(7))
    found = exchanges(events(wire))
    assert [facts(x)[2:] for x in found if x.request] == [(7, "ok")]
    assert found[-1].connection.broker == f"10.0.0.2:{broker_port}"


def test_a_response_that_reads_like_a_request_does_not_swap_the_roles() -> None:
    """Correlation id 5 looks like Produce v5; a Metadata v0 body behind it like an empty client id."""
    metadata = response(5, pack(">i", 1) + pack(">i", 0) + string("broker") + pack(">i", 9092) + pack(">i", 0))
    wire = Wire().down(metadata).up(request(3, 0, 6, pack(">i", 0))).down(response(6, pack(">ii", 0, 0)))
    found = exchanges(events(wire))
    assert found[-1].connection.client == "10.0.0.1:40000"
    assert [facts(x) for x in found if x.request] == [("Metadata", 0, 6, "ok")]


def test_a_start_in_mid_message_skips_to_the_first_whole_message_of_each_side() -> None:
    """The tail of a message leads each direction; the skipped bytes are told."""
    wire = Wire()
    wire.up(b"\x07tail of a request", heartbeat(8))
    wire.down(b"rest of an old response\x00\x00", heartbeat_response(8))
    wire.up(heartbeat(9)).down(heartbeat_response(9))
    found = events(wire)
    assert [facts(x)[2:] for x in exchanges(found)] == [(8, "ok"), (9, "ok")]
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert connection.skipped_bytes == [18, 25]
    assert sum(problem.details["skipped_bytes"] for problem in problems(found) if problem.details) == 18 + 25


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


@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)])
@pytest.mark.parametrize("ended", ["refused", "reset"])
def test_ports_used_again_are_a_new_connection_however_its_opening_is_reordered(
    ended: str, order: tuple[int, int, int]
) -> None:
    """SYN, its answer and the first request in any order, soon after a connection that was refused or reset."""
    first = Wire(isn=(100, 5000))
    if ended == "refused":
        first.send(0, flags=SYN)
        first.send(1, flags=RST | ACK)
    else:
        first.open().up(heartbeat(1)).down(heartbeat_response(1))
        first.send(0, flags=RST)
    again = Wire(isn=(9_000, 90_000))
    again.packet = first.packet
    again.open().up(heartbeat(7)).down(heartbeat_response(7))
    syn, answer, _, asked, answered = again.segments
    again.segments = [*((syn, answer, asked)[index] for index in order), answered]
    found = exchanges(events(first, again))
    assert [(x.correlation_id, x.outcome) for x in found][-1:] == [(7, "ok")]
    assert found[-1].connection.handshake_seen
    assert [x.outcome for x in found] == ["ok"] * len(found)


def test_port_reuse_is_a_new_connection_at_its_syn_or_at_a_jump() -> None:
    """Correlation ids start over; outstanding requests of the old one are unanswered."""
    first = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).up(heartbeat(2))
    second = Wire(isn=(1_000_000_000, 2_000_000_000)).open().up(heartbeat(2)).down(heartbeat_response(2))
    third = Wire(isn=(3_000_000_000, 3_500_000_000)).up(heartbeat(3)).down(heartbeat_response(3))
    found = events(first, second, third)
    assert [facts(x)[2:] for x in exchanges(found)] == [(1, "ok"), (2, "unanswered"), (2, "ok"), (3, "ok")]
    assert [event.id for event in found if isinstance(event, Connection)] == [1, 2, 3]


def test_the_same_packets_seen_twice_count_once() -> None:
    """Two interfaces, every packet doubled, handshake and end included."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close()
    wire.segments = [segment for segment in wire.segments for _ in range(2)]
    found = events(wire)
    assert [facts(x)[2:] for x in exchanges(found)] == [(1, "ok")]
    assert len([event for event in found if isinstance(event, Connection)]) == 1
    again = events(wire, wire)
    assert len(exchanges(again)) == 1


def test_the_round_trip_of_the_handshake_is_syn_to_first_acknowledgement() -> None:
    """Wherever the capture point lies, both ways are in it."""
    found = events(Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close())
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert connection.handshake_seen
    assert connection.handshake_rtt_ns == 2_000_000
    assert connection.exchanges == {"ok": 1}


@pytest.mark.parametrize(
    ("ends", "closed_by", "was_reset", "packet"),
    [([], "", False, 0), ([(0, FIN | ACK), (1, FIN | ACK)], "client", False, 6), ([(1, RST)], "broker", True, 6)],
)
def test_a_connection_says_who_closed_it(
    ends: list[tuple[int, int]], closed_by: str, was_reset: bool, packet: int
) -> None:
    """By the first FIN or RST; and whose it was, and where it began."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for way, flags in ends:
        wire.send(way, flags=flags)
    (connection,) = (event for event in events(wire) if isinstance(event, Connection))
    assert (connection.closed_by, connection.was_reset, connection.closed_packet) == (closed_by, was_reset, packet)
    assert (connection.client_id, connection.first_packet, connection.syn_retransmits) == ("c-1", 1, 0)


@pytest.mark.parametrize("refused", [False, True])
def test_a_syn_refused_or_not_answered_is_an_attempt(refused: bool) -> None:
    """A SYN that is sent again is one attempt; they are told to whoever asks, and no connections."""
    wire = Wire()
    wire.send(0, flags=SYN)
    for _ in range(2):
        wire.packet += 999
        wire.seq[0] -= 1
        wire.send(0, flags=SYN)
    wire.seq[0] -= 1
    wire.send(0, flags=SYN)  # the same packet captured twice
    if refused:
        wire.send(1, flags=RST | ACK)
    other = Wire(client_port=40_001).open().up(heartbeat(1)).close()
    assert not [event for event in events(wire, other) if isinstance(event, ConnectionAttempt)]
    found = events(wire, other, attempts=True)
    (attempt,) = (event for event in found if isinstance(event, ConnectionAttempt))
    last_ns = (2003 if refused else 2002) * 1_000_000
    assert attempt == ("10.0.0.1:40000", "10.0.0.2:9092", 1, 1_000_000, last_ns, 3, refused)
    assert [event.client for event in found if isinstance(event, Connection)] == ["10.0.0.1:40001"]


def test_a_syn_that_is_answered_late_is_counted_with_its_connection() -> None:
    """The connection came to be, though not at the first SYN."""
    wire = Wire()
    wire.send(0, flags=SYN)
    wire.packet += 999
    wire.seq[0] -= 1
    wire.open().up(heartbeat(1)).down(heartbeat_response(1))
    found = events(wire, attempts=True)
    assert [event.syn_retransmits for event in found if isinstance(event, Connection)] == [1]
    assert not [event for event in found if isinstance(event, ConnectionAttempt)]


@pytest.mark.parametrize(
    ("first", "name"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: broker:9092\r\n\r\n", "http"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "ssh"),
        (b"USER guest 0 * :somebody\r\n", "text"),
        (pack(">iiqiqi", 44, 0, 0, 30_000, 0, 16) + b"\0" * 16, "zookeeper"),
        (b"\xde\xad\xbe\xef" * 20, "unknown"),
    ],
)
def test_what_is_not_kafka_is_named_and_left_alone(first: bytes, name: str) -> None:
    """No exchange, no connection, one problem that names it and where."""
    wire = Wire().open().up(first).down(b"\x15\x03\x01 whatever the answer").up(heartbeat(1)).close()
    found = events(wire)
    assert len(found) == 1
    (problem,) = problems(found)
    assert problem.code == "not_kafka"
    assert problem.details is not None
    assert (problem.details["protocol"], problem.details["server"]) == (name, "10.0.0.2:9092")


@pytest.mark.parametrize("cut", [8, 14, 20, 100])
def test_a_metadata_v0_without_client_id_is_not_taken_for_postgresql(cut: int) -> None:
    """Its key and version are the protocol version of PostgreSQL's startup message; consumers of 2015 open with it."""
    ask = request(3, 0, 0, pack(">i", 2) + string("gauges") + string("no-such-topic"), client="")
    answer = response(0, pack(">ii", 0, 0))
    (exchange,) = exchanges(events(Wire().open().up(ask[:cut]).up(ask[cut:]).down(answer)))
    assert facts(exchange) == ("Metadata", 0, 0, "ok")


def test_postgresql_is_still_named() -> None:
    """Its startup message counts its own length in, and the server answers with a letter first."""
    parameters = b"user\0billing\0database\0billing\0client_encoding\0UTF8\0\0"
    startup = pack(">ii", 8 + len(parameters), 0x00030000) + parameters
    (problem,) = problems(events(Wire().open().up(startup).down(b"R" + pack(">ii", 8, 0)).up(b"p" + startup).close()))
    assert problem.details is not None
    assert (problem.code, problem.details["protocol"]) == ("not_kafka", "postgresql")


def test_bare_sasl_tokens_after_handshake_v0_are_not_taken_for_requests() -> None:
    """SaslHandshake v0, a PLAIN token without header, an empty answer, then requests again."""
    wire = Wire().open().up(request(17, 0, 1, string("PLAIN"))).down(response(1, pack(">hi", 0, 1) + string("PLAIN")))
    token = b"\0alice\0wonderland"
    wire.up(pack(">i", len(token)) + token).down(pack(">i", 0)).up(heartbeat(2)).down(heartbeat_response(2))
    found = events(wire)
    assert [facts(x) for x in exchanges(found)] == [("SaslHandshake", 0, 1, "ok"), ("Heartbeat", 0, 2, "ok")]
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert connection.sasl is not None
    assert {name: connection.sasl[name] for name in ("mechanism", "principal", "outcome")} == {
        "mechanism": "PLAIN",
        "principal": "alice",
        "outcome": "ok",
    }
    assert not problems(found)


def test_gssapi_tokens_as_the_very_first_bytes_are_known_as_such() -> None:
    """Kerberos before there was a handshake request: tokens both ways, then requests."""
    token = bytes.fromhex("6082010006092a864886f71201020201006e") + b"k" * 200
    wire = Wire().open().up(pack(">i", len(token)) + token).down(pack(">i", 30) + b"s" * 30)
    wire.up(pack(">i", 0)).down(pack(">i", 20) + b"t" * 20).up(pack(">i", 25) + b"u" * 25).down(pack(">i", 0))
    wire.up(heartbeat(1)).down(heartbeat_response(1))
    found = events(wire)
    assert [facts(x)[2:] for x in exchanges(found)] == [(1, "ok")]
    (connection,) = (event for event in found if isinstance(event, Connection))
    assert connection.sasl is not None
    assert connection.sasl["mechanism"] == "GSSAPI"


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


def test_outstanding_requests_are_bounded_oldest_out_first() -> None:
    """One more than the limit gives up the oldest as unanswered."""
    wire = Wire().open()
    for first in range(0, MAX_IN_FLIGHT + 1, 100):
        wire.up(*(heartbeat(n) for n in range(first, min(first + 100, MAX_IN_FLIGHT + 1))))
    found = exchanges(events(wire, depth="headers"))
    assert len(found) == MAX_IN_FLIGHT + 1
    assert [x.correlation_id for x in found[:3]] == [0, 1, 2]


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


@pytest.mark.parametrize("seen_from_the_start", [True, False])
def test_a_known_broker_port_makes_weak_evidence_enough(seen_from_the_start: bool) -> None:
    # No client id and a body that does not read: too little to call it Kafka, unless the port is known to be.
    odd = request(12, 0, 1, b"\xff\xf0 not a heartbeat", client=None)
    wire = Wire(broker_port=19_999)
    if seen_from_the_start:
        wire.open()
    wire.up(odd).down(heartbeat_response(1)).up(odd).down(heartbeat_response(1))
    assert exchanges(events(wire)) == []
    assert len(exchanges(events(wire, ports=[19_999]))) == 2
    assert exchanges(events(wire, ports=[9092])) == []


def test_what_comes_from_a_known_broker_port_is_no_client() -> None:
    wire = Wire(client_port=40_000).up(heartbeat(1)).down(heartbeat_response(1))
    assert exchanges(events(wire, ports=[40_000])) == []
    assert len(exchanges(events(wire, ports=[9092, 40_000]))) == 1


def test_a_connection_counts_its_last_acknowledgement_and_a_repeated_end() -> None:
    """The counts are those of ``tshark -z conv,tcp``: 3 packets to open, 2 of data, 4 to close."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.send(0, flags=FIN | ACK)
    wire.seq[0] -= 1
    wire.send(0, flags=FIN | ACK)
    wire.send(1, flags=FIN | ACK)
    wire.send(0)
    wire.send(0, flags=SYN)  # the port is used again
    (connection,) = [event for event in events(wire) if isinstance(event, Connection)]
    assert (connection.packets, connection.retransmits) == ([6, 3], [1, 0])


@pytest.mark.slow
def test_what_ended_connections_held_is_free_without_a_search_for_garbage() -> None:
    """A hundred connections, one every second; an ended one is remembered for 20 seconds."""
    analyzer = Analyzer("errors")
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects())
        for second in range(100):
            wire = Wire(client_port=40_000 + second).open()
            if second % 2:  # with a token that has no header
                wire.up(request(17, 0, 1, string("PLAIN"))).down(response(1, pack(">hi", 0, 1) + string("PLAIN")))
                wire.up(pack(">i", 4) + b"\0a\0b").down(pack(">i", 0))
            else:
                wire.up(api_versions_v0(1)).down(api_versions_v0_response(1))
            wire.up(heartbeat(2)).down(heartbeat_response(2))
            for segment in wire.close().segments:
                analyzer.segment(segment[0], segment[1] + second * 1_000_000_000, *segment[2:])
        connections = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects()) - before
    finally:
        gc.enable()
    assert 20 <= connections <= 25
    assert len(exchanges(analyzer.events())) == 200


@pytest.mark.parametrize("handshake", slow_if([True, False], False))
def test_a_connection_whose_ports_are_used_again_is_free_without_a_search_for_garbage(handshake: bool) -> None:
    """Fifty connections on the same ports, none of which ends before the next begins, with or without its handshake."""
    analyzer = Analyzer("errors")
    gc.collect()
    gc.disable()
    try:
        before = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects())
        for number in range(50):
            wire = Wire(isn=(number * 0x20000000 + 1, number * 0x20000000 + 99)).open()
            wire.up(api_versions_v0(1)).down(api_versions_v0_response(1)).up(heartbeat(2)).down(heartbeat_response(2))
            for segment in wire.segments[0 if handshake else 3 :]:
                packet, ns = segment[0] + number * 100, segment[1] + number * 1_000_000_000
                analyzer.segment(packet, ns, *segment[2:])
        connections = sum(isinstance(one, ConnectionAnalyzer) for one in gc.get_objects()) - before
        analyzer.close()
    finally:
        gc.enable()
    assert connections <= 2
    assert len(exchanges(analyzer.events())) == 100


@pytest.mark.parametrize(("after", "ordinary"), [(100, True), (5_000, False)])
def test_a_long_poll_under_way_at_the_end_is_negotiation(after: int, ordinary: bool) -> None:
    """The broker may hold a Fetch for its 500 ms and a second of grace; until then it counts as waiting."""
    body = pack(">iiiib", -1, 500, 1, 1 << 20, 0) + pack(">i", 0)
    wire = Wire().open().up(request(1, 4, 7, body))
    wire.packet += after
    wire.send(0, flags=FIN | ACK)
    (exchange,) = exchanges(events(wire))
    assert (exchange.outcome, exchange.waiting != "", exchange.is_negotiation) == ("unanswered", ordinary, ordinary)
