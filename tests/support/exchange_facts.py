"""What most tests of exchanges look at."""

from __future__ import annotations

from kwiresniff.model import Exchange


def facts(exchange: Exchange) -> tuple[object, ...]:
    """API, version, correlation id and outcome."""
    return (exchange.api, exchange.api_version, exchange.correlation_id, exchange.outcome)
