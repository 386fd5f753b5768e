"""The dissector: the only reader that knows of every field where it lies, what it means and what is wrong with it.

Slower than the decoder, it reads a message field by field after its definition and gives a ``Node`` for each
with offset, length, wire type, value and meaning. Bad bytes never make it raise: it keeps what it has read, marks the
field it failed at and says why. ``node_values.plain`` turns its nodes back into what the fast decoder returns.

A known tagged field that is not on the wire is a node of length 0 that holds the default.

It is the only reader that knows where a value lies, and the one that the others are held to. Without it there would be
no offsets in a tree, and nobody to say what is wrong with a message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.base.utf8 import first_fault
from kwiresniff.codec import decode_errors
from kwiresniff.codec.field_facts import FieldFacts, structure_facts
from kwiresniff.codec.field_layout import UNALIGNED, check_nesting, default_value, null_mark, single
from kwiresniff.codec.node_types import ARRAY, STRUCT, TAGGED_FIELDS
from kwiresniff.codec.primitives import read_uvarint, too_many_tags
from kwiresniff.codec.record_limits import MAX_NODES, RecordBudget
from kwiresniff.codec.records import dissect_record_set
from kwiresniff.errors import DecodeError
from kwiresniff.model import Dissection, Node, Problem, TopicNames
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.value_labels import meaning_of

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.codec.record_dissector import Folded

#: Nodes counted until the dissection stops: a few seconds' work.
MAX_COUNTED = 2_000_000
#: Problems kept for one message that go on: more strings of bad UTF-8 than this add nothing.
MAX_PROBLEMS = 100

#: Definitions that are remembered to nest no deeper than they may.
_KEPT = 4096

#: What stands in a folded array for an element that nobody looks at, a structure or a value (``codec.folding``).
FOLDED = Node("", STRUCT, -1, 0)
FOLDED_VALUE = Node("", "", -1, 0)


def dissect(
    message: MessageVersion,
    frame: bytes,
    offset: int,
    *,
    records: bool = True,
    topic_name: TopicNames | None = None,
    missing: int = 0,
) -> Dissection:
    """Annotates the body from ``offset`` to the end of ``frame``; problems are in the dissection. Without ``records``
    record sets are not opened. Of the frame ``missing`` bytes are absent: arrays that count on them are read as far as
    they are there.
    """
    return Dissector(MessageBytes(message, frame, offset, records, topic_name, missing)).dissect(trailing=True)


def dissect_front(message: MessageVersion, frame: bytes, offset: int = 0) -> Dissection:
    """Annotate a message that something else follows in the frame, such as a header."""
    return Dissector(MessageBytes(message, frame, offset)).dissect(trailing=False)


class MessageBytes:
    """The arguments of ``dissect``, and the ``details`` of all problems."""

    __slots__ = ("details", "frame", "message", "missing", "offset", "records", "topic_name")

    def __init__(
        self,
        message: MessageVersion,
        frame: bytes,
        offset: int,
        records: bool = False,
        topic_name: TopicNames | None = None,
        missing: int = 0,
        details: dict[str, Any] | None = None,
    ) -> None:
        self.details = details
        self.message = message
        self.frame = frame
        self.offset = offset
        self.records = records
        self.topic_name = topic_name
        self.missing = missing


_checked: dict[int, MessageVersion] = {}  # definitions that do not nest too deeply


def _check(message: MessageVersion) -> None:
    if id(message) not in _checked:
        check_nesting(message)
        if len(_checked) >= _KEPT:
            _checked.clear()
        _checked[id(message)] = message


#: Stands for the failure of a message that can be read.
_NONE: Final = decode_errors.truncated()


class Dissector:
    """Dissects a message in wire order, each part into a node. A method returns False with ``failure`` set where a part
    is not there: raising it through all levels would cost too much with many broken messages.
    """

    def __init__(self, read: MessageBytes) -> None:
        _check(read.message)
        self.message = read.message
        self.flexible = read.message.flexible
        self.frame = read.frame
        self.position: i64 = read.offset
        self.end: i64 = len(read.frame)
        self.missing: i64 = read.missing
        self.records = read.records
        self.topic_name = read.topic_name
        self.problems: list[Problem] = []
        self.nodes: i64 = 0
        self.budget = RecordBudget(len(read.frame))
        self.says_meanings = True
        self.failure = _NONE
        self.details = read.details

    def dissect(self, trailing: bool) -> Dissection:
        """The dissection; with ``trailing`` bytes behind the message are a problem."""
        root = Node(self.message.name, STRUCT, self.position, 0)
        if not self.structure(root, self.message.fields, ""):
            error = self.failure
            self.problems.append(Problem(error.code, str(error), error.offset, error.path, None, None, self.details))
        elif trailing and self.position < self.end:
            self.note_trailing_bytes()
        root.length = self.position - root.offset
        if self.nodes > MAX_NODES:
            text = f"the message has {self.nodes} fields, of which the first {MAX_NODES} are kept"
            self.problems.append(Problem("too_many_fields", text, root.offset, "", None, None, self.details))
        return Dissection(root, self.position, self.problems, is_whole=self.is_whole())

    def is_whole(self) -> bool:
        """Whether there is a node for everything that was read."""
        return self.nodes <= MAX_NODES

    def note_trailing_bytes(self) -> None:
        """Reports the bytes behind the message."""
        self.problems.append(decode_errors.trailing_bytes(self.position, self.end - self.position, self.details))

    def fail(self, failure: DecodeError) -> bool:
        """Keeps why the reading ends here, and returns False."""
        self.failure = failure
        return False

    def mark(self, node: Node, start: i64, path: str) -> None:
        """Marks the innermost node that could not be read with the failure."""
        failure = self.failure
        if failure.offset is None:
            failure.offset, failure.path = start, path
            node.problem = str(failure)

    def keep(self, parent: Node, node: Node) -> bool:
        """Adds a node to the tree, or only counts it when there are too many; False at the limit on entries."""
        self.nodes += 1
        if self.nodes <= MAX_NODES:
            parent.children.append(node)
        elif self.nodes > MAX_COUNTED:
            return self.fail(decode_errors.too_many_entries(MAX_COUNTED))
        return True

    def structure(self, node: Node, fields: tuple[WireField, ...], path: str) -> bool:
        """Reads the fields of a structure into children of ``node``."""
        asked = structure_facts(fields, self.flexible)
        front = f"{path}." if path else ""
        for facts in asked.regular:
            if self.field(node, facts, facts.name, front) is None:
                return False
        return not self.flexible or self.tag_section(node, asked.tagged, path)

    def field(self, parent: Node, facts: FieldFacts, name: str, front: str) -> Node | None:
        """Reads a field into a new node of ``parent``; marks the innermost node that cannot be read."""
        start = self.position
        node = Node(name, facts.node_type, start, 0)
        if not self.keep(parent, node):
            return None
        if facts.array:
            is_read = self.array(node, facts, front + name)
        elif facts.size:
            is_read = self.fixed(node, facts, front)
        elif facts.node_type == STRUCT:
            is_read = self.structured(node, facts, front + name)
        else:
            is_read = self.sized(node, facts, front)
        if not is_read:
            self.mark(node, start, front + name)
        node.length = self.position - start
        return node if is_read else None

    def has(self, size: i64, front: str, name: str = "") -> bool:
        """Whether there are ``size`` more bytes, of the field with this path."""
        beyond = self.position + size - self.end
        return beyond <= 0 or self.fail(decode_errors.truncated(front + name, beyond))

    def uvarint(self) -> i64:
        """The UNSIGNED_VARINT at the current position; -1 where there is none."""
        try:
            number, self.position = read_uvarint(self.frame, self.position)
        except DecodeError as error:
            self.failure = error.with_traceback(None)  # which would hold the message, by way of this object
            return -1
        return number

    def fixed(self, node: Node, facts: FieldFacts, front: str) -> bool:
        """Reads a value of fixed size."""
        if not self.has(facts.size, front, node.name):
            return False
        assert facts.unpack is not None
        (node.value,) = facts.unpack(self.frame, self.position)
        self.position += facts.size
        if facts.read is not None:
            node.value = facts.read(node.value)
        if facts.means and self.says_meanings:
            node.meaning = meaning_of(facts.field, node.value, self.topic_name)
        return True

    def length(self, facts: FieldFacts, front: str, name: str) -> i64:
        """A length in bytes, or the count of an array; -1 for null, -2 for an impossible one."""
        length: i64
        if facts.prefix is None:
            length = self.uvarint()
            if length < 0:
                return -2
            length -= 1
        else:
            if not self.has(facts.prefix_size, front, name):
                return -2
            (length,) = facts.prefix(self.frame, self.position)
            self.position += facts.prefix_size
        if length >= 0 or (length == -1 and facts.null_length):
            return length
        path = front + name
        if facts.array and facts.prefix is not None:
            self.fail(decode_errors.bad_count(length, self.end - self.position, path))
        else:
            self.fail(decode_errors.null_value(path) if length == -1 else decode_errors.bad_length(length, path))
        return -2

    def sized(self, node: Node, facts: FieldFacts, front: str) -> bool:
        """Reads a string, byte array or record set behind its length."""
        size = self.length(facts, front, node.name)
        if size < 0:
            node.null = size == -1
            return node.null
        if not self.has(size, front, node.name):
            return False
        start = self.position
        self.position += size
        if facts.is_records:
            try:
                self.record_set(node, start, front + node.name, unaligned=node.name == UNALIGNED)
            except DecodeError as error:
                return self.fail(error)
        elif facts.is_string:
            raw = self.frame[start : self.position]
            fault = first_fault(raw)
            if fault < 0:
                node.value = raw.decode()
            else:
                node.value = raw
                self.note_invalid_utf8(node, start + fault, front + node.name)
        else:
            node.value = self.frame[start : self.position]
        if facts.means and self.says_meanings:
            node.meaning = meaning_of(facts.field, node.value, self.topic_name)
        return True

    def note_invalid_utf8(self, node: Node, offset: i64, path: str) -> None:
        """Marks the node of a text that is none; the reading goes on."""
        node.problem = decode_errors.invalid_utf8_text(path)
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem("invalid_utf8", node.problem, offset, path, None, None, self.details))

    def record_set(self, node: Node, start: int, path: str, *, unaligned: bool) -> None:
        """Reads the record set between ``start`` and the current position."""
        if not self.records or self.nodes > MAX_NODES:
            node.value = {"size_bytes": self.position - start}
            return
        folded = self.folded_records()
        children, problems = dissect_record_set(
            self.frame, start, self.position, self.budget, unaligned=unaligned, folded=folded
        )
        node.children = children
        self.nodes += count_nodes(node) - 1 + (folded.nodes if folded is not None else 0)
        room = max(0, MAX_PROBLEMS - len(self.problems))
        self.problems += [
            problem._replace(path=f"{path}{problem.path}", details=self.details) for problem in problems[:room]
        ]

    def folded_records(self) -> Folded | None:
        """The node for records that are not shown, where not all are kept."""
        return None

    def structured(self, node: Node, facts: FieldFacts, path: str) -> bool:
        """Reads a structure, behind its mark where it may be null."""
        if facts.null_length:
            if not self.has(1, path):
                return False
            byte: i64 = self.frame[self.position]
            mark: i64 = byte - 256 if byte > 127 else byte
            self.position += 1
            null = null_mark(facts.field)
            if mark == null:
                node.null = True
                return True
            if mark != 1:
                return self.fail(decode_errors.bad_mark(mark, null, path))
        return self.structure(node, facts.field.fields, path)

    def array(self, node: Node, facts: FieldFacts, path: str) -> bool:
        """Reads an array: its count, then its elements."""
        count = self.length(facts, path, "")
        if count < 0:
            node.null = count == -1
            return node.null
        remaining = self.end + self.missing - self.position
        entry = facts.of_element(self.flexible)
        if count * entry.smallest > remaining:
            return self.fail(decode_errors.bad_count(count, remaining, path))
        return self.elements(node, entry, count, path)

    def elements(self, node: Node, entry: FieldFacts, count: int, path: str) -> bool:
        """Reads the elements of an array."""
        for index in range(count):  # noqa: SIM110 - compiled, a generator is dear
            if self.field(node, entry, f"[{index}]", path) is None:
                return False
        return True

    def tag_section(self, node: Node, fields: list[FieldFacts], path: str) -> bool:
        """Reads the tagged fields after a structure: known ones in order of tag, then the unknown ones together."""
        start, before = self.position, len(node.children)
        if not fields and start < self.end and not self.frame[start]:
            self.position += 1
            return True
        unknown = Node(UNKNOWN_TAGS, TAGGED_FIELDS, start, 0)
        found: dict[int | None, Node] = {}
        inner = f"{path}.{UNKNOWN_TAGS}" if path else UNKNOWN_TAGS
        if not self.tagged_fields(node, unknown, fields, found, inner):
            if self.failure.offset is not None:
                return False
            self.mark(unknown, start, inner)
            self.keep(node, unknown)
            return False
        if unknown.children:
            unknown.length = self.position - start
        if self.nodes <= MAX_NODES:
            regulars = node.children[:before]
            late = [found.get(facts.field.tag) or default_node(facts.field, start, self.topic_name) for facts in fields]
            node.children = [*regulars, *late, *([unknown] if unknown.children else ())]
        return True

    def tagged_fields(
        self, node: Node, unknown: Node, fields: list[FieldFacts], found: dict[int | None, Node], inner: str
    ) -> bool:
        """Reads the fields of a tag section: known ones go to ``found`` by tag, others below ``unknown``."""
        count = self.uvarint()
        if count < 0:
            return False
        if too_many := too_many_tags(count, self.end - self.position, inner):
            return self.fail(too_many)
        known = {facts.field.tag: facts for facts in fields}
        front = inner.removesuffix(UNKNOWN_TAGS)
        for _ in range(count):
            at = self.position
            tag = self.uvarint()
            size = self.uvarint() if tag >= 0 else -1
            if size < 0:
                return False
            if not self.has(size, inner):
                return False
            facts = known.get(tag)
            if facts is None:
                raw = self.frame[self.position : self.position + size]
                self.position += size
                if not self.keep(unknown, Node(str(tag), "BYTES", at, self.position - at, raw, tag=tag)):
                    return False
                continue
            child = self.known_tag(node, facts, at, size, front)
            if child is None:
                return False
            found[tag] = child
        return True

    def known_tag(self, node: Node, facts: FieldFacts, at: i64, size: i64, front: str) -> Node | None:
        """Reads a tagged field that the definition has, ``size`` bytes from ``at`` on; None where it cannot be."""
        start = self.position
        child = self.field(node, facts, facts.name, front)
        if child is None:
            return None
        child.tag, child.offset, child.length = facts.field.tag, at, self.position - at
        used = self.position - start
        if used != size:
            failure = decode_errors.bad_tag_size(front + facts.name, size, used, self.end - self.position)
            failure.offset, child.problem = at, str(failure)
            self.failure = failure
            return None
        return child


def count_nodes(node: Node) -> i64:
    """The nodes of a tree, itself included."""
    count: i64 = 1
    for child in node.children:
        count += count_nodes(child) if child.children else 1
    return count


def default_node(field: WireField, at: int, topic_name: TopicNames | None) -> Node:
    """The node of a tagged field that is not on the wire: length 0, the default for its value."""
    node = _held(field, field.name, default_value(field), at, topic_name)
    node.tag = field.tag
    return node


def _held(field: WireField, name: str, value: Any, at: int, topic_name: TopicNames | None) -> Node:
    node = Node(name, ARRAY if field.array else field.type, at, 0)
    if value is None:
        node.null = True
    elif field.array:
        entry = single(field)
        node.children = [_held(entry, f"[{i}]", one, at, topic_name) for i, one in enumerate(value)]
    elif field.type == STRUCT:
        node.children = [_held(child, child.name, value[child.name], at, topic_name) for child in field.fields]
    else:
        node.value, node.meaning = value, meaning_of(field, value, topic_name)
    return node
