"""Bodies as dicts straight from bytes, by a plan: making the decoder of a message costs as much as reading hundreds.

A body that comes out is the one that the generated decoder (``kwiresniff.codec.decoder_gen``) gives. Whatever is
unusual is left to that, but for bytes left over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, final

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.codec.field_layout import default_value
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.tagged_structure import with_tagged
from kwiresniff.codec.text.body_reader import BodyReader
from kwiresniff.codec.text.plan import (
    BOOLEAN,
    BYTES,
    RECORDS,
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


def value_steps(message: MessageVersion) -> Step | None:
    """How bodies of a message are read, as one structure; None for one that holds record sets, or types that no plan
    knows.
    """
    whole = Step(b"", STRUCTURE)
    try:
        whole.steps = plan(message, leads=False)
    except SchemaError:
        return None
    if _holds_records(whole.steps):
        return None
    _prepare(whole)
    return whole


def _holds_records(steps: list[Step]) -> bool:
    for step in steps:  # noqa: SIM110 - compiled, a generator is dear
        if step.kind == RECORDS or _holds_records(step.steps):
            return True
    return False


def _prepare(structure: Step) -> None:
    """Sets the ``blank`` of structures, and which tagged fields have a default of their own each time (``is_own``).

    A blank is a dict in which numbers are zero, texts and bytes empty and tagged fields not there. To copy it and to
    set the rest takes half of what a dict takes that is filled one by one.
    """
    tagged: dict[str, Any] = {}
    for step in structure.steps:
        if step.kind == TAG_SECTION:
            for one in step.steps:
                assert one.field is not None
                tagged[one.name] = default_value(one.field)
                one.is_own = isinstance(tagged[one.name], list | dict)
                if one.kind == STRUCTURE:
                    _prepare(one)
        else:
            structure.blank[step.name] = _blank(step)
            if step.kind == STRUCTURE:
                _prepare(step)
    structure.blank |= tagged


def _blank(step: Step) -> Any:
    if step.array or step.kind in (STRUCTURE, UUID, TOPIC_ID):
        return None
    if step.kind == BYTES:
        return b""
    return "" if step.kind in (STRING, TOPIC) else False if step.kind == BOOLEAN else 0


@final
class ValueReader(BodyReader):
    """Reads one body after another."""

    def body(self, whole: Step, frame: bytes, offset: i64) -> dict[str, Any] | None:
        """The body from ``offset`` on, with where it ends in ``pos``; None for one with anything unusual."""
        self.begin(frame)
        try:
            return self._structure(whole, offset)
        except (IndexError, UnicodeDecodeError, DecodeError):
            return None

    def elements(self, array: Step, frame: bytes, offset: i64, count: i64) -> list[Any] | None:
        """The values of ``count`` elements of an array, the first at ``offset``, with where they end in ``pos``; None
        where any has anything unusual.
        """
        self.begin(frame)
        self.pos = offset
        try:
            return self._elements(array, count)
        except (IndexError, UnicodeDecodeError, DecodeError):
            return None

    def _structure(self, structure: Step, pos: i64) -> dict[str, Any]:
        found = structure.blank.copy()
        for step in structure.steps:
            kind: i64 = step.kind
            if kind == TAG_SECTION:
                if self.frame[pos] or step.steps:
                    found = self._tag_section(step, found, pos)
                    pos = self.pos
                else:
                    pos += 1
            elif step.array:
                found[step.name] = self._array(step, pos)
                pos = self.pos
            elif kind == STRING or kind == TOPIC or kind == BYTES:  # noqa: SIM109 - comparisons when compiled
                length: i64 = self.length_of(step, pos)
                pos = self.pos
                if length:
                    found[step.name] = self._sized(kind, length, pos)
                    pos = self.pos
            elif kind == STRUCTURE or kind == UUID or kind == TOPIC_ID:  # noqa: SIM109
                found[step.name] = self._value(step, pos)
                pos = self.pos
            else:
                number: i64 = self.number(kind, pos)
                pos = self.pos
                if number:
                    if kind == BOOLEAN:
                        found[step.name] = True
                    else:
                        found[step.name] = number
        self.pos = pos
        return found

    def _tag_section(self, section: Step, found: dict[str, Any], pos: i64) -> dict[str, Any]:
        """Adds the tagged fields of a structure and returns it; those that are not there have their defaults."""
        for step in section.steps:
            if step.is_own:
                assert step.field is not None
                found[step.name] = default_value(step.field)
        left: i64 = self.frame[pos]
        self.pos = pos + 1
        self.left -= left
        if self.left < 0 or left > 127 or left * 2 > len(self.frame) - self.pos:
            raise _unusual()
        last: i64 = -1
        while left:
            left -= 1
            tag: i64 = self.uvarint(self.pos)
            size: i64 = self.uvarint(self.pos)
            begin: i64 = self.pos
            stop: i64 = begin + size
            if tag <= last or size < 0 or stop > len(self.frame):
                raise _unusual()
            last = tag
            known: Step | None = None
            for step in section.steps:
                if step.tag == tag:
                    known = step
            if known is None:
                raw = self.frame[begin:stop]
                others: dict[int, bytes] | None = found.get(UNKNOWN_TAGS)
                if others is None:
                    found[UNKNOWN_TAGS] = {tag: raw}
                else:
                    others[tag] = raw
                self.pos = stop
                continue
            value = self._array(known, begin) if known.array else self._value(known, begin)
            found = with_tagged(found, known.name, value)
            if self.pos != stop:
                raise _unusual()
        return found

    def _array(self, step: Step, pos: i64) -> list[Any] | None:
        count: i64 = self.count_of(step, pos)
        if count < 0:
            if count == -1:
                return None
            raise _unusual()
        return self._elements(step, count)

    def _elements(self, step: Step, count: i64) -> list[Any]:
        found: list[Any] = []
        is_plain = step.kind == STRUCTURE and not step.nullable
        while count:
            count -= 1
            if is_plain:
                found.append(self._structure(step, self.pos))
            else:
                found.append(self._value(step, self.pos))
        return found

    def _value(self, step: Step, pos: i64) -> Any:
        """A single value, whether a field or an element of an array."""
        kind: i64 = step.kind
        if kind == STRING or kind == TOPIC or kind == BYTES:  # noqa: SIM109 - comparisons when compiled
            length: i64 = self.length_of(step, pos)
            if not length:  # as most are, where somebody wants to keep readers busy
                return b"" if kind == BYTES else ""
            return self._sized(kind, length, self.pos)
        if kind == BOOLEAN:
            return self.number(kind, pos) != 0
        if kind == UUID or kind == TOPIC_ID:  # noqa: SIM109
            if pos + 16 > len(self.frame):
                raise _unusual()
            self.pos = pos + 16
            return uuid_text(self.frame[pos : pos + 16])
        if kind == STRUCTURE:
            return self._nullable_structure(step, pos) if step.nullable else self._structure(step, pos)
        return self.number(kind, pos)

    def _nullable_structure(self, step: Step, pos: i64) -> dict[str, Any] | None:
        mark: i64 = self.frame[pos]
        if mark == 1:
            return self._structure(step, pos + 1)
        if mark != (255 if step.tag < 0 else 0):  # see ``null_mark`` of ``kwiresniff.codec.field_layout``
            raise _unusual()
        self.pos = pos + 1
        return None

    def _sized(self, kind: i64, length: i64, begin: i64) -> str | bytes | None:
        """A string or bytes of a length that is not zero, behind it."""
        if length < 0:
            if length == -1:
                self.pos = begin
                return None
            raise _unusual()
        self.pos = begin + length
        raw = self.frame[begin : self.pos]
        return raw if kind == BYTES else raw.decode()


def _unusual() -> DecodeError:
    return DecodeError("this is for a decoder", code="bad_length")


@final
class PlanDecoder:
    """A decoder that reads ``whole`` bodies, and what is unusual by that which ``make`` makes."""

    def __init__(self, whole: Step, make: Callable[[], Decoder]) -> None:
        self._whole = whole
        self._make = make
        self._made: Decoder | None = None

    def __call__(self, frame: bytes, body_offset: int, issues: list[Problem]) -> tuple[dict[str, Any], int]:
        """The body and where it ends, see ``kwiresniff.codec.codecs.decoder``."""
        reader = ValueReader()
        body = reader.body(self._whole, frame, body_offset)
        if body is not None:
            return body, reader.pos
        if self._made is None:
            self._made = self._make()
        return self._made(frame, body_offset, issues)
