"""What a connection is and who is its client, as its analyzer decides from the bytes of both directions."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.model import ACK, FIN, RST, Connection
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
from tests.support.events import analyze_with
from tests.support.exchange_facts import facts


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


@pytest.mark.parametrize("cut", [8, 14, 20, 100])
def test_a_metadata_v0_without_client_id_is_not_taken_for_postgresql(cut: int) -> None:
    """Its key and version are the protocol version of PostgreSQL's startup message; consumers of 2015 open with it."""
    ask = request(3, 0, 0, pack(">i", 2) + string("gauges") + string("no-such-topic"), client="")
    answer = response(0, pack(">ii", 0, 0))
    (exchange,) = exchanges(events(Wire().open().up(ask[:cut]).up(ask[cut:]).down(answer)))
    assert facts(exchange) == ("Metadata", 0, 0, "ok")


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


def test_what_the_client_acknowledges_at_the_end_was_sent() -> None:
    """The last response is not in the capture, but the client has it."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(heartbeat(2)).down(heartbeat_response(2), drop=True)
    found = events(wire.close())
    (lost,) = problems(found)
    assert lost.code == "gap" and lost.details is not None
    assert (lost.details["direction"], lost.details["missing_bytes"]) == ("response", 10)
    assert problems(events(Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close())) == []


def test_copies_of_packets_are_told_from_those_sent_again() -> None:
    """A copy comes at once, or when all was acknowledged; TCP waits for 200 ms, for a second with a SYN."""
    wire = Wire().open().up(heartbeat(1)[:9]).up(heartbeat(1)[9:])
    for later_ns, first, copies in ((20_000, 0, True), (200_000_000, 0, True), (200_000_000, 3, False)):
        again = [(one[0], one[1] + later_ns, *one[2:]) for one in wire.segments[first:]]
        analyzer = Analyzer()
        every = sorted([*wire.segments, *again], key=lambda one: one[1])
        (connection,) = (event for event in analyze_with(analyzer, every) if isinstance(event, Connection))
        assert (sum(connection.retransmits), connection.captured_twice) == ((0, 4) if copies else (2, 0))


@pytest.mark.parametrize(
    ("again", "copies"),
    [
        pytest.param([(2, 300_000)], 1, id="the last segment at once: doubled by the network"),
        pytest.param([(2, 300_000_000)], 0, id="the last segment later: sent again"),
        pytest.param([(0, 300_000)], 0, id="an earlier one at once: its acknowledgement says that it is missing"),
    ],
)
def test_what_follows_itself_at_once_was_not_sent_again(again: list[tuple[int, int]], copies: int) -> None:
    """Of three segments of a response one comes twice."""
    answer = heartbeat_response(1)
    wire = Wire().open().up(heartbeat(1)).down(answer[:3]).down(answer[3:6]).down(answer[6:])
    three = wire.segments[-3:]
    more = [(one[0], three[-1][1] + after_ns, *one[2:]) for place, after_ns in again for one in (three[place],)]
    (connection,) = (
        event for event in analyze_with(Analyzer(), [*wire.segments, *more]) if isinstance(event, Connection)
    )
    assert (connection.retransmits, connection.copies) == ([0, 1], (0, copies))


def test_what_comes_after_all_when_it_was_sent_again_was_not_lost() -> None:
    """The second of three segments is overtaken, sent again after 2 ms, and comes itself 2 ms later."""
    answer = heartbeat_response(1)
    wire = Wire().open().up(heartbeat(1)).down(answer[:4]).down(answer[4:9]).down(answer[9:])
    *before, second, third = wire.segments
    again, late = ((second[0], third[1] + ns, *second[2:]) for ns in (2_000_000, 4_000_000))
    (connection,) = (
        event for event in analyze_with(Analyzer(), [*before, third, again, late]) if isinstance(event, Connection)
    )
    assert (connection.recovered, connection.retransmits, connection.copies) == ([0, 0], [0, 1], (0, 1))


def test_a_segment_that_comes_late_was_lost_before_the_capture_point() -> None:
    """Of three segments of a response the second comes last: at once it was overtaken, 200 ms later sent again."""
    answer = heartbeat_response(1)
    for late_ns, recovered in ((50_000, 0), (200_000_000, 1)):
        wire = Wire().open().up(heartbeat(1)).down(answer[:4]).down(answer[4:9]).down(answer[9:])
        *before, second, third = wire.segments
        moved = (second[0], third[1] + late_ns, *second[2:])
        found = list(analyze_with(Analyzer(), [*before, third, moved]))
        (connection,) = (event for event in found if isinstance(event, Connection))
        assert (connection.recovered, connection.retransmits) == ([0, recovered], [0, 0])
        assert connection.largest_segments == [len(heartbeat(1)), max(5, len(answer) - 9)]
        assert [one.outcome for one in exchanges(found)] == ["ok"]


@pytest.mark.parametrize(
    ("behind", "expected"), [(0, [("incomplete_response", True)]), (5, [("gap", None), ("incomplete_response", None)])]
)
def test_what_the_receiver_waits_for_was_not_lost_by_the_capture(
    behind: int, expected: list[tuple[str, bool | None]]
) -> None:
    """An answer without its end: the client has acknowledged what is there of it, or bytes behind that as well."""
    wire = Wire().open().up(heartbeat(1), heartbeat(2)).down(heartbeat_response(1), heartbeat_response(2)[:9])
    wire.seq[1] += behind
    wire.send(0)
    found = [(one.code, (one.details or {}).get("unacknowledged")) for one in problems(events(wire))]
    assert found == expected


@pytest.mark.parametrize("last_flags", [RST, ACK])
def test_an_answer_that_its_client_did_not_wait_for_was_not_lost_by_the_capture(last_flags: int) -> None:
    """The client has closed, the answer is lost on the way, and the broker's FIN comes after it: a RST without an
    acknowledgement says nothing of the answer, an acknowledgement of the FIN says that it came."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).up(heartbeat(2))
    wire.send(0, flags=FIN | ACK)
    wire.down(heartbeat_response(2), drop=True).send(1, flags=FIN | ACK)
    wire.send(0, flags=last_flags)
    (lost,) = (one.details or {} for one in problems(events(wire)) if one.code == "gap")
    assert (lost["missing_bytes"], lost.get("unacknowledged")) == (10, True if last_flags == RST else None)


def test_a_syn_captured_after_its_answer_was_sent_once() -> None:
    """Packets of two interfaces, merged, may be in the other order."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).close()
    syn, answer, *rest = wire.segments
    late = (syn[0], answer[1] + 150_000_000, *syn[2:])
    (connection,) = (
        event for event in analyze_with(Analyzer(), [answer, late, *rest]) if isinstance(event, Connection)
    )
    assert (connection.syn_retransmits, sum(connection.retransmits)) == (0, 0)
