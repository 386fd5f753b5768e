"""Arrays of version ranges on one row: what ApiVersions answers, seventy APIs and their versions.

KIP-35 (supported versions of every API) and KIP-584 (versions of features).
"""

from __future__ import annotations

from typing import Final

from kwiresniff.model import Node
from kwiresniff.render.escape import escape
from kwiresniff.render.lines import Chunk
from kwiresniff.render.row import Row
from kwiresniff.render.values import Style, is_wrong, problem_spans

#: What such an element is called by, and the two ends of its range.
_NAMES: Final = frozenset(["api_key", "name"])
_ENDS: Final = frozenset(["min_version", "max_version", "min_version_level", "max_version_level"])


def is_range_array(array: Node) -> bool:
    """Whether every element is a name and two ends of a range, and nothing is wrong with any."""
    for element in array.children:
        fields = [child for child in element.children if child.type != "TAGGED_FIELDS"]
        if len(fields) != 3 or fields[0].name not in _NAMES or not {field.name for field in fields[1:]} <= _ENDS:
            return False
    return not is_wrong(array)


def range_row(array: Node, name: str, style: Style) -> Row:
    """``api_keys  Produce 0-13  Fetch 4-18  ...``, all of them."""
    chunks: list[Chunk] = [[("key", name), ("name", f" {len(array.children)}"), *problem_spans(array)]]
    for element in array.children:
        called, *ends = element.children[:3]
        low, high = sorted(ends, key=lambda end: not end.name.startswith("min"))
        what = escape(called.meaning or str(called.value))
        versions = f"{low.value}" if low.value == high.value else f"{low.value}-{high.value}"
        chunks.append([("value", f"{what} "), ("name", versions)])
    return Row(chunks, node=array)
