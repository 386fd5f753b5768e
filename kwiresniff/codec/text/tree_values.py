"""Single values as they stand in the rows of a tree, each with its meaning."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from librt.strings import BytesWriter

from kwiresniff.base.json_text import write_number
from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.text.body_reader import BodyReader, int16
from kwiresniff.codec.text.plan import (
    BOOLEAN,
    BYTES,
    ERROR_CODE,
    INT64,
    TOPIC,
    TOPIC_ID,
    UUID,
    Step,
)
from kwiresniff.codec.text.tree_marks import TreeMarks
from kwiresniff.codec.text.tree_text import ValueWriter
from kwiresniff.codec.text.tree_wording import Words
from kwiresniff.codec.value_labels import meaning_of

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Values of one field whose text is kept.
KEPT: Final = 4096
_ZERO_BYTES: Final = ZERO_UUID.encode()


class ValueRows(BodyReader):
    """Writes single values of a body, each with its meaning.

    ``is_internal`` is asked whether a topic id belongs to one of Kafka's own topics, ``topic_name`` for the name
    behind one. ``is_distinctive`` says whether the value read last can tell its structure from its neighbours: it is
    neither null nor empty nor a zero id.
    """

    def __init__(
        self, words: Words, is_internal: Callable[[str], bool], topic_name: Callable[[str], str | None]
    ) -> None:
        super().__init__()
        self.words = words
        self.is_internal = is_internal
        self.topic_name = topic_name
        self.values = ValueWriter(words)
        self.is_distinctive = False
        self.marks = TreeMarks(words)
        self.styled = bool(self.marks.ident)
        self.replaced: list[Any] | None = None  # what stands for the values of fields that may be secrets, if anything
        self.replacement: i64 = 0  # of which those before this one have been used
        self._named: list[Step] = []  # fields with topic ids whose names are kept

    def begin_values(self, frame: bytes, errors: list[tuple[str, int]] | None, replaced: list[Any] | None) -> None:
        """Gets ready for the body in a frame."""
        self.begin(frame, errors)
        self.replaced = replaced
        self.replacement = 0

    def all_replaced(self) -> bool:
        """Whether all that stands for other values has been written."""
        return self.replaced is None or self.replacement == len(self.replaced)

    def forget_names(self) -> None:
        """Forgets the texts of topic ids, because topics have become known by name."""
        for step in self._named:
            step.uuids.clear()
        self._named.clear()

    def value(self, step: Step, kind: i64, pos: i64, out: BytesWriter) -> i64:
        """Writes a single value of ``kind`` (a field, or an element of an array); returns the position behind it, or
        -1.
        """
        if kind > INT64 and kind != ERROR_CODE:
            if kind == UUID or kind == TOPIC_ID:  # noqa: SIM109 - two comparisons when compiled
                return self._uuid(step, kind, pos, out)
            return self._sized(step, kind, pos, out)
        number: i64 = self.number(kind, pos)
        pos = self.pos
        if step.is_error and number:
            return -1
        self.is_distinctive = True
        if step.meant:
            if number != step.last or not step.last_text:
                step.last_text = self._labelled(step, number, kind == BOOLEAN)
                step.last = number
            out.write(step.last_text)
        elif not self.styled:
            write_number(out, number)
        elif step.identifies:
            out.write(self.marks.ident)
            write_number(out, number)
            out.write(self.marks.ident_off)
        elif number:
            out.write(self.marks.plain)
            write_number(out, number)
            out.write(self.marks.plain_off)
        else:
            out.write(self.marks.dim)
            out.append(48)
            out.write(self.marks.dim_off)
        return pos

    def _labelled(self, step: Step, number: int, is_boolean: bool) -> bytes:
        """A number with its meaning."""
        text = step.labelled.get(number)
        if text is None:
            if len(step.labelled) >= KEPT:
                step.labelled.clear()
            # In two branches: compiled, an expression of either would be an integer.
            text = self._worded(step, number != 0) if is_boolean else self._worded(step, number)
            step.labelled[number] = text
        return text

    def _worded(self, step: Step, value: object) -> bytes:
        field = step.field
        assert field is not None
        meaning = meaning_of(field, value, self.topic_name)
        if step.array:
            return self.words.element(field.type, value, meaning)
        return self.words.value(field.name, field.type, value, meaning, step.identifies and value != ZERO_UUID)

    def failure(self, step: Step, pos: i64, width: int) -> bytes:
        """Notes the error code at a position; gives its name, as wide as others are, with its value and meaning."""
        code: int = int16(self.frame, pos)
        if self.errors is not None:
            self.errors.append((step.name, code))
        text = step.labelled.get(code) if not width else None
        if text is None:
            assert step.field is not None
            text = self.words.error(step.name, width, code, meaning_of(step.field, code))
            if not width:
                if len(step.labelled) >= KEPT:
                    step.labelled.clear()
                step.labelled[code] = text
        return text

    def unknown(self, tag: int, pos: i64, stop: i64) -> bytes:
        """A tagged field that no definition has, with the number ``tag`` and bytes that go up to ``stop``."""
        out = BytesWriter()
        out.write(self.words.label(str(tag), 0))
        out.write(self.marks.plain)
        self.values.write(out, self.frame, pos, stop, False, True)
        out.write(self.marks.plain_off)
        return out.getvalue()

    def _uuid(self, step: Step, kind: i64, pos: i64, out: BytesWriter) -> i64:
        stop: i64 = pos + 16
        if stop > len(self.frame):
            return -1
        raw = self.frame[pos:stop]
        self.is_distinctive = raw.count(0) < 16
        text = step.uuids.get(raw)
        if text is None:
            value = uuid_text(raw)
            if kind == TOPIC_ID and self.is_internal(value):
                return -1
            text = self._worded(step, value)
            if self.is_distinctive and self.topic_name(value) is not None and len(step.uuids) < KEPT:
                if not step.uuids:
                    self._named.append(step)
                step.uuids[raw] = text
        out.write(text)
        return stop

    def _sized(self, step: Step, kind: i64, pos: i64, out: BytesWriter) -> i64:
        """A string or bytes, behind its length."""
        frame = self.frame
        length: i64 = self.length_of(step, pos)
        pos = self.pos
        self.is_distinctive = kind == BYTES or length > 0
        if length < 0:
            self.is_distinctive = False
            out.write(self.marks.null)
            return pos if length == -1 else -1
        stop: i64 = pos + length
        if kind == TOPIC and self.starts_like_internal(pos, length):
            return -1
        if step.hideable and length and self.replaced is not None:
            stands = self.replaced[self.replacement]
            self.replacement += 1
            if stands is not None:
                assert step.field is not None
                out.write(self.words.value(step.name, step.field.type, stands, "", False))
                return stop
        if step.explains and not step.hideable and length and self.quotes_secret(pos, stop):
            return -1
        if step.meant:
            out.write(self._worded(step, frame[pos:stop].decode()))
            return stop
        if length == 22 and kind != BYTES and frame[pos:stop] == _ZERO_BYTES:
            self.is_distinctive = False
        if step.identifies and self.is_distinctive:
            out.write(self.marks.ident)
            self.values.write(out, frame, pos, stop, kind != BYTES, True)
            out.write(self.marks.ident_off)
        else:
            out.write(self.marks.plain)
            self.values.write(out, frame, pos, stop, kind != BYTES, True)
            out.write(self.marks.plain_off)
        return stop
