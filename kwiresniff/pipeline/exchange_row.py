"""The row of an exchange in the table ``exchanges``. Written for mypyc: exchanges come by the million."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kwiresniff.export.encode import json_text
from kwiresniff.export.flat import body_text, message_place
from kwiresniff.export.json_objects import frame_problem_json
from kwiresniff.model import Exchange, Message
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.moments import day_of, micros_of, seen_ns


def exchange_row(
    exchange: Exchange, source: str, number: int, entities: Entities, files: Sequence[str]
) -> tuple[Any, ...]:
    """The values of the columns. ``number`` is that of the connection, ``entities`` are the names in the exchange,
    ``files`` those of the source in reading order.
    """
    request, response = exchange.request, exchange.response
    ns = seen_ns(exchange)
    errors, problems = exchange.errors, exchange.problems
    return (
        day_of(ns),
        exchange.api or None,
        micros_of(ns),
        source,
        number,
        exchange.connection.client,
        exchange.connection.broker,
        exchange.api_key,
        exchange.api_version,
        exchange.correlation_id,
        exchange.client_id,
        exchange.outcome,
        exchange.waiting or None,
        exchange.latency_ns,
        exchange.queued_ns,
        exchange.held_ns,
        exchange.broker_ns,
        None if request is None else request.last_ns - request.first_ns,
        None if response is None else response.last_ns - response.first_ns,
        entities.topics,
        entities.partitions,
        entities.groups,
        list(dict.fromkeys([name for _, _, name, _ in errors])),
        errors,
        list(dict.fromkeys([problem.code for problem in problems])),
        json_text([frame_problem_json(problem) for problem in problems]) if problems else None,
        *_message(request, files),
        *_message(response, files),
    )


def _message(message: Message | None, files: Sequence[str]) -> tuple[Any, ...]:
    if message is None:
        return (None, None, None, None, None, None, None)
    return (*message_place(message, files), message.header_version, body_text(message))
