"""Bodies made up from definitions, and conversations with them, for what is inside bytes fields."""

from __future__ import annotations

from typing import Any

from kwiresniff import schema
from kwiresniff.codec.field_layout import default_value
from kwiresniff.model import Body, Exchange
from kwiresniff.session import TopicNameTable
from tests.support.conversation import events, exchange_frames, exchanges, known_wire
from tests.support.encoding import encoder


def body_of(fields: tuple[schema.WireField, ...], **values: Any) -> Body:
    """A structure with these values and otherwise nothing in it."""
    return {field.name: values[field.name] if field.name in values else default_value(field) for field in fields}


def inner(fields: tuple[schema.WireField, ...], name: str) -> tuple[schema.WireField, ...]:
    return next(field.fields for field in fields if field.name == name)


def conversation(
    api_key: int, version: int, asked: Body, answered: Body, *, show_secrets: bool = False
) -> tuple[Exchange, TopicNameTable]:
    """One exchange as the analyzer gives it, after one that makes the connection known."""
    wire = known_wire()
    bodies = encoder(api_key, version, "request")(asked), encoder(api_key, version, "response")(answered)
    first, second = exchange_frames(api_key, version, 2, *bodies)
    wire.up(first).down(second)
    return exchanges(events(wire, depth="records", show_secrets=show_secrets))[1], TopicNameTable()


def batch(*values: bytes) -> Body:
    """A record batch of values without keys."""
    records: list[Body] = [
        {"offset": offset, "timestamp": 0, "key": None, "value": value, "headers": []}
        for offset, value in enumerate(values)
    ]
    nothing = dict.fromkeys(("producer_id", "producer_epoch", "base_sequence"), -1)
    front = {"base_offset": 0, "partition_leader_epoch": 0, "magic": 2, "attributes": 0}
    counts = {"last_offset_delta": len(values) - 1, "records_count": len(values)}
    return {**front, **counts, "base_timestamp": 0, "max_timestamp": 0, **nothing, "records": records}
