"""The fields of filters: each one's kind, and how its values are taken from an exchange.

A getter returns a tuple of values, empty when there is none, or None when that cannot be known without decoding the
bodies. Early getters may be asked while the response is still on its way; final ones always answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from itertools import count
from typing import Any, NamedTuple

from kwiresniff.analysis.body_entities import (
    message_groups,
    message_topics,
    message_transactional_ids,
    partitions_of,
    session_topics,
)
from kwiresniff.analysis.filter.of_sessions import SessionPartitionTest, SessionTest
from kwiresniff.analysis.filter.parser import MAX_NEAR
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.body_members import BATCH_MEMBERS, DECODED, HEADER_MEMBERS, RECORD_MEMBERS, UNKNOWN_TAGS
from kwiresniff.base.depths import Depth
from kwiresniff.base.entities import RECORD_SETS
from kwiresniff.model import OUTCOMES, Direction, Exchange, Message, TopicNames
from kwiresniff.schema.aliases import body_fields, fields_below, names_of, newer_paths

Values = Sequence[Any]
Getter = Callable[[Exchange], "Values | None"]

#: Outcomes that are final before any body is decoded.
_OUTCOMES_WITHOUT_RESPONSE = frozenset({"no_response_expected", "unanswered"})

NOT_KNOWN = None


class Field(NamedTuple):
    """``kind`` rules which literals may stand beside it; ``depth`` is how deep bodies must be decoded for it.

    Of a field that fetch sessions have values of as well, ``named`` gives those of the messages alone, and ``sessions``
    turns a test of a value into one of the session that an exchange belongs to.
    """

    name: str
    kind: str
    depth: Depth
    early: Getter
    final: Getter
    named: Getter | None = None
    sessions: Callable[[Callable[[Any], bool]], Callable[[Exchange], bool]] | None = None


def _present(value: Any) -> Values:
    return () if value is None else (value,)


def _unknown_early(exchange: Exchange) -> None:
    return NOT_KNOWN


def _on_header(name: str, kind: str, get: Callable[[Exchange], Any]) -> Field:
    """A field that is settled as soon as the request's header is."""

    def values(exchange: Exchange) -> Values:
        return _present(get(exchange))

    return Field(name, kind, "headers", values, values)


def _response_to_come(exchange: Exchange) -> bool:
    return exchange.response is None and exchange.outcome not in _OUTCOMES_WITHOUT_RESPONSE


def _on_response(name: str, kind: str, get: Callable[[Exchange], Any]) -> Field:
    """A field that is settled when the response has come, or will not come."""

    def final(exchange: Exchange) -> Values:
        return _present(get(exchange))

    def early(exchange: Exchange) -> Values | None:
        return NOT_KNOWN if _response_to_come(exchange) else final(exchange)

    return Field(name, kind, "headers", early, final)


def _on_bodies(name: str, kind: str, get: Callable[[Message | None], Values]) -> Field:
    """A field with the values of both bodies."""

    def final(exchange: Exchange) -> Values:
        asked, answered = get(exchange.request), get(exchange.response)
        return (*asked, *answered) if asked and answered else asked or answered

    return Field(name, kind, "bodies", _unknown_early, final)


def _of_fetches(
    field: Field,
    fetched: Callable[[Exchange], Values],
    sessions: Callable[[Callable[[Any], bool]], Callable[[Exchange], bool]],
) -> Field:
    """``field``, which also has the values of the fetch session that an exchange belongs to (``fetched``)."""

    def final(exchange: Exchange) -> Values:
        values = field.final(exchange) or ()
        return values if exchange.fetched is None else (*values, *fetched(exchange))

    return Field(field.name, field.kind, field.depth, field.early, final, field.final, sessions)


def _fetched_partitions(exchange: Exchange) -> Values:
    return () if exchange.fetched is None else exchange.fetched.partitions


def _never() -> int:
    """Stands for the number of changes where there are none."""
    return 0


def _size_bytes(exchange: Exchange) -> int:
    return sum(message.size_bytes for message in (exchange.request, exchange.response) if message is not None)


def _time_ns(exchange: Exchange) -> int | None:
    message = exchange.request or exchange.response
    return None if message is None else message.first_ns


def _message_size(message: Message | None) -> int | None:
    return None if message is None else message.size_bytes


def _acks(exchange: Exchange) -> Values:
    body = exchange.request.body if exchange.request else None
    return _present(body.get("acks")) if body else ()


def _error_codes(exchange: Exchange) -> Values:
    """Every error code there is; 0 (NONE) when an answer came and has none."""
    if exchange.errors:
        return [error[1] for error in exchange.errors]
    return (0,) if exchange.outcome == "ok" else ()


def _early_error_codes(exchange: Exchange) -> Values | None:
    return () if exchange.outcome in _OUTCOMES_WITHOUT_RESPONSE else NOT_KNOWN


def _principal(exchange: Exchange) -> Any:
    return (exchange.connection.sasl or {}).get("principal")


def _proxied(exchange: Exchange, member: str) -> Any:
    return (exchange.connection.proxied or {}).get(member)


def outcome_early(exchange: Exchange) -> tuple[str, ...]:
    """The outcomes that are still possible."""
    if exchange.outcome != "ok":
        return (exchange.outcome,)
    if exchange.response is not None:
        return ("ok", "error", "undecoded")
    return OUTCOMES


def _ends(names: AddressNames | None) -> tuple[Field, Field]:
    """The ends of a connection: addresses, and in their place what those are called, where there are names."""
    if names is None:
        return (
            _on_header("client", "endpoint", lambda exchange: exchange.connection.client),
            _on_header("broker", "endpoint", lambda exchange: exchange.connection.broker),
        )
    known = names

    def client(exchange: Exchange) -> Values:
        return known.called(exchange.connection.client)

    def broker(exchange: Exchange) -> Values:
        connection = exchange.connection
        tls = connection.tls
        return known.called(connection.broker, None if tls is None else tls.get("server_name"))

    return Field("client", "host", "headers", client, client), Field("broker", "host", "headers", broker, broker)


def fields(
    topic_name: TopicNames | None = None,
    names_known: Callable[[], int] | None = None,
    names: AddressNames | None = None,
) -> dict[str, Field]:
    """All fields with a fixed name; ``request.body.<path>`` and ``response.body.<path>`` come from ``body_field``.

    ``names_known`` is the number of the names that ``topic_name`` has learned and forgotten. ``names`` are those of
    addresses.
    """
    changes = names_known or (count().__next__ if topic_name is not None else _never)
    found = (
        _on_header("api", "api", lambda exchange: exchange.api_key),
        _on_header("api_key", "int", lambda exchange: exchange.api_key),
        _on_header("api_version", "int", lambda exchange: exchange.api_version),
        _on_header("client_id", "text", lambda exchange: exchange.client_id),
        _on_header("correlation_id", "int", lambda exchange: exchange.correlation_id),
        *_ends(names),
        _on_header("proxied.client", "endpoint", lambda exchange: _proxied(exchange, "client")),
        _on_header("proxied.broker", "host", lambda exchange: _proxied(exchange, "broker")),
        _on_header("proxied.by", "text", lambda exchange: _proxied(exchange, "by")),
        _on_header("connection", "int", lambda exchange: exchange.connection.id),
        _on_header("principal", "text", _principal),
        _of_fetches(
            _on_bodies("topic", "text", lambda message: message_topics(message, topic_name)),
            lambda exchange: session_topics(exchange, topic_name),
            lambda test: SessionTest(test, topic_name, changes),
        ),
        _of_fetches(
            _on_bodies("partition", "int", lambda message: partitions_of(message.body) if message else []),
            _fetched_partitions,
            SessionPartitionTest,
        ),
        _on_bodies("group", "text", message_groups),
        _on_bodies("transactional_id", "text", message_transactional_ids),
        Field("acks", "int", "bodies", _unknown_early, _acks),
        Field("error", "error", "errors", _early_error_codes, _error_codes),
        Field("outcome", "outcome", "errors", outcome_early, lambda exchange: (exchange.outcome,)),
        _on_response("latency", "duration", lambda exchange: exchange.latency_ns),
        _on_response("queued", "duration", lambda exchange: exchange.queued_ns),
        _on_response("held", "duration", lambda exchange: exchange.held_ns),
        _on_response("broker_latency", "duration", lambda exchange: exchange.broker_ns),
        _on_response("size", "size", _size_bytes),
        _on_header("request.size", "size", lambda exchange: _message_size(exchange.request)),
        _on_response("response.size", "size", lambda exchange: _message_size(exchange.response)),
        _on_header("time", "time", _time_ns),
    )
    return {field.name: field for field in found}


_PATH = re.compile(r"(request|response)\.body((?:\.[A-Za-z_0-9]+(?:\[\d{0,9}\])*)+)")
_STEP = re.compile(r"\.([A-Za-z_0-9]+)|\[(\d*)\]")

PathStep = str | int

#: Names of fields with record sets, in 0.8 to 2.7 too, and of the records in a batch.
_RECORD_SETS = RECORD_SETS | {"record_set"}


_NOTHING: tuple[frozenset[str], ...] = (frozenset(),)
_BELOW_RECORD_SETS = (BATCH_MEMBERS, RECORD_MEMBERS, HEADER_MEMBERS, *_NOTHING)


class UnknownStep(NamedTuple):
    """A step of the name of a ``body_field`` that no message has in any version: where in the name it begins, the path
    before it, and the names that come near it there.
    """

    step: str
    start: int
    path: str
    near: tuple[str, ...]


def unknown_step(name: str) -> UnknownStep | None:
    """The first step of the name of a ``body_field`` that no message of that side has, or had, in its place.

    What stands below decoded bytes, control records and tagged fields that no definition has is not checked.
    """
    match = _PATH.fullmatch(name)
    if match is None:
        return None
    fields = body_fields("request" if match[1] == "request" else "response")
    in_records: tuple[frozenset[str], ...] = ()  # the names that the next steps may have, below a record set
    for found in _STEP.finditer(name, match.start(2)):
        step = found[1]
        if step is None:  # an index
            continue
        if in_records:
            if step not in in_records[0]:
                part = name[: found.start()].rpartition(".")[2]
                into = (f"record.{part}{name[found.start() :]}",) if part in HEADER_MEMBERS else ()
                near = into or tuple(get_close_matches(step, sorted(in_records[0]), n=MAX_NEAR))
                return UnknownStep(step, found.start(1), name[: found.start()], near)
            in_records = in_records[1:] if step in ("records", "headers") else _NOTHING
            if step in ("control", "decoded"):
                return None
            continue
        names = names_of(fields)
        if step == UNKNOWN_TAGS:
            return None
        if step not in names:
            if step.endswith(DECODED) and step.removesuffix(DECODED) in names:
                return None
            near = tuple(get_close_matches(step, sorted(names), n=MAX_NEAR))
            return UnknownStep(step, found.start(1), name[: found.start()], near)
        if any(field.type == "records" for field in fields if step in (field.name, *field.aliases)):
            in_records = _BELOW_RECORD_SETS
        fields = fields_below(fields, step)
    return None


def body_field(name: str) -> Field | None:
    """The field for ``request.body.<path>``, or None when the name has not that form.

    ``topics.name`` and ``topics[].name`` mean any topic's name, ``topics[0].name`` the first one's. Where a body has no
    such field, the names may be older ones.
    """
    match = _PATH.fullmatch(name)
    if match is None:
        return None
    side: Direction = "request" if match[1] == "request" else "response"
    steps: list[PathStep] = [step or int(index) for step, index in _STEP.findall(match[2]) if step or index]
    names = tuple(step for step in steps if isinstance(step, str))
    # Batches are in a record set; what is under their own ``records`` is only there when they are decompressed.
    depth: Depth = "records" if sum(name in _RECORD_SETS for name in names) > 1 else "bodies"

    def final(exchange: Exchange) -> Values:
        message: Message | None = getattr(exchange, side)
        if message is None or message.body is None:
            return ()
        found = follow(message.body, steps)
        if not found:
            for path in newer_paths(exchange.api_key, side, names):
                newer = iter(path)
                found += follow(message.body, [step if isinstance(step, int) else next(newer) for step in steps])
        return found

    return Field(name, "any", depth, _unknown_early, final)


def follow(data: Any, steps: Sequence[PathStep]) -> list[Any]:
    """All values a path leads to; arrays without an index mean every element, nulls are left out."""
    found = [data]
    for step in steps:
        if isinstance(step, int):
            found = [value[step] for value in found if isinstance(value, list) and step < len(value)]
        else:
            found = [value.get(step) for value in _elements(found) if isinstance(value, dict)]
    return [value for value in _elements(found) if value is not None]


def _elements(values: list[Any]) -> list[Any]:
    """Lists replaced by their elements, also those inside each other."""
    while any(isinstance(value, list) for value in values):
        values = [item for value in values for item in (value if isinstance(value, list) else (value,))]
    return values
