"""Where in an answer an error code stands: of which topic and partition, and what the broker says of it."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, clipped
from kwiresniff.analysis.doctor.rule import Context
from kwiresniff.base.field_values import field_text
from kwiresniff.base.light_typing import Any, Final, NamedTuple
from kwiresniff.model import Body, Exchange

#: Errors of an answer that are looked at one by one. One with more has them for the same reason.
MAX_PLACES = 200

_PARTITION_FIELDS: Final = ("partition_index", "partition", "partition_id", "index")


class ErrorPlace(NamedTuple):
    """An error code of an answer. What it does not stand beneath is empty, a partition -1; ``member`` is the structure
    that holds it."""

    name: str
    retriable: bool
    topic: str
    partition: int
    message: str
    member: Body

    @property
    def what(self) -> str:
        """``orders-0``, or the topic alone, or an empty text."""
        return f"{self.topic}-{self.partition}" if self.topic and self.partition >= 0 else self.topic


def error_places(exchange: Exchange, context: Context) -> Iterator[ErrorPlace]:
    """The errors of an exchange with what they are about."""
    body = exchange.response.body if exchange.response is not None else None
    for path, _, name, retriable in exchange.errors[:MAX_PLACES]:
        topic, partition, message = "", -1, ""
        holder: Body = body or {}
        for parent, member in _members(body, path):
            holder = member
            message = field_text(member.get("error_message")) or message
            if "topic_id" in member or "topic" in parent or parent in ("responses", "results"):
                topic = context.topic_of(member) or topic
            if "partition" in parent:
                partition = next((member[one] for one in _PARTITION_FIELDS if isinstance(member.get(one), int)), -1)
        yield ErrorPlace(name, retriable, clipped(topic), partition, clipped(message, MAX_MESSAGE_CHARS), holder)


def _members(body: Body | None, path: str) -> Iterator[tuple[str, Body]]:
    """The structures along a path, each with the name of the field it is in."""
    at: Any = body
    if isinstance(at, dict):
        yield "", at
    for step in path.split(".")[:-1]:
        name, _, index = step.removesuffix("]").partition("[")
        at = at.get(name) if isinstance(at, dict) else None
        if index and isinstance(at, list):
            at = at[int(index)] if int(index) < len(at) else None
        if not isinstance(at, dict):
            return
        yield name, at
