"""The plan by which digests are read: which role each field of a message has in a digest.

Steps over what nobody asks for are joined to one, because a digest is made of nearly every message there is.
"""

from __future__ import annotations

from typing import Final

from kwiresniff import schema
from kwiresniff.base import entities
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.codec.field_layout import is_string
from kwiresniff.codec.plan import (
    ERROR_CODE,
    JUMP,
    SIZES,
    STRUCTURE,
    TAG_SECTION,
    TOPIC_ID,
    UUID,
    Step,
    plan,
)
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction
from kwiresniff.schema.types import WireField

#: The APIs whose topics and partitions a digest tells one by one, and whose records are opened where they are those of
#: topics that Kafka keeps for itself.
OPENED: Final = frozenset([PRODUCE, FETCH])

#: What a value is to a digest; 0 is nothing.
A_TOPIC: Final = 1
OPENED_TOPIC: Final = 2  # of which Kafka's own must be opened
A_GROUP: Final = 3
A_TRANSACTION: Final = 4
ACKS: Final = 5
REPLICA: Final = 6
THROTTLE: Final = 7
SESSION: Final = 8
TOPICS: Final = 9  # an array whose elements are topics with their partitions
PARTITIONS: Final = 10  # one whose elements are those
INDEX: Final = 11  # of such a partition
OFFSET: Final = 12
HIGH_WATERMARK: Final = 13
A_PARTITION: Final = 14  # the number of one that stands anywhere else
RESOURCE_TYPE: Final = 15  # what ``resource_name`` behind it is the name of
#: Added to what an element of a list of names is: of those the empty one is a name as well.
LISTED: Final = 16
#: A name of a resource, which is a topic's where its type says so; that of a topic may be empty.
A_RESOURCE: Final = A_TOPIC + 2 * LISTED

_OUTERMOST: Final = {"acks": ACKS, "replica_id": REPLICA, "throttle_time_ms": THROTTLE, "session_id": SESSION}
_ARRAYS: Final = {
    **dict.fromkeys(entities.TOPIC_ARRAYS, TOPICS),
    "partitions": PARTITIONS, "partition_data": PARTITIONS, "partition_responses": PARTITIONS,
}  # fmt: skip
_OF_PARTITIONS: Final = {
    **dict.fromkeys(entities.PARTITION_INDEXES, INDEX),
    "fetch_offset": OFFSET, "base_offset": OFFSET, "high_watermark": HIGH_WATERMARK,
}  # fmt: skip
_LISTS: Final = (
    (entities.TOPIC_LISTS, A_TOPIC), (entities.GROUP_LISTS, A_GROUP), (entities.TRANSACTION_LISTS, A_TRANSACTION),
)  # fmt: skip


def digest_steps(api_key: int, version: int, direction: Direction) -> list[Step]:
    """How a message is passed over. Raises SchemaError for one that has no plan, or that only its body tells the names
    of."""
    steps = plan(schema.message(api_key, version, direction), leads=False)
    marks = _Marks(f"{direction} {version} of API {api_key}", api_key in OPENED)
    named = [is_id for is_id, role in marks.structure(steps, "", outermost=True) if role == marks.topic]
    if named != sorted(named):  # a digest has the names before the ids
        raise marks.untold("names topics by ids before names")
    return joined(steps)


class _Marks:
    """Gives the steps of one message their roles."""

    def __init__(self, message: str, opened: bool) -> None:
        self.message = message
        self.opened = opened
        self.topic = OPENED_TOPIC if opened else A_TOPIC

    def structure(self, steps: list[Step], parent: str, *, outermost: bool = False) -> list[tuple[bool, int]]:
        """What is named in a structure, as it is read, and whether by an id; what repeats comes twice.

        The names of a structure are told before those inside it, in whatever order a decoded body is searched.
        """
        tagged = [one for step in steps if step.kind == TAG_SECTION for one in step.steps]
        names = {step.name for step in (*steps, *tagged)}
        if outermost and names & entities.KEY_FIELDS:
            raise self.untold("says by one field what another one names")
        if entities.RESOURCE_FIELD in names and not _tells_resource(steps):
            raise self.untold("says behind a name whether it is a topic's")
        if any(one.field and self.role(one, one.field, parent, False) in (INDEX, A_PARTITION) for one in tagged):
            raise self.untold("has a partition that need not be there, and has a number all the same")
        named: list[tuple[bool, int]] = []
        before: set[int] = set()
        for step in steps:
            if step.field is None:
                continue
            role = step.role = self.role(step, step.field, parent, outermost)
            if role in before or (role == self.topic and not step.array and _has_topic(steps, step)):
                raise self.untold("names the same thing in several places")
            inside = self.structure(step.steps, step.name) if step.steps else []
            if role == A_RESOURCE or (role and role < ACKS):
                named.append((step.kind in (UUID, TOPIC_ID), role))
                if step.array:
                    before.add(role)
            if inside:
                before.update([inner for _, inner in inside])
                named += inside * (2 if step.array else 1)
        return named

    def role(self, step: Step, field: WireField, parent: str, outermost: bool) -> int:
        """What a field is to a digest."""
        name = field.name
        if field.enum == "error_code" and step.kind != ERROR_CODE:
            raise self.untold("has an error code that is no INT16")
        if is_string(field.type):
            return self.name_role(name, parent, field.array)
        if field.type == "UUID":
            return self.topic if name == entities.TOPIC_ID and not field.array else 0
        if field.type == "STRUCT":
            return self.array_role(name, parent, outermost) if field.array else 0
        if name == entities.RESOURCE_FIELD and not field.array:
            return RESOURCE_TYPE
        if outermost and name in _OUTERMOST and not field.array:
            return _OUTERMOST[name]
        if self.opened and _ARRAYS.get(parent) == PARTITIONS and name in _OF_PARTITIONS and not field.array:
            return _OF_PARTITIONS[name]
        if entities.is_partition(name, parent, is_list=field.array) and step.kind in SIZES:
            if field.type != "INT32":
                raise self.untold("has a partition that is no INT32")
            return A_PARTITION
        return 0

    def name_role(self, name: str, parent: str, is_list: bool) -> int:
        """What a text is to a digest, or a list of them."""
        if name == entities.RESOURCE_NAME and not is_list:
            return A_RESOURCE
        if is_list:
            found = next((role for among, role in _LISTS if name in among), 0)
            return self.topic if found == A_TOPIC else found
        if entities.is_topic_field(name) or (name == "name" and entities.holds_topics(parent)):
            return self.topic
        return A_GROUP if name in entities.GROUP_FIELDS else A_TRANSACTION * (name in entities.TRANSACTION_FIELDS)

    def array_role(self, name: str, parent: str, outermost: bool) -> int:
        """What an array of structures is to a digest."""
        role = _ARRAYS.get(name, 0) if self.opened else 0
        place = TOPICS if outermost else PARTITIONS if _ARRAYS.get(parent) == TOPICS else 0
        return role if role == place else 0

    def untold(self, why: str) -> SchemaError:
        return SchemaError(f"{self.message} {why}")


def _tells_resource(steps: list[Step]) -> bool:
    """Whether a structure has the name of a resource right behind its type."""
    names = [step.name for step in steps]
    return names[names.index(entities.RESOURCE_FIELD) + 1 :][:1] == [entities.RESOURCE_NAME]


def _has_topic(steps: list[Step], last: Step) -> bool:
    """Whether a structure has another field before this one that names a topic."""
    return any(step.role == last.role and step is not last for step in steps)


def joined(steps: list[Step]) -> list[Step]:
    """Marked steps as they are passed over: ``least`` is the bytes of a JUMP, over fields of fixed size that nobody
    asks for. The steps of an array are those of an element."""
    found: list[Step] = []
    for step in steps:
        made = [step]
        if step.array:
            step.steps = joined(step.steps) if step.kind == STRUCTURE else joined([_element(step)])
        elif step.kind == STRUCTURE:
            made = joined(step.steps)
            if step.nullable:
                step.steps = made
                made = [step]
            else:
                for one in made:  # for the paths of errors
                    one.name = f"{step.name}.{one.name}"
        elif step.kind in SIZES and step.kind != ERROR_CODE and not step.role:
            made = [_jump(SIZES[int(step.kind)])]
        for one in made:
            if one.kind == JUMP and found and found[-1].kind == JUMP:
                one = _jump(int(found.pop().least + one.least))
            found.append(one)
    return found


def _jump(size: int) -> Step:
    step = Step(b"", JUMP)
    step.least = size
    return step


def _element(array: Step) -> Step:
    step = Step(b"", array.kind, array.field)
    step.compact, step.short, step.nullable = array.compact, array.short, array.nullable
    step.role = array.role + LISTED if array.role and array.kind not in SIZES else array.role
    array.role = 0
    return step
