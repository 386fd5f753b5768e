"""Bodies as rows of a tree straight from bytes, by a plan: ``-o tree`` takes 19 times as long from nodes.

They are what ``kwiresniff.render.tree_rows`` makes of the dissector's nodes. Rows are those without ``-v``. Every
reader here is given a position that is not beyond the end of the frame and returns the one behind what it has read, or
-1 to say that this body is not for it.

One class, longer than others: its methods call each other in a circle (a structure has fields, a field is an array, an
array has structures) and share the row that is being written. Single values and record sets have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

from librt.strings import BytesWriter

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.base.tree_sizes import ELEMENTS_SHOWN, NAME_COLUMN, RANGES_SHOWN, SCALARS_SHOWN
from kwiresniff.codec.record_limits import MAX_NODES
from kwiresniff.codec.text.body_reader import int16
from kwiresniff.codec.text.plan import (
    BYTES,
    CLOSED,
    ERROR_CODE,
    INT16,
    JUMP,
    RECORDS,
    STRING,
    STRUCTURE,
    TAG_SECTION,
    TOPIC,
    Step,
)
from kwiresniff.codec.text.tree_batches import RecordSetRows
from kwiresniff.codec.text.tree_labels import RangeTexts, TreePlans
from kwiresniff.codec.text.tree_values import ValueRows
from kwiresniff.codec.text.tree_wording import Words
from kwiresniff.errors import DecodeError

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Arrays of version ranges whose row is kept, and bytes of one: the brokers of a cluster have all the same.
KEPT_RANGES: Final = 64
MAX_KEPT_RANGES: Final = 4096
#: Bytes of what consumers say to each other that is looked into here: as many nodes are shown of a dozen of them.
MAX_CONTENT: Final = 8000


@final
class RowWriter(ValueRows):
    """Writes the rows of one body after another by the ``plans`` of their messages.

    ``errors`` gets the error codes, each with its path. ``protocol_type`` is what the last member of
    a group has said that its group is; whoever begins with another exchange forgets it.
    """

    def __init__(
        self, words: Words, is_internal: Callable[[str], bool], topic_name: Callable[[str], str | None]
    ) -> None:
        super().__init__(words, is_internal, topic_name)
        self.depths = BytesWriter()
        self.record_sets = RecordSetRows(words, self.values, self.depths)
        self.rows: list[bytes] = []
        self.outs: list[BytesWriter] = [BytesWriter()]  # by level: the row of a structure as far as it has been read
        self.named: i64 = 0  # where on the row of the innermost one what identifies it ends
        self.failed: i64 = 0  # and how many bytes behind it say what went wrong
        self.column: i64 = 0  # as wide the names of the message's fields are made, and as they should be
        self.widest: i64 = 0
        self.nodes: i64 = 0
        self.range_texts = RangeTexts(words)
        self.inline = False  # whether the container that was read last stands on the row of its structure
        self.plans = TreePlans(words)
        self.protocol_type = b""

    def text(
        self,
        steps: list[Step],
        frame: bytes,
        offset: i64,
        errors: list[tuple[str, int]] | None = None,
        replaced: list[Any] | None = None,
    ) -> list[bytes] | None:
        """The depths of the rows, one byte each, and then the rows; None for a body with anything unusual. An error
        code is nothing unusual where ``errors`` gets its path and itself. ``replaced`` has what stands in the place of
        each text and each bytes of fields that may be secrets, neither null nor empty, None for one that is none.
        """
        # Most messages have the same fields as the one before.
        self.column = steps[0].column if steps else 0
        end: i64 = self._read(steps, frame, offset, errors, replaced)
        if end == len(frame) and self.widest != self.column:
            self.column = steps[0].column = self.widest
            end = self._read(steps, frame, offset, errors, replaced)
        if end != len(frame):
            for out in self.outs:
                out.truncate(0)
            self.record_sets.out.truncate(0)
            return None
        self.rows[0] = self.depths.getvalue()
        return self.rows

    def _read(
        self,
        steps: list[Step],
        frame: bytes,
        offset: i64,
        errors: list[tuple[str, int]] | None,
        replaced: list[Any] | None,
    ) -> i64:
        """Make the rows; returns the position behind the body, or -1."""
        self.begin_values(frame, errors, replaced)
        self.rows = [b""]
        self.record_sets.rows = self.rows
        self.record_sets.nodes = 0
        self.depths.truncate(0)
        self.nodes = 0
        self.record_sets.budget = None
        self.widest = 0
        try:
            end: i64 = self._message(steps, offset)
        except (IndexError, UnicodeDecodeError, DecodeError):
            return -1
        if not self.all_replaced():
            return -1
        return end if self.nodes + self.record_sets.nodes <= MAX_NODES else -1

    def _row(self, depth: i64, text: bytes) -> None:
        level: int = depth
        self.depths.append(level)
        self.rows.append(text)

    def _message(self, steps: list[Step], pos: i64) -> i64:
        """The fields of a message, one row each, their values in a column."""
        for step in steps:
            if step.field is not None:
                self.nodes += 1
                pos = self._message_field(step, pos)
            elif step.kind == TAG_SECTION:
                pos = self._tag_section(step, pos, 0)
            if pos < 0:
                return -1
        return pos

    def _message_field(self, step: Step, pos: i64) -> i64:
        """A field of a message, its name before its value."""
        out = self.outs[0]
        kind: i64 = step.kind
        self.inline = True
        if step.padded_at != self.column:
            self._pad(step)
        out.write(step.padded)
        start: i64 = pos
        if step.array or kind in (STRUCTURE, RECORDS) or kind > JUMP:
            pos = self._container(step, kind, pos, 0)
        elif kind == ERROR_CODE and self.errors is not None and int16(self.frame, pos):
            out.truncate(0)
            out.write(self.failure(step, pos, self.column))
            pos += 2
        else:
            pos = self.value(step, kind, pos, out)
        if self.inline and pos > 0:
            length: i64 = step.width
            if self.widest < length <= NAME_COLUMN:
                self.widest = length
            self._row(0, out.getvalue())
        out.truncate(0)
        if step.tells_protocol and pos > 0:
            length = self.length_of(step, start)
            if length > 0:
                self.protocol_type = self.frame[self.pos : pos]
        return pos

    def _opened(self, step: Step, kind: i64, pos: i64, level: int) -> i64:
        """Bytes with what a consumer says to others, rows of their own; or none."""
        length: i64 = self.length_of(step, pos)
        if length <= 0:
            self.inline = True
            return self.value(step, BYTES, pos, self.outs[level])
        if kind == CLOSED or length > MAX_CONTENT or (self.protocol_type and self.protocol_type != b"consumer"):
            return -1
        pos = self.pos
        version = int16(self.frame, pos)
        steps = self.plans.content_steps(step.content, version)
        if (
            steps is None
            or self._structure(steps, self.words.opened(step.name, step.content, version), pos + 2, level + 1)
            != pos + length
        ):
            return -1
        self.inline = False
        return pos + length

    def _tag_section(self, section: Step, pos: i64, level: int) -> i64:
        """The tagged fields of a message or of the structure of ``level``, in order: known ones like any other, then
        those that no definition has, on a row of their own.
        """
        if not self.frame[pos]:
            return pos + 1
        count: i64 = self.uvarint(pos)
        known = section.steps
        unknown: list[bytes] = []
        index = 0
        last: i64 = -1
        while count > 0:
            count -= 1
            tag: i64 = self.uvarint(self.pos)
            size: i64 = self.uvarint(self.pos) if tag > last else -1
            stop: i64 = self.pos + size
            self.nodes += 1
            if size < 0 or stop > len(self.frame) or self.nodes > MAX_NODES:
                return -1
            last = tag
            while index < len(known) and known[index].tag < tag:
                index += 1
            if index == len(known) or known[index].tag != tag:
                unknown.append(self.unknown(tag, self.pos, stop))
                self.pos = stop
                continue
            field = known[index]
            pos = self._message_field(field, self.pos) if level == 0 else self._field(field, self.pos, level)
            if pos != stop:
                return -1
            self.pos = pos
        if unknown:
            if self.replaced is not None:
                return -1  # what nobody knows may be a secret
            self._row(level, self.words.key(UNKNOWN_TAGS) + self.marks.gap + self.marks.gap.join(unknown))
        return self.pos if count == 0 else -1

    def _pad(self, step: Step) -> None:
        """Make the name of a field as wide as the column is."""
        column = self.column
        text = step.padded_to.get(column)
        if text is None:
            text = step.padded_to[column] = self.words.label(step.name, column)
        step.padded = text
        step.padded_at = column

    def _container(self, step: Step, kind: i64, pos: i64, level: int) -> i64:
        """An array, a structure or a record set: rows of their own, or text in the row of ``level``."""
        out = self.outs[level]
        if step.array:
            return self._array(step, kind, pos, level)
        if kind > JUMP:
            return self._opened(step, kind, pos, level)
        if kind == RECORDS:
            start: i64 = pos
            length: i64 = self.length_of(step, pos)
            pos = self.pos
            if length <= 0:
                self.inline = True
                out.write(self.marks.empty if length == 0 else self.marks.null)
                return pos if length >= -1 else -1
            self.inline = False
            stop: i64 = pos + length
            assert step.field is not None
            name = step.field.name
            return stop if self.record_sets.write(self.frame, pos, stop, stop - start, name, level) else -1
        if step.nullable:
            mark: i64 = self.frame[pos]
            pos += 1
            if mark == 255:
                self.inline = True
                out.write(self.marks.null)
                return pos
            if mark != 1:
                return -1
        first: i64 = self.error_count()
        pos = self._structure(step.steps, step.labels[0], pos, level + 1)
        if self.error_count() > first:
            self.place_errors(first, step.name)
        self.inline = False
        return pos

    def _array(self, step: Step, kind: i64, pos: i64, level: int) -> i64:
        out = self.outs[level]
        count: i64 = self.count_of(step, pos)
        pos = self.pos
        if count <= 0:
            self.inline = True
            out.write(self.marks.empty if count == 0 else self.marks.null)
            return pos if count >= -1 else -1
        self.nodes += count
        if self.nodes > MAX_NODES:
            return -1
        if kind != STRUCTURE:
            self.inline = True
            return self._scalars(step, kind, pos, count, out)
        if step.is_range and count <= RANGES_SHOWN:
            pos = self._ranges(step, pos, count, level)
            self.inline = False
            return pos
        self.inline = False
        errors: i64 = self.error_count()
        index: i64 = 0
        while index < count and index < ELEMENTS_SHOWN:
            pos = self._structure(step.steps, step.labels[index], pos, level + 1)
            if pos < 0:
                return -1
            if self.errors is not None and len(self.errors) > errors:
                errors = self.place_errors(errors, f"{step.name}[{index}]")
            index += 1
        if index < count:
            pos = self._more_elements(step, pos, index, count, level)
        self.inline = False
        return pos

    def _more_elements(self, step: Step, pos: i64, index: i64, count: i64, level: int) -> i64:
        """The elements from ``index`` on, of which those have rows that say what went wrong, up to as many again."""
        rows = len(self.rows)
        depths = len(self.depths)
        errors: i64 = self.error_count()
        wrong: i64 = 0
        while index < count:
            pos = self._structure(step.steps, b"", pos, level + 1)
            if pos < 0:
                return -1
            is_shown = False
            if self.error_count() > errors:
                place = f"{step.name}[{index}]"
                errors = self.place_errors(errors, place)
                wrong += 1
                is_shown = wrong <= ELEMENTS_SHOWN
                if is_shown:
                    self.rows[rows] = self.words.key(place) + self.rows[rows]
                    rows = len(self.rows)
                    depths = len(self.depths)
            if not is_shown:
                del self.rows[rows:]
                self.depths.truncate(depths)
            index += 1
        hidden: i64 = count - ELEMENTS_SHOWN - (wrong if wrong < ELEMENTS_SHOWN else ELEMENTS_SHOWN)
        if hidden:
            self._row(level, self.words.hidden_elements(step.name, hidden, count, wrong <= ELEMENTS_SHOWN))
        return pos

    def _scalars(self, step: Step, kind: i64, pos: i64, count: i64, out: BytesWriter) -> i64:
        """Values one behind the other."""
        if step.is_error:
            return -1
        size = 0
        index: i64 = 0
        while index < count:
            if index == SCALARS_SHOWN:
                size = len(out)
            if index:
                out.write(self.marks.comma)
            pos = self.value(step, kind, pos, out)
            if pos < 0:
                return -1
            index += 1
        if count > SCALARS_SHOWN:
            out.truncate(size)
            out.write(self.words.hidden_parts(count - SCALARS_SHOWN))
        return pos

    def _ranges(self, step: Step, pos: i64, count: i64, level: int) -> i64:
        """Version ranges, all on one row."""
        frame = self.frame
        out = self.outs[level + 1] if level + 1 < len(self.outs) else self._more_outs()
        assert step.field is not None
        size: i64 = count * step.least
        key = frame[pos : pos + size]
        known = step.ranges.get(key)
        if known is not None:
            self.nodes += count * len(step.field.fields)
            self._row(level, known)
            return pos + size
        out.write(self.words.ranges(step.field.name, count))
        start: i64 = pos
        while count:
            count -= 1
            name = ""
            low = 0
            high = 0
            for child in step.steps:
                if child.field is None:
                    if child.kind == TAG_SECTION:
                        if frame[pos]:
                            return -1
                        pos += 1
                    continue
                self.nodes += 1
                if child.kind == INT16:
                    number = int16(frame, pos)
                    pos += 2
                    if child.field.name.startswith("min"):
                        low = number
                    elif child.field.name.startswith("max"):
                        high = number
                    else:
                        name = self.range_texts.name(child.field, number)
                else:
                    if (child.kind != STRING and child.kind != TOPIC) or child.array:
                        return -1
                    length: i64 = self.length_of(child, pos)
                    if length < 0:
                        return -1
                    pos = self.pos + length
                    name = frame[self.pos : pos].decode()
            out.write(self.marks.gap)
            out.write(self.range_texts.text(name, low, high))
        text = out.getvalue()
        self._row(level, text)
        out.truncate(0)
        if pos == start + size and size <= MAX_KEPT_RANGES:
            if len(step.ranges) >= KEPT_RANGES:
                step.ranges.clear()
            step.ranges[key] = text
        return pos

    def _more_outs(self) -> BytesWriter:
        out = BytesWriter()
        self.outs.append(out)
        return out

    def _structure(self, steps: list[Step], label: bytes, pos: i64, level: int) -> i64:
        """A structure: its plain fields on its own row, first what identifies it, the others below."""
        out = self.outs[level] if level < len(self.outs) else self._more_outs()
        place = len(self.rows)
        self._row(level - 1, b"")
        out.write(label)
        named: i64 = self.named
        failed: i64 = self.failed
        self.named = len(out)
        self.failed = 0
        for child in steps:
            if child.field is not None:
                self.nodes += 1
                pos = self._field(child, pos, level)
            elif child.kind == TAG_SECTION:
                pos = self._tag_section(child, pos, level)
            if pos < 0:
                return -1
        self.rows[place] = out.getvalue()
        out.truncate(0)
        self.named = named
        self.failed = failed
        return pos

    def _field(self, step: Step, pos: i64, level: int) -> i64:
        """A field of the structure of ``level``."""
        out = self.outs[level]
        start: i64 = len(out)
        kind: i64 = step.kind
        if kind == ERROR_CODE and self.errors is not None and not step.array and int16(self.frame, pos):
            out.write(self.marks.gap)
            out.write(self.failure(step, pos, 0))
            self.failed = moved(out, start, self.named + self.failed) - self.named
            return pos + 2
        out.write(step.label)
        if step.array or kind in (STRUCTURE, RECORDS) or kind > JUMP:
            pos = self._container(step, kind, pos, level)
            if not self.inline:
                out.truncate(start)
            return pos
        pos = self.value(step, kind, pos, out)
        if step.identifies and self.is_distinctive and pos > 0:
            self.named = moved(out, start, self.named)
        return pos


def moved(out: BytesWriter, start: i64, place: i64) -> i64:
    """Moves what has been written from ``start`` on to an earlier place; returns where it ends there."""
    if start == place:
        return len(out)
    text = out.getvalue()
    out.truncate(place)
    out.write(text[start:])
    out.write(text[place:start])
    return place + len(text) - start
