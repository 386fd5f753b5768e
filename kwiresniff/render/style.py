"""How much of a tree to show: a named tuple, never compiled (see ``kwiresniff.base.observations``)."""

from __future__ import annotations

from typing import NamedTuple

from kwiresniff.render.theme import Glyphs

#: Characters or bytes of one value that are shown before the rest is only counted.
VALUE_LIMIT = 120


class Style(NamedTuple):
    """How much to show: the drawing characters, verbosity 0 to 2, characters per value (None: all of them)."""

    glyphs: Glyphs
    verbosity: int = 0
    value_limit: int | None = VALUE_LIMIT
