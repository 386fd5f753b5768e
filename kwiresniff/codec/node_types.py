"""Types of nodes that are no wire types; those of record sets are named where their nodes are made."""

from __future__ import annotations

from typing import Final

STRUCT: Final = "STRUCT"
ARRAY: Final = "ARRAY"
#: The tagged fields of a structure that its definition does not have.
TAGGED_FIELDS: Final = "TAGGED_FIELDS"
#: Elements of a folded array whose values are a list, all in one node.
ELEMENTS: Final = "ELEMENTS"
