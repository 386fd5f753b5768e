"""Dissections with long arrays folded: all elements are read and checked, but only those that are shown have nodes.

A message may have as many elements as it has bytes. All of them are read and checked, but there are nodes only for
those that the reader asked for, and for what is wrong. What is counted and said of them is what the dissector says.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from struct import iter_unpack
from typing import TYPE_CHECKING, Any

from kwiresniff.base.tree_sizes import ELEMENTS_SHOWN, RANGES_SHOWN, SCALARS_SHOWN, is_range
from kwiresniff.codec.body_walker import FAILED, GARBLED, LOADED, RECORDED, ElementSkipper
from kwiresniff.codec.dissector import (
    FOLDED,
    FOLDED_VALUE,
    MAX_COUNTED,
    MAX_PROBLEMS,
    Dissector,
    MessageBytes,
)
from kwiresniff.codec.field_facts import FieldFacts
from kwiresniff.codec.field_layout import regular
from kwiresniff.codec.node_types import ELEMENTS, STRUCT
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.plan import element_plan
from kwiresniff.codec.primitives import reader_of
from kwiresniff.codec.record_dissector import Folded
from kwiresniff.codec.record_limits import MAX_NODES
from kwiresniff.codec.records import decode_record_set, decode_sound
from kwiresniff.codec.value_reader import element_decoder
from kwiresniff.errors import DecodeError
from kwiresniff.model import Body, Dissection, Node, Problem, TopicNames
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from kwiresniff.codec.record_dissector import Folded

#: Elements with bytes to be opened that have nodes although they are not shown; no group has as many members.
MAX_OPENED = 1000
#: Decoders of elements that are kept.
_KEPT = 1024


def dissect_shown(
    message: MessageVersion,
    frame: bytes,
    offset: int,
    *,
    opened: bool = False,
    topic_name: TopicNames | None = None,
    missing: int = 0,
    details: dict[str, Any] | None = None,
) -> Dissection:
    """A dissection of what a tree shows and of what is wrong; ``FOLDED`` stands for further elements, except those with
    bytes that are ``opened``. Problems get these ``details``.
    """
    read = MessageBytes(message, frame, offset, True, topic_name, missing, details)
    return _Shown(read, opened).dissect(trailing=True)


def problems_of(read: MessageBytes) -> list[Problem]:
    """Only the problems of a message, without its nodes."""
    return _Checked(read).dissect(trailing=True).problems


def front_of(read: MessageBytes) -> tuple[Body, list[Problem]]:
    """The readable part of a message that cannot be decoded, as the decoder gives it, and what is wrong with it."""
    found = _Valued(read).dissect(trailing=True)
    return plain(found.root), found.problems


class _Folding(Dissector):
    """Folds what an ``ElementSkipper`` has nothing to say of."""

    def __init__(self, read: MessageBytes, opened: bool = False) -> None:
        super().__init__(read)
        self.opened = opened
        self.opening = MAX_OPENED
        self.skipper = ElementSkipper(read.frame)
        self.looked_at = GARBLED | (RECORDED if read.records else 0) | (LOADED if opened else 0)

    def elements(self, node: Node, entry: FieldFacts, count: int, path: str) -> bool:
        shown = self.shown(entry.field, count)
        if count <= shown:
            return super().elements(node, entry, count, path)
        steps = element_plan(entry.field, self.flexible)
        skipper = self.skipper
        fold: Callable[[int, int], None] | None = None
        for index in range(shown):
            if self.field(node, entry, f"[{index}]", path) is None:
                return False
        index, wrong = shown, 0
        while index < count:
            kept = self.nodes < MAX_NODES
            room = (MAX_NODES if kept else MAX_COUNTED) - self.nodes
            stops = self.worth_a_stop(wrong)
            number = skipper.run(steps, self.position, count - index, room, stops)
            if not number:
                if not stops & GARBLED:  # its texts have not been looked at
                    skipper.skip(steps, self.position)
                number = skipper.end >= 0 and self.may_fold(wrong)
            if number:
                if kept:
                    if fold is None:
                        fold = self.folder(node, entry.field)
                    try:
                        fold(number, skipper.end)
                    except DecodeError as error:  # texts that are none, behind so many that nobody looks for more
                        return self.fail(error)
                self.nodes += skipper.nodes
                self.position = skipper.end
                index += number
                continue
            wrong += skipper.failed or skipper.garbled
            if skipper.loaded and self.opened:
                self.opening -= 1
                if not self.opening:
                    self.opened = False
                    self.looked_at &= ~LOADED
            if self.field(node, entry, f"[{index}]", path) is None:
                return False
            index += 1
        return True

    def worth_a_stop(self, wrong: int) -> int:
        """The facts that stop the skipper at an element, after so many ``wrong`` ones."""
        found = self.looked_at
        if self.may_hide(wrong):
            found &= ~FAILED
            if len(self.problems) >= MAX_PROBLEMS:
                found &= ~GARBLED
        return found

    def may_fold(self, wrong: int) -> bool:
        """Whether the elements skipped need no nodes, after so many ``wrong`` ones."""
        found = self.skipper
        nodes = self.nodes + found.nodes
        if nodes > MAX_NODES:
            if self.nodes < MAX_NODES or nodes > MAX_COUNTED:
                return False  # it holds the field at which somebody stops
        else:
            if (found.recorded and self.records) or (found.loaded and self.opened):
                return False
            if (found.failed or found.garbled) and not self.may_hide(wrong):
                return False
        return not found.garbled or len(self.problems) >= MAX_PROBLEMS

    def shown(self, entry: WireField, count: int) -> int:
        """Elements that have nodes in any case, of an array of ``count``."""
        return 0

    def may_hide(self, wrong: int) -> bool:
        """Whether an element with a fault may be folded, when so many others had one."""
        return True

    def folder(self, node: Node, entry: WireField) -> Callable[[int, int], None]:
        """Returns a function that replaces a number of elements of the array ``node``, up to an offset."""
        return lambda number, end: None


class _Checked(_Folding):
    """Keeps nothing."""

    def __init__(self, read: MessageBytes) -> None:
        super().__init__(read)
        self.says_meanings = False

    def folded_records(self) -> Folded:
        return Folded(FOLDED, 0)


class _Shown(_Folding):
    """Keeps what a tree shows: see ``render.values.selection``."""

    def __init__(self, read: MessageBytes, opened: bool) -> None:
        super().__init__(read, opened)
        self.looked_at |= FAILED
        self.folds = False
        self.folded: list[Folded] = []

    def is_whole(self) -> bool:
        for folded in self.folded:
            if folded.nodes:
                return False
        return not self.folds and super().is_whole()

    def shown(self, entry: WireField, count: int) -> int:
        if entry.type != STRUCT:
            return SCALARS_SHOWN
        on_a_row = count <= RANGES_SHOWN and is_range([field.name for field in regular(entry.fields)])
        return count if on_a_row else ELEMENTS_SHOWN

    def may_hide(self, wrong: int) -> bool:
        return wrong > ELEMENTS_SHOWN  # as many are shown, and one more tells that there are others

    def folded_records(self) -> Folded:
        self.folded.append(Folded(FOLDED))
        return self.folded[-1]

    def folder(self, node: Node, entry: WireField) -> Callable[[int, int], None]:
        stub = FOLDED if entry.type == STRUCT else FOLDED_VALUE
        self.folds = True

        def fold(number: int, end: int) -> None:
            node.children += [stub] * number

        return fold


class _Valued(_Folding):
    """Keeps values."""

    def __init__(self, read: MessageBytes) -> None:
        super().__init__(read)
        self.says_meanings = False

    def record_set(self, node: Node, start: int, path: str, *, unaligned: bool) -> None:
        if self.records and self.nodes <= MAX_NODES:
            found = decode_sound(self.frame, start, self.position, self.budget, unaligned=unaligned)
            if found is not None:
                node.value, nodes = found
                self.nodes += nodes
                return
        super().record_set(node, start, path, unaligned=unaligned)

    def elements(self, node: Node, entry: FieldFacts, count: int, path: str) -> bool:
        fixed = FIXED.get(entry.field.type)
        if fixed is None or self.nodes + count > MAX_NODES or self.position + count * fixed.size > self.end:
            return super().elements(node, entry, count, path)
        raw = self.frame[self.position : self.position + count * fixed.size]
        self.position += len(raw)
        values = [value for (value,) in iter_unpack(f">{fixed.code}", raw)]
        read = reader_of(entry.field.type)
        node.value = values if read is None else [read(value) for value in values]
        self.nodes += count
        return True

    def folder(self, node: Node, entry: WireField) -> Callable[[int, int], None]:
        read = _element_reader(_By(entry, self.flexible, self.records))
        children, frame = node.children, self.frame

        def fold(number: int, end: int) -> None:
            values = read(frame, self.position, number)
            children.append(Node("", ELEMENTS, self.position, end - self.position, values))

        return fold


class _By:
    """An element by the identity of its fields, which are kept with it."""

    __slots__ = ("entry", "flexible", "records")

    def __init__(self, entry: WireField, flexible: bool, records: bool) -> None:
        self.entry = entry
        self.flexible = flexible
        self.records = records

    def __hash__(self) -> int:
        return hash(self._key())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _By) and self._key() == other._key()

    def _key(self) -> tuple[int, str, bool, bool]:
        return id(self.entry.fields), self.entry.type, self.flexible, self.records


@lru_cache(_KEPT)
def _element_reader(element: _By) -> Callable[[bytes, int, int], list[Any]]:
    return element_decoder(element.entry, element.flexible, "full" if element.records else "skip", decode_record_set)
