"""Rows of a tree from the nodes of an annotated message.

What is dense and what gets a row of its own is decided here; how a row is drawn is not. At verbosity 0 an element of
an array of structures is one row that holds all its plain fields, labelled by its path (``partitions[2]``), first what
identifies it and what is wrong with it; only what has children of its own goes below. From ``-v`` on every field has
its own row, in wire order, because it has its own offset.
"""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.base.tree_sizes import ELEMENTS_SHOWN
from kwiresniff.model import Node
from kwiresniff.render import format_units
from kwiresniff.render.batch_rows import record_set_rows
from kwiresniff.render.escape import escape
from kwiresniff.render.labels import IDENTIFYING
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.style import Style
from kwiresniff.render.tree_row import Row, name_column
from kwiresniff.render.values import (
    is_absent,
    is_container,
    is_error,
    is_plain,
    label,
    leaf,
    problem_spans,
    scalars,
    selection,
)
from kwiresniff.render.version_ranges import is_range_array, range_row

#: Structures within structures. Kafka's deepest message has nine levels, a record in it four more.
MAX_DEPTH = 40


def struct_rows(nodes: Sequence[Node], style: Style, depth: int = 0) -> list[Row]:
    """The fields of a structure, one row each, the values in a column; absent tagged fields only with ``-v``."""
    nodes = [node for node in nodes if style.verbosity or not is_absent(node)]
    width = name_column([node for node in nodes if is_plain(node)])
    rows: list[Row] = []
    for node in nodes:
        rows += field_rows(node, style, depth, width)
    return rows


def field_rows(node: Node, style: Style, depth: int, name_width: int = 0) -> list[Row]:
    """One field as one row, or an array of structures as one row per element."""
    if not node.children:
        if is_container(node):
            return [Row([scalars(node, style, name_width=name_width)], node=node)]
        return [Row([leaf(node, style, name_width=name_width)], node=node)]
    if depth >= MAX_DEPTH:
        return [Row([[("name", node.name), ("dim", f" {style.glyphs.ellipsis} nested too deeply to show")]], node=node)]
    if node.type.endswith("RECORDS"):
        return record_set_rows(node, style, _opened_rows)
    if node.type.endswith("ARRAY"):
        if is_plain(node):
            return [Row([scalars(node, style, name_width=name_width)], node=node)]
        return _array_rows(node, style, depth)
    return [_struct_row(node, label(node, style), style, depth)]


def _opened_rows(node: Node, style: Style) -> list[Row]:
    """The rows of a decoded key or value of a record; depth counts from there."""
    return field_rows(node, style, 0)


def _array_rows(array: Node, style: Style, depth: int) -> list[Row]:
    name = label(array, style)
    if not style.verbosity and is_range_array(array):
        return [range_row(array, name, style)]
    shown, calm = selection(array.children, ELEMENTS_SHOWN, style)
    rows = [_struct_row(array.children[index], f"{name}[{index}]", style, depth) for index in shown]
    if hidden := len(array.children) - len(shown):
        rows.append(Row([hidden_elements(name, hidden, len(array.children), style, calm=calm)]))
    if not style.verbosity:
        return rows
    count = format_units.count(len(array.children), "element")
    return [Row([[("name", f"{name} "), ("dim", count), *problem_spans(array)]], rows, array)]


def hidden_elements(name: str, hidden: int, count: int, style: Style, *, calm: bool) -> Chunk:
    """The row that stands for elements of an array that are not shown; ``calm`` says that nothing
    is wrong with them.
    """
    rest = f"{style.glyphs.ellipsis} {hidden:,} more of {count:,}"
    return [("name", f"{name} "), ("dim", f"{rest}, all without errors" if calm else rest)]


def _struct_row(element: Node, name: str, style: Style, depth: int) -> Row:
    """A structure: at verbosity 0 its plain fields on its own row."""
    head: Chunk = [("key", name)]
    if element.null:
        head.append(("dim", " null"))
    elif not element.children:
        # An element that is a plain value after all, or an empty structure.
        return Row([head + leaf(element, style)] if element.value is not None else [head], node=element)
    if element.meaning:
        head.append(("meaning", f" ({escape(element.meaning)})"))
    head += problem_spans(element)
    if style.verbosity:
        ident = [leaf(child, style, ident=True) for child in element.children if _identifies(child)][:2]
        return Row([head, *ident], struct_rows(element.children, style, depth + 1), element)
    children: list[Row] = []
    names: list[Chunk] = []
    errors: list[Chunk] = []
    rest: list[Chunk] = []
    for child in element.children:
        if is_absent(child):
            continue
        if not is_plain(child):
            children += field_rows(child, style, depth + 1)
        elif is_container(child):
            rest.append(scalars(child, style))
        elif _identifies(child):
            names.append(leaf(child, style, ident=True))
        else:
            (errors if is_error(child) else rest).append(leaf(child, style))
    return Row([head, *names, *errors, *rest], children, element)


def _identifies(node: Node) -> bool:
    return node.name in IDENTIFYING and not node.children and node.value not in (None, "", ZERO_UUID)
