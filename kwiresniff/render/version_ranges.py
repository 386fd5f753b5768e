"""Arrays of version ranges on one row: an ApiVersions response has about seventy.

KIP-35 (supported versions of every API) and KIP-584 (versions of features).
"""

from __future__ import annotations

from kwiresniff.base.tree_sizes import RANGE_FIELDS, RANGES_SHOWN, is_range
from kwiresniff.model import Node
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.style import Style
from kwiresniff.render.tree_row import Row
from kwiresniff.render.values import is_wrong, problem_spans


def is_range_array(array: Node) -> bool:
    """Whether an array can stand on one row: few elements, each a name and two ends of a range, none wrong."""
    if len(array.children) > RANGES_SHOWN:
        return False
    for element in array.children:
        if len(element.children) > RANGE_FIELDS + 1:  # its fields, and tagged ones that nobody knows
            return False
        if not is_range([child.name for child in element.children if child.type != "TAGGED_FIELDS"]):
            return False
    return not is_wrong(array)


def range_row(array: Node, name: str, style: Style) -> Row:
    """``api_keys  Produce 0-13  Fetch 4-18  ...``, all of them."""
    chunks: list[Chunk] = [range_head(name, len(array.children)) + problem_spans(array)]
    for element in array.children:
        called, *ends = element.children[:RANGE_FIELDS]
        low, high = sorted(ends, key=lambda end: not end.name.startswith("min"))
        chunks.append(version_range(called.meaning or str(called.value), low.value, high.value))
    return Row(chunks, node=array)


def range_head(name: str, count: int) -> Chunk:
    """The beginning of the row."""
    return [("key", name), ("name", f" {count}")]


def version_range(name: str, low: int, high: int) -> Chunk:
    """``Fetch 4-18``."""
    return [("value", f"{escape(name)} "), ("name", f"{low}" if low == high else f"{low}-{high}")]
