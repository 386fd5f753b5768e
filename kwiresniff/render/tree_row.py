"""One row of a tree before it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwiresniff.base.tree_sizes import NAME_COLUMN
from kwiresniff.model import Node
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.style import Style
from kwiresniff.render.values import is_container, leaf, scalars


class Row:
    """The chunks of a row, the rows below it, and the node whose bytes it shows (None: no bytes)."""

    __slots__ = ("children", "chunks", "node")

    def __init__(self, chunks: list[Chunk], children: list[Row] | None = None, node: Node | None = None) -> None:
        self.chunks = chunks
        self.children = [] if children is None else children
        self.node = node


#: A function that draws the decoded bytes of records (``kwiresniff.render.tree_rows``).
OpenedRows = Callable[[Node, Style], "list[Row]"]


def name_column(nodes: Sequence[Node]) -> int:
    """How wide to make the names of fields that stand below each other."""
    return max([len(node.name) for node in nodes if len(node.name) <= NAME_COLUMN], default=0)


def plain_rows(nodes: Sequence[Node], style: Style) -> list[Row]:
    """Fields that hold plain values or arrays of them, one row each, the values in a column."""
    width = name_column(nodes)
    rows = []
    for node in nodes:
        draw = scalars if node.children or is_container(node) else leaf
        rows.append(Row([draw(node, style, name_width=width)], node=node))
    return rows
