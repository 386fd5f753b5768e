"""Bodies as dicts straight from bytes, by a plan: making the decoder of a message costs as much as reading hundreds.

A body that comes out is the one that the generated decoder (``kwiresniff.codec.decoder_gen``) gives. Whatever is
unusual is left to that, but for bytes left over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from kwiresniff.codec.field_layout import MAX_ENTRIES, NUMBERS_SHIFT, default_value
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.text.body_reader import BodyReader
from kwiresniff.codec.text.plan import (
    BOOLEAN,
    BYTES,
    ERROR_CODE,
    RECORDS,
    SIZES,
    STRING,
    STRUCTURE,
    TAG_SECTION,
    TOPIC,
    TOPIC_ID,
    UUID,
    Step,
    plan,
)
from kwiresniff.errors import DecodeError, SchemaError
from kwiresniff.model import Problem
from kwiresniff.schema.types import MessageVersion

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.codec.decoder_gen import Decoder


def value_steps(message: MessageVersion) -> list[Step] | None:
    """How bodies of a message are read; None for one that holds record sets, or types that no plan knows."""
    try:
        steps = plan(message, leads=False)
    except SchemaError:
        return None
    if _holds_records(steps):
        return None
    _weigh(steps)
    return steps


def _holds_records(steps: list[Step]) -> bool:
    for step in steps:  # noqa: SIM110 - compiled, a generator is dear
        if step.kind == RECORDS or _holds_records(step.steps):
            return True
    return False


def _weigh(steps: list[Step]) -> None:
    """Sets the ``weight`` of arrays: how many of their elements count as one value."""
    for step in steps:
        if step.array:
            step.weight = 1 << NUMBERS_SHIFT if step.kind in SIZES else 1
        _weigh(step.steps)


@final
class ValueReader(BodyReader):
    """Reads one body after another. ``found_error`` says whether the last one has an error code that is not zero."""

    def __init__(self) -> None:
        super().__init__()
        self.found_error = False
        self._left: i64 = 0  # of the values that a message may be made of

    def body(self, steps: list[Step], frame: bytes, offset: i64) -> dict[str, Any] | None:
        """The body from ``offset`` on, with where it ends in ``pos``; None for one with anything unusual."""
        self.frame = frame
        self.found_error = False
        self._left = MAX_ENTRIES
        try:
            return self._structure(steps, offset)
        except (IndexError, UnicodeDecodeError, DecodeError):
            return None

    def _structure(self, steps: list[Step], pos: i64) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self.pos = pos
        for step in steps:
            if step.kind == TAG_SECTION:
                pos = self.pos
                if self.frame[pos] or step.steps:
                    self._tag_section(step, found, pos)
                else:
                    self.pos = pos + 1
            elif step.array:
                found[step.name] = self._array(step, self.pos)
            else:
                found[step.name] = self._value(step, self.pos)
        return found

    def _tag_section(self, section: Step, found: dict[str, Any], pos: i64) -> None:
        """Tagged fields: what is not there has its default, in the order of tags all the same."""
        left: i64 = self.frame[pos]
        self.pos = pos + 1
        self._count(left)
        for step in section.steps:
            assert step.field is not None
            found[step.name] = default_value(step.field)
        last: i64 = -1
        while left:
            left -= 1
            tag: i64 = self.uvarint(self.pos)
            stop: i64 = self.uvarint(self.pos)
            stop += self.pos
            known = [step for step in section.steps if step.tag == tag]
            if tag <= last or not known:
                raise _unusual()
            last = tag
            step = known[0]
            found[step.name] = self._array(step, self.pos) if step.array else self._value(step, self.pos)
            if self.pos != stop:
                raise _unusual()

    def _array(self, step: Step, pos: i64) -> list[Any] | None:
        count: i64 = self.count_of(step, pos)
        if count < 0:
            if count == -1:
                return None
            raise _unusual()
        self._count(count // step.weight)
        found: list[Any] = []
        while count:
            count -= 1
            found.append(self._value(step, self.pos))
        return found

    def _count(self, values: i64) -> None:
        self._left -= values
        if self._left < 0:
            raise _unusual()

    def _value(self, step: Step, pos: i64) -> Any:
        """A single value, whether a field or an element of an array."""
        kind: i64 = step.kind
        if kind == STRING or kind == TOPIC or kind == BYTES:  # noqa: SIM109 - comparisons when compiled
            return self._sized(step, kind, pos)
        if kind == BOOLEAN:
            return self.number(kind, pos) != 0
        if kind == UUID or kind == TOPIC_ID:  # noqa: SIM109
            if pos + 16 > len(self.frame):
                raise _unusual()
            self.pos = pos + 16
            return uuid_text(self.frame[pos : pos + 16])
        if kind == STRUCTURE:
            return self._nullable_structure(step, pos) if step.nullable else self._structure(step.steps, pos)
        number: i64 = self.number(kind, pos)
        if kind == ERROR_CODE and number:
            self.found_error = True
        return number

    def _nullable_structure(self, step: Step, pos: i64) -> dict[str, Any] | None:
        mark: i64 = self.frame[pos]
        if mark == 1:
            return self._structure(step.steps, pos + 1)
        if mark != (255 if step.tag < 0 else 0):  # see ``null_mark`` of ``kwiresniff.codec.field_layout``
            raise _unusual()
        self.pos = pos + 1
        return None

    def _sized(self, step: Step, kind: i64, pos: i64) -> str | bytes | None:
        """A string or bytes, behind their length."""
        length: i64 = self.length_of(step, pos)
        if not length:  # as most are, where somebody wants to keep readers busy
            return b"" if kind == BYTES else ""
        if length < 0:
            if length == -1:
                return None
            raise _unusual()
        begin: i64 = self.pos
        self.pos = begin + length
        raw = self.frame[begin : self.pos]
        return raw if kind == BYTES else raw.decode()


def _unusual() -> DecodeError:
    return DecodeError("this is for a decoder", code="bad_length")


@final
class PlanDecoder:
    """A decoder that reads by ``steps``, and what is unusual by that which ``make`` makes.

    ``found_error`` says whether the last body may have an error code that is not zero.
    """

    def __init__(self, steps: list[Step], make: Callable[[], Decoder]) -> None:
        self._steps = steps
        self._make = make
        self._made: Decoder | None = None
        self.found_error = True

    def __call__(self, frame: bytes, body_offset: int, issues: list[Problem]) -> tuple[dict[str, Any], int]:
        """The body and where it ends, see ``kwiresniff.codec.codecs.decoder``."""
        reader = ValueReader()
        body = reader.body(self._steps, frame, body_offset)
        if body is not None:
            self.found_error = reader.found_error
            return body, reader.pos
        self.found_error = True
        if self._made is None:
            self._made = self._make()
        return self._made(frame, body_offset, issues)
