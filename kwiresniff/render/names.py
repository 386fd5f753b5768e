"""The names of addresses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from kwiresniff.base.address_names import Name
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk

#: Names shown of one address; JSON has them all.
NAMES_SHOWN: Final = 4


def name_chunks(names: Sequence[Name]) -> Iterator[Chunk]:
    """Each name, and where it comes from."""
    for one in names[:NAMES_SHOWN]:
        yield [("value", escape(one.name)), ("dim", f" ({escape(one.source)})")]
    if len(names) > NAMES_SHOWN:
        yield [("dim", f"and {len(names) - NAMES_SHOWN:,} more names")]
