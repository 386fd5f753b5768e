"""Structures of decoded bodies that know which of their tagged fields were on the wire.

Never compiled: a compiled class cannot derive from dict.
"""

from __future__ import annotations

from typing import Any


class TaggedStructure(dict[str, Any]):
    """A dict in which tagged fields that were not on the wire have their defaults; the others are in ``present``."""

    __slots__ = ("present",)

    def __init__(self, members: dict[str, Any]) -> None:
        super().__init__(members)
        self.present: set[str] = set()


def with_tagged(structure: dict[str, Any], name: str, value: Any) -> TaggedStructure:
    """The structure with a tagged field that is on the wire; others that it has are kept."""
    found = structure if isinstance(structure, TaggedStructure) else TaggedStructure(structure)
    found[name] = value
    found.present.add(name)
    return found
