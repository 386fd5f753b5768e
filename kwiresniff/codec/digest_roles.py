"""Which role each field of a message has in a digest."""

from __future__ import annotations

from typing import Final

from kwiresniff import schema
from kwiresniff.base import entities
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.codec.body_walker import LISTED
from kwiresniff.codec.field_layout import check_nesting, is_string, regular, tagged
from kwiresniff.codec.plan import Step, passing_plan
from kwiresniff.errors import SchemaError
from kwiresniff.model import Direction
from kwiresniff.schema.types import WireField
from kwiresniff.schema.wire_types import FIXED

#: The APIs whose digest has topics and partitions, and whose records are opened in internal topics.
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


def digest_plan(api_key: int, version: int, direction: Direction) -> list[Step]:
    """The plan for the digest of a message. Raises SchemaError for one that has none."""
    message = schema.message(api_key, version, direction)
    check_nesting(message)
    roles = _Roles(f"{direction} {version} of API {api_key}", api_key in OPENED)
    named = [is_id for is_id, role in roles.structure(message.fields, "", outermost=True) if role == roles.topic]
    if named != sorted(named):  # a digest has the names before the ids
        raise roles.untold("names topics by ids before names")
    return passing_plan(message, roles.role, errors=True, texts=True)


class _Roles:
    """Gives the fields of one message their roles."""

    def __init__(self, message: str, opened: bool) -> None:
        self.message = message
        self.opened = opened
        self.topic = OPENED_TOPIC if opened else A_TOPIC

    def structure(
        self, fields: tuple[WireField, ...], parent: str, *, outermost: bool = False
    ) -> list[tuple[bool, int]]:
        """Yields the names in a structure before those inside it, each with whether it is an id; may repeat."""
        steps = regular(fields)
        names = {field.name for field in fields}
        if outermost and names & entities.KEY_FIELDS:
            raise self.untold("says by one field what another one names")
        if entities.RESOURCE_FIELD in names and not _tells_resource(steps):
            raise self.untold("says behind a name whether it is a topic's")
        if any(self.role(one, parent, False) in (INDEX, A_PARTITION) for one in tagged(fields)):
            raise self.untold("has a partition that need not be there, and has a number all the same")
        named: list[tuple[bool, int]] = []
        before: set[int] = set()
        topics = 0
        for field in steps:
            role = self.role(field, parent, outermost)
            if role != A_RESOURCE:
                role &= ~LISTED
            if role in before or (role == self.topic and not field.array and topics):
                raise self.untold("names the same thing in several places")
            topics += role == self.topic
            inside = self.structure(field.fields, field.name) if field.fields else []
            if role == A_RESOURCE or (role and role < ACKS):
                named.append((field.type == "UUID", role))
                if field.array:
                    before.add(role)
            if inside:
                before.update([inner for _, inner in inside])
                named += inside * (2 if field.array else 1)
        return named

    def role(self, field: WireField, parent: str, outermost: bool) -> int:
        """The role of a field in a digest."""
        name = field.name
        if field.enum == "error_code" and field.type != "INT16":
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
        if entities.is_partition(name, parent, is_list=field.array) and field.type in FIXED:
            if field.type != "INT32":
                raise self.untold("has a partition that is no INT32")
            return A_PARTITION
        return 0

    def name_role(self, name: str, parent: str, is_list: bool) -> int:
        """The role of a text, or of each of a list of them, in a digest."""
        if name == entities.RESOURCE_NAME and not is_list:
            return A_RESOURCE
        if is_list:
            found = next((role for among, role in _LISTS if name in among), 0)
            return LISTED + (self.topic if found == A_TOPIC else found) if found else 0
        if entities.is_topic_field(name) or (name == "name" and entities.holds_topics(parent)):
            return self.topic
        return A_GROUP if name in entities.GROUP_FIELDS else A_TRANSACTION * (name in entities.TRANSACTION_FIELDS)

    def array_role(self, name: str, parent: str, outermost: bool) -> int:
        """The role of an array of structures in a digest."""
        role = _ARRAYS.get(name, 0) if self.opened else 0
        place = TOPICS if outermost else PARTITIONS if _ARRAYS.get(parent) == TOPICS else 0
        return role if role == place else 0

    def untold(self, why: str) -> SchemaError:
        return SchemaError(f"{self.message} {why}")


def _tells_resource(fields: list[WireField]) -> bool:
    """Whether a structure has the name of a resource right behind its type."""
    names = [field.name for field in fields]
    return names[names.index(entities.RESOURCE_FIELD) + 1 :][:1] == [entities.RESOURCE_NAME]
