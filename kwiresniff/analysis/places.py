"""Where exchanges are in the capture, as ``(packet reference, time in ns)``."""

from __future__ import annotations

from kwiresniff.model import Exchange


def place_of(exchange: Exchange) -> tuple[int, int]:
    """Packet reference and time (ns) of the first packet of the response, else of the request."""
    message = exchange.response or exchange.request
    assert message is not None
    return message.first_packet, message.first_ns


def request_place(exchange: Exchange) -> tuple[int, int]:
    """Packet reference and time (ns) of the first packet of the request, else of the response."""
    message = exchange.request or exchange.response
    assert message is not None
    return message.first_packet, message.first_ns
