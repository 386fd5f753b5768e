"""The dissector: the only reader that knows of every field where it lies, what it means and what is wrong with it.

Slower than the generated decoder, it reads a message field by field after its definition and gives a ``Node`` for each
with offset, length, wire type, value and meaning. Bad bytes never make it raise: it keeps what it has read, marks the
field it failed at and says why. ``node_values.plain`` turns its nodes back into what the fast decoder returns.

A known tagged field that is not on the wire is a node of length 0 that holds the default.

It is the only reader that knows where a value lies, and the one that the others are held to. Without it there would be
no offsets in a tree, and nobody to say what is wrong with a message.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache

from kwiresniff.base.body_members import UNKNOWN_TAGS
from kwiresniff.base.light_typing import TYPE_CHECKING, Any
from kwiresniff.base.utf8 import first_fault
from kwiresniff.codec import decode_errors
from kwiresniff.codec.field_layout import (
    UNALIGNED,
    check_nesting,
    default_value,
    is_records,
    is_string,
    length_prefix,
    may_be_null,
    null_mark,
    regular,
    single,
    smallest_size,
    tagged,
)
from kwiresniff.codec.primitives import check_tag_count, read_uvarint, reader_of
from kwiresniff.codec.record_limits import MAX_NODES
from kwiresniff.codec.value_labels import has_meaning, meaning_of
from kwiresniff.errors import DecodeError
from kwiresniff.model import Dissection, Node, Problem, TopicNames
from kwiresniff.schema.types import MessageVersion, WireField
from kwiresniff.schema.wire_types import FIXED

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.codec.record_dissector import Folded
    from kwiresniff.codec.record_limits import RecordBudget

#: Nodes counted until the dissection stops: a few seconds' work.
MAX_COUNTED = 2_000_000
#: Problems kept for one message that go on: more strings of bad UTF-8 than this add nothing.
MAX_PROBLEMS = 100

ARRAY = "ARRAY"
STRUCT = "STRUCT"
TAGGED_FIELDS = "TAGGED_FIELDS"
#: Elements of a folded array whose values are a list, all in one node.
ELEMENTS = "ELEMENTS"

#: Structures and arrays whose ``_Layout`` is kept: those of all messages of a usual capture.
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
    """Annotate the message whose body starts at ``offset`` of ``frame`` and should end with it.

    Without ``records`` record sets are not opened. ``missing`` bytes of the frame's end are known to be absent: an
    array that counts on them is read as far as it is there. Offsets count from the start of the frame. Raises nothing
    for bad bytes; what is wrong with them is in ``problems``.
    """
    return Dissector(MessageBytes(message, frame, offset, records, topic_name, missing)).dissect(trailing=True)


def dissect_front(message: MessageVersion, frame: bytes, offset: int = 0) -> Dissection:
    """Annotate a message that something else follows in the frame, such as a header."""
    return Dissector(MessageBytes(message, frame, offset)).dissect(trailing=False)


class MessageBytes:
    """What is dissected, and how; the arguments of ``dissect``."""

    __slots__ = ("frame", "message", "missing", "offset", "records", "topic_name")

    def __init__(
        self,
        message: MessageVersion,
        frame: bytes,
        offset: int,
        records: bool = False,
        topic_name: TopicNames | None = None,
        missing: int = 0,
    ) -> None:
        self.message = message
        self.frame = frame
        self.offset = offset
        self.records = records
        self.topic_name = topic_name
        self.missing = missing


class FieldFacts:
    """What is asked of a ``field`` again and again, found out once; of an array also its ``entry``, once it is asked
    for.

    ``size`` are the bytes of a value of fixed size, 0 for any other; ``unpack`` and ``read`` make its value.
    ``prefix`` reads a length or count of ``prefix_size`` bytes; None stands for an UNSIGNED_VARINT. ``smallest`` are
    the fewest bytes that a value takes.
    """

    __slots__ = (
        "array", "entry", "field", "is_records", "is_string", "is_struct", "means", "name", "node_type", "null_length",
        "prefix", "prefix_size", "read", "size", "smallest", "unpack",
    )  # fmt: skip

    def __init__(self, field: WireField, flexible: bool) -> None:
        self.field = field
        self.name = field.name
        self.array = field.array
        self.node_type = ARRAY if field.array else field.type
        self.is_struct = field.type == STRUCT
        self.is_string = is_string(field.type)
        self.is_records = is_records(field.type)
        self.null_length = field.nullable if field.array else may_be_null(field)
        self.smallest: i64 = smallest_size(field, flexible)
        self.means = has_meaning(field)
        self.entry: FieldFacts | None = None
        self.unpack: Callable[[bytes, i64], tuple[Any, ...]] | None = None
        self.read: Callable[[Any], Any] | None = None
        self.size: i64 = 0
        if field.type in FIXED:
            self.unpack, self.size, self.read = _fixed(field.type)
        prefix = length_prefix(field, flexible)
        self.prefix_size: i64 = prefix.size if prefix is not None else 0
        self.prefix = struct.Struct(f">{prefix.code}").unpack_from if prefix is not None else None


class _Layout:
    """What is asked of the ``fields`` of a structure, by their identity: they are kept with it."""

    __slots__ = ("fields", "regular", "tagged")

    def __init__(self, fields: tuple[WireField, ...], flexible: bool) -> None:
        self.fields = fields
        self.regular = [FieldFacts(field, flexible) for field in regular(fields)]
        self.tagged = [FieldFacts(field, flexible) for field in tagged(fields)]


_layouts: dict[int, _Layout] = {}  # by the identity of the fields, twice, one more in flexible messages
_checked: dict[int, MessageVersion] = {}  # definitions that do not nest too deeply


def _layout(fields: tuple[WireField, ...], flexible: bool) -> _Layout:
    key = 2 * id(fields) + (1 if flexible else 0)
    found = _layouts.get(key)
    if found is None:
        if len(_layouts) >= _KEPT:
            _layouts.clear()
        found = _layouts[key] = _Layout(fields, flexible)
    return found


def _check(message: MessageVersion) -> None:
    if id(message) not in _checked:
        check_nesting(message)
        if len(_checked) >= _KEPT:
            _checked.clear()
        _checked[id(message)] = message


class Dissector:
    """Dissects one message; its methods read the parts of a definition in wire order, each into a node."""

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
        self.budget: RecordBudget | None = None
        self.says_meanings = True

    def dissect(self, trailing: bool) -> Dissection:
        """The dissection; with ``trailing`` bytes behind the message are a problem."""
        root = Node(self.message.name, STRUCT, self.position, 0)
        try:
            self.structure(root, self.message.fields, "")
        except DecodeError as error:
            self.problems.append(Problem(error.code, str(error), error.offset, error.path))
        else:
            if trailing and self.position < self.end:
                self.note_trailing_bytes()
        root.length = self.position - root.offset
        if self.nodes > MAX_NODES:
            text = f"the message has {self.nodes} fields, of which the first {MAX_NODES} are kept"
            self.problems.append(Problem("too_many_fields", text, root.offset))
        return Dissection(root, self.position, self.problems)

    def note_trailing_bytes(self) -> None:
        """Reports the bytes behind the message."""
        self.problems.append(decode_errors.trailing_bytes(self.position, self.end - self.position))

    def keep(self, parent: Node, node: Node) -> None:
        """Adds a node to the tree, or only counts it when there are too many. Raises DecodeError at the limit on
        entries.
        """
        self.nodes += 1
        if self.nodes <= MAX_NODES:
            parent.children.append(node)
        elif self.nodes > MAX_COUNTED:
            raise decode_errors.too_many_entries(MAX_COUNTED)

    def structure(self, node: Node, fields: tuple[WireField, ...], path: str) -> None:
        """Reads the fields of a structure into children of ``node``."""
        layout = _layout(fields, self.flexible)
        front = f"{path}." if path else ""
        for facts in layout.regular:
            self.field(node, facts, facts.name, front)
        if self.flexible:
            self.tag_section(node, layout.tagged, path)

    def field(self, parent: Node, facts: FieldFacts, name: str, front: str) -> Node:
        """Read one field into a new node of ``parent``; a failure marks the innermost node and goes on up.

        Its path is ``front`` and its name, put together when somebody asks for it: hardly any field is wrong.
        """
        start = self.position
        node = Node(name, facts.node_type, start, 0)
        self.keep(parent, node)
        try:
            if facts.array:
                self.array(node, facts, front + name)
            elif facts.size:
                self.fixed(node, facts, front)
            elif facts.is_struct:
                if not facts.null_length or self.present(node, facts.field, front + name):
                    self.structure(node, facts.field.fields, front + name)
            else:
                self.sized(node, facts, front)
        except DecodeError as error:
            if error.offset is None:
                error.offset, error.path = start, front + name
                node.problem = str(error)
            node.length = self.position - start
            raise
        node.length = self.position - start
        return node

    def take(self, size: i64, front: str, name: str = "") -> bytes:
        """The next ``size`` bytes. Raises DecodeError, and takes nothing, when there are not so many."""
        start = self.position
        stop = start + size
        if stop > self.end:
            raise decode_errors.truncated(front + name, stop - self.end)
        self.position = stop
        return self.frame[start:stop]

    def fixed(self, node: Node, facts: FieldFacts, front: str) -> None:
        """Reads a value of fixed size."""
        start = self.position
        self.take(facts.size, front, node.name)
        assert facts.unpack is not None
        (node.value,) = facts.unpack(self.frame, start)
        if facts.read is not None:
            node.value = facts.read(node.value)
        if facts.means and self.says_meanings:
            node.meaning = meaning_of(facts.field, node.value, self.topic_name)

    def length(self, facts: FieldFacts, front: str, name: str) -> i64:
        """The length of a string, byte array or record set, or the count of an array; -1 for null. Raises DecodeError
        for a length or count that cannot be.
        """
        length: i64
        if facts.prefix is None:
            length, self.position = read_uvarint(self.frame, self.position)
            length -= 1
        else:
            start = self.position
            self.take(facts.prefix_size, front, name)
            (length,) = facts.prefix(self.frame, start)
        if length >= 0 or (length == -1 and facts.null_length):
            return length
        path = front + name
        if facts.array and facts.prefix is not None:
            raise decode_errors.bad_count(length, self.end - self.position, path)
        raise decode_errors.null_value(path) if length == -1 else decode_errors.bad_length(length, path)

    def sized(self, node: Node, facts: FieldFacts, front: str) -> None:
        """Reads a string, byte array or record set behind its length."""
        size = self.length(facts, front, node.name)
        if size < 0:
            node.null = True
            return
        start = self.position
        raw = self.take(size, front, node.name)
        if facts.is_records:
            self.record_set(node, start, front + node.name, unaligned=node.name == UNALIGNED)
        elif facts.is_string:
            fault = first_fault(raw)
            if fault < 0:
                node.value = raw.decode()
            else:
                node.value = raw
                self.note_invalid_utf8(node, start + fault, front + node.name)
        else:
            node.value = raw
        if facts.means and self.says_meanings:
            node.meaning = meaning_of(facts.field, node.value, self.topic_name)

    def note_invalid_utf8(self, node: Node, offset: i64, path: str) -> None:
        """Marks the node of a text that is none; the reading goes on."""
        node.problem = decode_errors.invalid_utf8_text(path)
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(decode_errors.INVALID_UTF8, node.problem, offset, path))

    def record_set(self, node: Node, start: int, path: str, *, unaligned: bool) -> None:
        """Reads the record set between ``start`` and the current position."""
        if not self.records or self.nodes > MAX_NODES:
            node.value = {"size_bytes": self.position - start}
            return
        from kwiresniff.codec.record_limits import RecordBudget  # imported here: they bring the compression codecs
        from kwiresniff.codec.records import dissect_record_set

        self.budget = self.budget or RecordBudget()
        folded = self.folded_records()
        children, problems = dissect_record_set(
            self.frame, start, self.position, self.budget, unaligned=unaligned, folded=folded
        )
        self.nodes += sum(map(count_nodes, children)) + (folded.nodes if folded is not None else 0)
        node.children = children
        room = max(0, MAX_PROBLEMS - len(self.problems))
        self.problems += [problem._replace(path=f"{path}{problem.path}") for problem in problems[:room]]

    def folded_records(self) -> Folded | None:
        """What stands for records that nobody looks at, where those are not all kept."""
        return None

    def present(self, node: Node, field: WireField, path: str) -> bool:
        """Reads the mark before a nullable structure: whether there is one."""
        mark, null = int.from_bytes(self.take(1, path), signed=True), null_mark(field)
        if mark not in (1, null):
            raise decode_errors.bad_mark(mark, null, path)
        node.null = mark == null
        return not node.null

    def array(self, node: Node, facts: FieldFacts, path: str) -> None:
        """Reads an array: its count, then its elements."""
        count = self.length(facts, path, "")
        if count < 0:
            node.null = True
            return
        remaining = self.end + self.missing - self.position
        entry = facts.entry
        if entry is None:
            entry = facts.entry = FieldFacts(single(facts.field), self.flexible)
        if count * entry.smallest > remaining:
            raise decode_errors.bad_count(count, remaining, path)
        self.elements(node, entry, count, path)

    def elements(self, node: Node, entry: FieldFacts, count: int, path: str) -> None:
        """Read the elements of an array."""
        for index in range(count):
            self.field(node, entry, f"[{index}]", path)

    def tag_section(self, node: Node, fields: list[FieldFacts], path: str) -> None:
        """Read the tagged fields after a structure: known ones in order of tag, then the unknown ones together."""
        if not fields and self.position < self.end and not self.frame[self.position]:
            self.position += 1
            return
        known = {facts.field.tag: facts for facts in fields}
        start, before = self.position, len(node.children)
        unknown = Node(UNKNOWN_TAGS, TAGGED_FIELDS, start, 0)
        found: dict[int | None, Node] = {}
        inner = f"{path}.{UNKNOWN_TAGS}" if path else UNKNOWN_TAGS
        try:
            count, self.position = read_uvarint(self.frame, self.position)
            check_tag_count(count, self.end - self.position, inner)
            for _ in range(count):
                at = self.position
                tag, self.position = read_uvarint(self.frame, at)
                size, self.position = read_uvarint(self.frame, self.position)
                if size > self.end - self.position:
                    raise decode_errors.truncated(inner, size - (self.end - self.position))
                if tag in known:
                    found[tag] = self.known_tag(node, known[tag], at, size, path)
                else:
                    self.unknown_tag(node, unknown, tag, at, size)
        except DecodeError as error:
            if error.offset is None:
                error.offset, error.path = start, inner
                unknown.problem = str(error)
                self.keep(node, unknown)
            raise
        if unknown.children:
            unknown.length = self.position - start
        if self.nodes <= MAX_NODES:
            regulars = node.children[:before]
            late = [found.get(tag) or default_node(facts.field, start, self.topic_name) for tag, facts in known.items()]
            node.children = [*regulars, *late, *([unknown] if unknown.children else ())]

    def known_tag(self, node: Node, facts: FieldFacts, at: int, size: int, path: str) -> Node:
        """Reads a tagged field that the definition has, ``size`` bytes from ``at`` on."""
        start = self.position
        front = f"{path}." if path else ""
        child = self.field(node, facts, facts.name, front)
        child.tag, child.offset, child.length = facts.field.tag, at, self.position - at
        if self.position - start != size:
            error = decode_errors.bad_tag_size(
                front + facts.name, size, self.position - start, self.end - self.position
            )
            error.offset, child.problem = at, str(error)
            raise error
        return child

    def unknown_tag(self, node: Node, unknown: Node, tag: int, at: int, size: int) -> None:
        """Keep the bytes of a field whose ``tag`` the definition does not have."""
        raw = self.take(size, UNKNOWN_TAGS)
        self.keep(unknown, Node(str(tag), "BYTES", at, self.position - at, raw, tag=tag))


@cache
def _fixed(wire_type: str) -> tuple[Callable[[bytes, i64], tuple[Any, ...]], int, Callable[[Any], Any] | None]:
    """How a value of fixed size is read: what unpacks it, its bytes, and what makes the value of what was unpacked."""
    code, size = FIXED[wire_type]
    return struct.Struct(f">{code}").unpack_from, size, reader_of(wire_type)


def count_nodes(node: Node) -> int:
    """The nodes of a tree, itself included."""
    return 1 + sum(map(count_nodes, node.children))


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
