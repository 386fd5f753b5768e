"""Exchanges of every sort that an output has to write: with and without bodies, times, remarks and files."""

from __future__ import annotations

from typing import Any

from kwiresniff.base.packet_references import PACKET_BITS
from kwiresniff.model import Exchange, Problem
from tests.support.exchanges import START_NS, connection, exchange

FILES = ("a.pcap", 'größe "2".pcap', "\x9b.pcap")


def with_text(built: Exchange, request: bytes | None, response: bytes | None) -> Exchange:
    for message, text in ((built.request, request), (built.response, response)):
        if message is not None:
            message.text = None if text is None else ([text] if len(text) < 5 else [text[:2], text[2:]])
    return built


def without_request() -> Exchange:
    built = with_text(exchange(api="", api_key=-1, api_version=-1, outcome="request_missing"), None, b'{"a":1}')
    built.request = None
    return built


def behind_a_proxy() -> Exchange:
    on = connection()
    on.proxied = {"client": "203.0.113.7:51515", "broker": "kafka-1\x9b:9092", "by": "PROXY v2, SOCKS5"}
    return with_text(exchange(on=on), b"{}", b"{}")


def in_file(index: int) -> Exchange:
    built = with_text(exchange(), b"{}", b"{}")
    for message in (built.request, built.response):
        assert message is not None
        message.first_packet += index << PACKET_BITS
        message.last_packet += index << PACKET_BITS
    return built


#: Unknown tagged fields have numbers for names.
WITH_A_TAG: dict[Any, Any] = {"k": b"\xff", 5: "\u202e"}
EXCHANGES: dict[str, Exchange] = {
    "usual": with_text(exchange(), b'{"a":1}', '{"b":"größe"}'.encode()),
    "request as text": with_text(exchange(response=WITH_A_TAG), b"{}", None),
    "response as text": with_text(exchange(request={"x": b"text"}), None, b"{}"),
    "no response": with_text(exchange(latency_ns=None, outcome="unanswered"), b"{}", None),
    "no request": without_request(),
    "behind a proxy": behind_a_proxy(),
    "no client id": with_text(exchange(client_id=None), b"{}", b"{}"),
    "odd client id": with_text(exchange(client_id='a"\\\n\x7f\x9b\u2028ß'), b"{}", b"{}"),
    "response before request": with_text(exchange(latency_ns=-50_000), b"{}", b"{}"),
    "queued and held": with_text(exchange(queued=10_000, held=20_000), b"{}", b"{}"),
    "queued": with_text(exchange(queued=10_000), b"{}", b"{}"),
    "parts not known": with_text(exchange(queued=-1, held=-1), b"{}", b"{}"),
    "remarks": with_text(
        exchange(
            errors=[("e[0]", 3, "UNKNOWN_TOPIC_OR_PARTITION", True)],
            problems=[Problem("bad_crc", "no", 7, details={"direction": "request"}), Problem("x", "y")],
            notes=[{"plugin": "p", "message": "m"}],
            outcome="error",
        ),
        b"{}",
        None,
    ),
    **{f"starts at {ns}": with_text(exchange(start_ns=ns), b"{}", b"{}") for ns in (
        0, 1, 999_999_999, 1_000_000_000, START_NS + 123_456_789, -1, -1_000_000_001, (1 << 62) - (1 << 32), -(1 << 61),
    )},
    **{f"in file {index}": in_file(index) for index in range(4)},
}  # fmt: skip
