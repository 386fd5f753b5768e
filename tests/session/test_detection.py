"""Who is the client, and is it Kafka: what is believed of a connection, on which evidence, and when."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.base.flows import reverse
from kwiresniff.model import Exchange
from kwiresniff.session import Analyzer
from kwiresniff.session.detection import ProtocolDetector
from kwiresniff.session.phases import IGNORED, KAFKA, SASL_OPAQUE, TLS
from kwiresniff.stream.buffer_budget import BufferBudget
from kwiresniff.stream.frame_handler import FrameRecorder
from kwiresniff.stream.half_stream import HalfStream
from kwiresniff.stream.out_of_order import GRACE_PACKETS
from tests.support.conversation import (
    Wire,
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

#: ApiVersions v0 with the four bytes that librdkafka sent behind it until 2018.
LEFT_OVER = request(18, 0, 7, b"\0\0\0\0", "rdkafka")


def summaries(found: list[Exchange]) -> list[tuple[str, int, str]]:
    return [(one.api, one.correlation_id, one.outcome) for one in found]


# -- connections whose beginning was seen ----------------------------------------------------------------------------


def test_a_request_with_a_texty_client_id_is_believed_at_once() -> None:
    """Before an answer, and before its own end."""
    analyzer = Analyzer("headers")
    for segment in Wire().open().up(heartbeat(1)[:30]).segments:
        analyzer.segment(*segment)
    assert analyzer.connections == 1


def test_an_unknown_api_is_believed_when_the_server_answers_it() -> None:
    """A client ahead of all releases: the answer repeats its correlation id."""
    ask = request(999, 0, 77, b"??")
    found = exchanges(events(Wire().open().up(ask).down(response(77, b"!!")).up(heartbeat(78))))
    assert [(one.api_key, one.correlation_id) for one in found] == [(999, 77), (12, 78)]


@pytest.mark.parametrize("answer", [b"", response(78, b"!!"), b"\0\0\0\1\0\0\0\0", b"\x20\x02\0\0\0\0\0\0\0"])
def test_an_unknown_api_without_its_answer_is_not_kafka(answer: bytes) -> None:
    """However well its client id reads."""
    wire = Wire().open().up(request(999, 0, 77, b"??", "client-of-something"))
    if answer:
        wire.down(answer)
    found = events(wire.up(b"more").down(b"and more").close())
    assert [one.code for one in found if one in problems(found)] == ["not_kafka"]
    assert len(found) == 1


@pytest.mark.parametrize("size", [200 << 20, 0x3FFFFFFF])
def test_a_size_that_no_broker_takes_is_weak_evidence(size: int) -> None:
    """Behind it stand a known API, a version and a text, by chance."""
    front = pack(">ihhi", size, 12, 0, 1) + string("some text")
    found = events(Wire().open().up(front + b"and so on").down(b"something").close())
    assert [one.code for one in problems(found)] == ["not_kafka"]


def test_a_large_first_request_without_a_client_id_is_found() -> None:
    """In packets as networks cut them, longer than what is kept to judge it."""
    body = pack(">hii", 1, 1000, 1) + string("orders") + pack(">iii", 1, 0, 100_000) + b"\7" * 100_000
    ask = request(0, 0, 5, body, None)
    wire = Wire().open()
    for at in range(0, len(ask), 1400):
        wire.up(ask[at : at + 1400])
    answer = response(5, pack(">i", 1) + string("orders") + pack(">iihq", 1, 0, 0, 9))
    assert summaries(exchanges(events(wire.down(answer), depth="headers"))) == [("Produce", 5, "ok")]


def test_small_numbers_by_the_thousand_are_no_large_first_request() -> None:
    """Small numbers read as the header of a Produce without a client id; its body does not read as one."""
    found = events(Wire().open().up(b"\0\6\0\6\0\0\0\4" + b"\0\7\0\4" * 20_000).down(b"\0\0").close())
    assert [one.code for one in problems(found)] == ["not_kafka"]


# -- connections that were there before the capture ------------------------------------------------------------------


def test_a_request_with_bytes_left_over_is_believed_when_it_is_answered() -> None:
    """At once, not when the capture ends."""
    analyzer = Analyzer()
    wire = Wire().up(LEFT_OVER).down(api_versions_v0_response(7))
    wire.packet += 2 * GRACE_PACKETS  # its handshake may come for so long
    for segment in wire.up(b"\0").segments:
        analyzer.segment(*segment)
    (exchange,) = analyzer.events()
    assert isinstance(exchange, Exchange)
    assert summaries([exchange]) == [("ApiVersions", 7, "ok")]
    assert [one.code for one in exchange.problems] == ["trailing_bytes"]


def test_a_request_with_bytes_left_over_is_believed_without_an_answer_in_the_end() -> None:
    """Nothing speaks against a frame that fills its packet, names a known API and has a sound header."""
    assert summaries(exchanges(events(Wire().up(LEFT_OVER)))) == [("ApiVersions", 7, "unanswered")]


def test_a_frame_that_does_not_fill_its_packet_is_not_believed() -> None:
    """Neither with something before it nor behind it."""
    for packet in (b"x" + LEFT_OVER, LEFT_OVER + b"x"):
        assert exchanges(events(Wire().up(packet))) == []


def test_requests_before_the_one_that_is_believed_are_found_with_it() -> None:
    """Frames that end where the accepted request begins are requests, too."""
    wire = Wire().up(LEFT_OVER).up(heartbeat(8)).down(api_versions_v0_response(7)).down(heartbeat_response(8))
    assert summaries(exchanges(events(wire))) == [("ApiVersions", 7, "ok"), ("Heartbeat", 8, "ok")]


def test_an_answer_with_bytes_left_over_is_an_answer() -> None:
    """A response is one when it fills its packet and has the correlation id of a request in flight."""
    wire = Wire().up(heartbeat(1)).down(response(1, b"\0\0?"))
    (exchange,) = exchanges(events(wire))
    assert summaries([exchange]) == [("Heartbeat", 1, "ok")]
    assert [one.code for one in exchange.problems] == ["trailing_bytes"]


def test_an_answer_that_does_not_read_is_one_when_no_other_comes() -> None:
    """The request waits for it until the end."""
    (exchange,) = exchanges(events(Wire().up(heartbeat(1)).down(response(1, b"\0"))))
    assert exchange.response is not None
    assert exchange.problems


def test_a_response_that_reads_like_a_produce_is_not_believed_in_the_end() -> None:
    """With correlation id 5 and a topic's name it begins as a Produce v5 with a client id does."""
    offsets = response(5, pack(">i", 1) + string("orders") + pack(">iih", 1, 0, 0))
    assert exchanges(events(Wire().down(offsets))) == []


def test_zeros_are_not_believed_though_they_answer_each_other() -> None:
    """A frame of zeros names an API, a version and an empty client id."""
    zeros = pack(">i", 20) + b"\0" * 20
    assert exchanges(events(Wire().up(zeros).down(zeros).up(zeros).down(zeros))) == []


# -- verdicts ----------------------------------------------------------------------------------------------------------

PORTS = frozenset({(9092).to_bytes(2, "big")})
FLOW = bytes([10, 0, 0, 1, 10, 0, 0, 2]) + (40_000).to_bytes(2, "big") + (9092).to_bytes(2, "big")
HTTP = b"GET / HTTP/1.1\r\nHost: example\r\n\r\n"
CLIENT_HELLO = bytes([22, 3, 1, 0, 5, 1, 0, 0, 1, 0])
GSSAPI = b"\x60\x20\x06\x09" + bytes.fromhex("2a864886f712010202") + bytes(20)


def sides(up: bytes, down: bytes = b"", *, syn: bool = True) -> tuple[HalfStream, HalfStream]:
    """The half streams of a client and its broker with so many bytes under search."""
    halves = []
    for side, (flow, data) in enumerate(((FLOW, up), (reverse(FLOW), down))):
        half = HalfStream(flow, side, BufferBudget())
        half.start(1 << 20)
        half.desynchronize("mid_stream")
        half.next_seq = 1
        half.syn_seq = 0 if syn else -1
        if data:
            half.feed_anyhow(FrameRecorder(found=-1), 1, 1, 1, data, 0, len(data), 0)
        halves.append(half)
    return halves[0], halves[1]


@pytest.mark.parametrize(
    ("up", "phase", "protocol"),
    [
        (heartbeat(1), KAFKA, "kafka"),
        (pack(">i", len(GSSAPI)) + GSSAPI, SASL_OPAQUE, "kafka"),
        (CLIENT_HELLO, TLS, "tls"),
        (HTTP, IGNORED, "http"),
    ],
)
def test_a_verdict_says_what_the_first_bytes_are(up: bytes, phase: int, protocol: str) -> None:
    """The verdict also says who the client is; detection leaves the half streams as they were."""
    client, broker = sides(up)
    verdict = ProtocolDetector(FLOW, frozenset()).detect(client, client, broker, True)
    assert verdict is not None
    assert (verdict.phase, verdict.protocol, verdict.offset) == (phase, protocol, 0)
    assert verdict.client is client and verdict.shown is client
    assert client.resync.buffer.data == up
    assert not client.frames.synchronized and not client.closed


@pytest.mark.parametrize("cut", range(1, len(heartbeat(1)) - 1))
def test_a_first_request_is_known_as_soon_as_its_client_id_is_there(cut: int) -> None:
    """Cut anywhere: before that there is no verdict."""
    client, broker = sides(heartbeat(1)[:cut])
    verdict = ProtocolDetector(FLOW, frozenset()).detect(client, client, broker, True)
    client_id_end = 14 + int.from_bytes(heartbeat(1)[12:14], "big")
    assert (verdict is not None) == (cut >= client_id_end), cut


def test_in_mid_stream_the_verdict_says_where_the_requests_begin_and_who_sends_them() -> None:
    """Whichever half stream was taken for the client's."""
    broker, client = sides(b"", b"?????" + heartbeat(1) + heartbeat(2), syn=False)
    verdict = ProtocolDetector(FLOW, frozenset()).detect(client, broker, client, False)
    assert verdict is not None
    assert (verdict.phase, verdict.offset) == (KAFKA, 5)
    assert verdict.client is client


def test_what_comes_from_a_broker_port_is_no_client() -> None:
    """However much it reads like a request."""
    client, broker = sides(b"", heartbeat(1), syn=False)
    assert ProtocolDetector(FLOW, frozenset()).detect(broker, client, broker, False) is not None
    assert ProtocolDetector(FLOW, PORTS).detect(broker, client, broker, False) is None


def private(opened: bool, client: str | None, count: int, key: int = 10_000) -> Wire:
    """Requests of an API that no schema has, each answered; Confluent's begin at key 10000."""
    wire = Wire().open() if opened else Wire()
    for number in range(1, count + 1):
        wire.up(request(key, 2, number, b"\0\5hello", client)).down(response(number, b"\0\0abc"))
    return wire


@pytest.mark.parametrize("client", ["app", None])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("opened", [True, False])
def test_private_apis_alone_are_kafka_where_a_broker_is_named(opened: bool, count: int, client: str | None) -> None:
    """With --port and an answer; without, only a client id and a beginning that was seen are enough."""
    wire = private(opened, client, count)
    found = exchanges(events(wire, ports=[9092]))
    assert [(one.api, one.correlation_id) for one in found] == [
        ("UNKNOWN_API_10000", number) for number in range(1, count + 1)
    ]
    assert all(one.response is not None for one in found)
    assert len(exchanges(events(wire))) == (count if opened and client else 0)


def test_private_apis_without_an_answer_or_beyond_their_keys_are_not_believed() -> None:
    """Other keys that nobody knows, an answer with another id, and one that does not end with a segment."""
    assert not exchanges(events(private(False, "app", 3, key=9_999), ports=[9092]))
    assert not exchanges(events(private(False, "app", 3, key=20_000), ports=[9092]))
    wire = Wire().up(request(10_000, 2, 1, b"\0\5hello")).down(response(2, b"\0\0abc"))
    assert not exchanges(events(wire, ports=[9092]))
    wire = Wire().up(request(10_000, 2, 1, b"\0\5hello")).down(response(1, b"\0\0abc") + b"\0")
    assert not exchanges(events(wire, ports=[9092]))


@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_responses_alone_are_kafka_where_a_broker_is_named(opened: bool, count: int) -> None:
    """One direction, or the answer to what was asked before the capture began: its request is missing."""
    wire = Wire().open() if opened else Wire()
    for number in range(7, 7 + count):
        wire.up(heartbeat(number), drop=True).down(heartbeat_response(number))
    found = exchanges(events(wire, ports=[9092]))
    assert [(one.correlation_id, one.outcome) for one in found] == [
        (number, "request_missing") for number in range(7, 7 + count)
    ]
    assert not exchanges(events(wire))
    assert not exchanges(events(wire, ports=[40_000]))


@pytest.mark.parametrize(
    "data", [b"HTTP/1.1 400 Bad Request\r\n\r\n", heartbeat_response(7)[:9], heartbeat_response(-7)]
)
def test_what_does_not_read_like_responses_is_none_on_a_broker_s_port_either(data: bytes) -> None:
    """Another protocol, a frame that is cut off, and an id that no client gives."""
    assert not exchanges(events(Wire().down(data), ports=[9092]))
