"""The topic, the partition and the broker's message of an error code in an answer."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from kwiresniff.analysis.doctor.bodies import response_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, Case, clipped
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange

#: Errors of an answer that are examined.
MAX_PLACES = 200

_PARTITION_FIELDS: Final = ("partition_index", "partition", "partition_id", "index")
_OF_TOPICS: Final = ("responses", "results")
#: Stands for the end of a path.
_END: Final = ("", -1)
#: Paths that are cached; most answers have errors in the same places.
_KEPT = 1024


class ErrorPlace(NamedTuple):
    """An error code of an answer, with its topic (else empty), partition (else -1), and the structure that holds it
    (``member``)."""

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

    def note(self, case: Case) -> None:
        """Adds code, topic, partition and message to a case, as far as they are known."""
        for kind, name in (("errors", self.name), ("topics", self.topic), ("concerns", self.what)):
            case.note(kind, [name] if name else [])
        case.note("messages", [self.message] if self.message else [])


def error_places(exchange: Exchange, context: Context, codes: frozenset[str] | None = None) -> list[ErrorPlace]:
    """The errors of an exchange, or those of some ``codes``, with their places."""
    errors = [one for one in exchange.errors[:MAX_PLACES] if codes is None or one[2] in codes]
    return [error_place(exchange, error, context) for error in errors]


def error_place(exchange: Exchange, error: tuple[str, int, str, bool], context: Context) -> ErrorPlace:
    """One of the errors of an exchange, with what the structures around it say."""
    path, _, name, retriable = error
    topic, partition, message = "", -1, ""
    member: Any = response_body(exchange)
    holder: Body = member or {}
    parent = ""  # the field that the structure is in
    steps = iter(_steps(path))
    while isinstance(member, dict):
        holder = member
        if "error_message" in member:
            message = field_text(member["error_message"]) or message
        if "topic_id" in member or "topic" in parent or parent in _OF_TOPICS:
            topic = context.topic_of(member) or topic
        if "partition" in parent:
            partition = next((member[one] for one in _PARTITION_FIELDS if isinstance(member.get(one), int)), -1)
        parent, index = next(steps, _END)
        member = member.get(parent)
        if index >= 0 and isinstance(member, list):
            member = member[index] if index < len(member) else None
    return ErrorPlace(name, retriable, clipped(topic), partition, clipped(message, MAX_MESSAGE_CHARS), holder)


@lru_cache(_KEPT)
def _steps(path: str) -> list[tuple[str, int]]:
    """The fields along a path that hold structures, each with an index, -1 where it is no array."""
    steps = [step.removesuffix("]").partition("[") for step in path.split(".")[:-1]]
    return [(name, int(index) if index else -1) for name, _, index in steps]
