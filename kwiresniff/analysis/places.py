"""Where exchanges are in the capture, as ``(packet reference, time in ns)``."""

from __future__ import annotations

from kwiresniff.model import Exchange


def place_of(exchange: Exchange) -> tuple[int, int]:
    """The packet in which the response begins, else the one of the request, and its time."""
    message = exchange.response or exchange.request
    assert message is not None
    return message.first_packet, message.first_ns


def request_place(exchange: Exchange) -> tuple[int, int]:
    """The packet in which the request begins, else the one of the response, and its time."""
    message = exchange.request or exchange.response
    assert message is not None
    return message.first_packet, message.first_ns
