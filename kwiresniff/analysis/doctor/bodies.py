"""Bodies of exchanges, and the group that a request names."""

from __future__ import annotations

from kwiresniff.analysis.doctor.evidence import clipped
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange


def request_body(exchange: Exchange) -> Body:
    """The body of the request; empty where there is none."""
    return (exchange.request.body if exchange.request is not None else None) or {}


def response_body(exchange: Exchange) -> Body:
    """The body of the response; empty where there is none."""
    return (exchange.response.body if exchange.response is not None else None) or {}


def is_answered(exchange: Exchange) -> bool:
    """Whether the exchange has a response that was decoded."""
    return exchange.response is not None and exchange.response.body is not None


def group_of(request: Body) -> str:
    """The ``group_id`` of a request, clipped."""
    return clipped(field_text(request.get("group_id")))
