"""Names and numbers that a body speaks of, straight from its bytes: topics, partitions, groups, transactional ids.

For bodies that another writer of this room has read to their end and found nothing unusual in, so nothing is checked
again. Which fields say what is marked in the ``role`` of the steps. Reads no further than the last of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, final

from kwiresniff.base.json_text import int32
from kwiresniff.codec.primitives import uuid_text
from kwiresniff.codec.text.body_reader import BodyReader
from kwiresniff.codec.text.plan import (
    CONSTANT,
    INT32,
    SIZES,
    STRUCTURE,
    TAG_SECTION,
    Step,
)

if TYPE_CHECKING:
    from mypy_extensions import i64

#: What a field says: a topic by name or id, a partition (or a list of them), a group, a transactional id, the node
#: that asks. Of lists the empty name is one, too.
TOPIC: Final = 1
PARTITION: Final = 2
GROUP: Final = 3
TRANSACTION: Final = 4
REPLICA: Final = 5
TOPICS: Final = 6
GROUPS: Final = 7
TRANSACTIONS: Final = 8

#: Names kept as texts, and their bytes: one comes again and again.
MAX_KEPT: Final = 4096
MAX_KEPT_NAME: Final = 256
NO_ID: Final = bytes(16)


def readied(steps: list[Step]) -> list[Step]:
    """Marked steps as they are read: without those behind the last mark, and ``least`` the size of what has a fixed
    one, of a structure too, else 0."""
    last = 0
    for at, step in enumerate(steps):
        if step.steps and step.kind == STRUCTURE:
            whole = all(not one.role and one.kind in SIZES and not one.array for one in step.steps if one.field)
            sections = any(one.kind == TAG_SECTION for one in step.steps)
            size = sum(SIZES.get(one.kind, 0) for one in step.steps if one.field)
            step.least = size + sections if whole and not step.nullable else 0
            if _is_marked(step):
                step.least = 0
            for inner in step.steps:
                readied([inner])
        else:
            step.least = SIZES.get(step.kind, 0)
        if _is_marked(step):
            last = at + 1
    return steps[:last]


def _is_marked(step: Step) -> bool:
    return step.role != 0 or any(_is_marked(one) for one in step.steps)


@final
class EntityReader(BodyReader):
    """Reads one body after another. What was found since ``begin`` is in lists, in order, a name perhaps twice.

    ``topic_name`` tells the name of a topic id.
    """

    def __init__(self, topic_name: Callable[[str], str | None]) -> None:
        super().__init__()
        self._topic_name = topic_name
        self._names: dict[bytes, str] = {}
        self.begin()

    def begin(self) -> None:
        """Forget what was found."""
        self.topics: list[str] = []
        self.partitions: list[int] = []
        self.groups: list[str] = []
        self.transactional_ids: list[str] = []
        self.replica_id: i64 = -1

    def read(self, steps: list[Step], frame: bytes, offset: i64) -> None:
        """What the body speaks of, of the rest of a frame from ``offset`` on."""
        self.frame = frame
        self._fields(steps, offset)

    def _fields(self, steps: list[Step], pos: i64) -> i64:
        for step in steps:
            kind: i64 = step.kind
            if step.array:
                pos = self._array(step, kind, pos)
            elif kind == CONSTANT:
                continue
            elif kind == TAG_SECTION:
                pos += 1
            elif step.least:
                if step.role:
                    self._fixed(step, kind, pos)
                pos += step.least
            else:
                pos = self._value(step, kind, pos)
        return pos

    def _fixed(self, step: Step, kind: i64, pos: i64) -> None:
        if kind == INT32:
            if step.role == PARTITION:
                self.partitions.append(int32(self.frame, pos))
            else:
                self.replica_id = int32(self.frame, pos)
            return
        raw = self.frame[pos : pos + 16]
        if raw != NO_ID:
            text = uuid_text(raw)
            self.topics.append(self._topic_name(text) or text)

    def _value(self, step: Step, kind: i64, pos: i64) -> i64:
        """What has no fixed size."""
        if kind == STRUCTURE:
            if step.nullable:
                pos += 1
                if self.frame[pos - 1] != 1:
                    return pos
            return self._fields(step.steps, pos)
        length: i64 = self.length_of(step, pos)
        pos = self.pos
        if length < 0:
            return pos
        stop: i64 = pos + length
        if step.role:
            self._name(step.role, pos, stop)
        return stop

    def _name(self, role: i64, pos: i64, stop: i64) -> None:
        if pos == stop and role <= TRANSACTION:
            return
        raw = self.frame[pos:stop]
        name = self._names.get(raw)
        if name is None:
            name = raw.decode()
            if stop - pos <= MAX_KEPT_NAME:
                if len(self._names) >= MAX_KEPT:
                    self._names.clear()
                self._names[raw] = name
        if role in (TOPIC, TOPICS):
            self.topics.append(name)
        elif role in (GROUP, GROUPS):
            self.groups.append(name)
        else:
            self.transactional_ids.append(name)

    def _array(self, step: Step, kind: i64, pos: i64) -> i64:
        count: i64 = self.count_of(step, pos)
        pos = self.pos
        if step.least and not step.role:
            return pos + count * step.least if count > 0 else pos
        while count > 0:
            count -= 1
            if kind == STRUCTURE:
                pos = self._fields(step.steps, pos)
            elif step.least:
                self._fixed(step, kind, pos)
                pos += step.least
            else:
                pos = self._value(step, kind, pos)
        return pos
