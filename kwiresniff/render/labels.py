"""Labels of the fields of a message, for trees that are drawn from decoded values: a plan, made once for each (API,
version, direction).

The names and meanings of fields come from ``kwiresniff.schema``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, final

from kwiresniff import schema
from kwiresniff.base.tree_sizes import ELEMENTS_SHOWN, is_range
from kwiresniff.model import Direction
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.theme import Span
from kwiresniff.schema.types import WireField
from kwiresniff.schema.value_labels import has_meaning

#: Fields that identify an element of an array, in Kafka's names.
IDENTIFYING: Final = frozenset(
    [
        "api_key", "broker_id", "coordinator_id", "entity_type", "feature", "group", "group_id", "index", "key",
        "member_id", "name", "node_id", "partition", "partition_index", "producer_id", "resource_name", "topic",
        "topic_id", "topic_name", "transactional_id", "user",
    ]
)  # fmt: skip

#: Plans that are kept: Kafka has about 700 messages at all versions in each direction.
_KEPT: Final = 1024


@final
class FieldLabel:
    """The label of a ``field`` in a tree.

    ``fields`` are those of its structure; ``has_errors`` says that it is an error code or has one somewhere inside,
    ``is_range`` that the elements of an array are version ranges (``kwiresniff.base.tree_sizes``). ``lead`` is its name
    as it stands before the value, ``key`` as it stands before a structure, ``keys`` before the first elements of an
    array. ``numbers`` are the texts of numbers by the width of the name: to make them anew takes a third of a command's
    time.
    """

    def __init__(self, field: WireField) -> None:
        self.field = field
        self.name = field.name
        self.fields = [FieldLabel(child) for child in field.fields]
        self.is_structure = field.type == "STRUCT"
        self.is_array = field.array
        self.is_records = field.type.endswith("RECORDS")
        self.is_tagged = field.tag is not None
        self.is_uuid = field.type == "UUID"
        self.is_error = field.name.endswith("error_code") and not (self.is_structure or self.is_array)
        self.has_errors: bool = self.is_error or any(child.has_errors for child in self.fields)
        self.has_meaning = not self.is_structure and has_meaning(field)
        self.identifies = field.name in IDENTIFYING and not self.is_array and not self.is_structure
        self.is_range = self.is_array and is_range([child.name for child in self.fields])
        self.lead: Span = ("name", f"{field.name} ")
        self.key: Span = ("key", field.name)
        self.numbers: dict[int, dict[int, Chunk]] = {}
        self.keys: list[Span] = [("key", f"{field.name}[{index}]") for index in range(ELEMENTS_SHOWN)]

    def is_inline(self, value: Any) -> bool:
        """Whether a value of the field stands on the row of its structure: it has nothing below it."""
        return not value or not (self.is_structure or self.is_records)


@lru_cache(_KEPT)
def labels_of(api_key: int, version: int, direction: Direction) -> list[FieldLabel]:
    """The labels of the fields of a body, in the order of the wire. Raises SchemaError for an unknown message."""
    return [FieldLabel(field) for field in schema.message(api_key, version, direction).fields]
