"""How far frames are read: headers only, error codes too, bodies without records, or everything."""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

Depth: TypeAlias = Literal["headers", "errors", "bodies", "records"]

#: From cheap to dear; a deeper reading has everything that a shallower one has.
DEPTHS: Final[tuple[Depth, ...]] = ("headers", "errors", "bodies", "records")
