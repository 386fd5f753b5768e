"""One field of a message as spans of text: its name, its value, its meaning and what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kwiresniff.base.tree_sizes import SCALARS_SHOWN
from kwiresniff.model import Node
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape, mixed, text_of
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.style import Style
from kwiresniff.render.theme import Span

#: A value that is only so much longer is shown whole: saying what is missing would take as much room.
SLACK = 24

#: Texts that would read as something else than text.
_AMBIGUOUS: Final = frozenset(["", "null", "true", "false", "empty"])


def is_error(node: Node) -> bool:
    """Whether the node is an error code that says something went wrong."""
    return node.name.endswith("error_code") and isinstance(node.value, int) and node.value != 0


def text_value(text: str, style: Style, *, quote: bool = True) -> str:
    """A string: escaped, cut with the number of characters left out, in quotes where it could be misread."""
    rest = ""
    limit = style.value_limit
    if limit is not None and len(text) > limit + SLACK:
        rest = more(len(text) - limit, "character", style)
        text = text[:limit]
    if _needs_quotes(text, quote):
        return f'"{escape(text)}"{rest}'
    return escape(text) + rest


def more(count: int, unit: str, style: Style) -> str:
    """The mark for the part of a text that is not shown."""
    return f"{style.glyphs.ellipsis} {format_units.count(count, f'more {unit}')}"


def _needs_quotes(text: str, quote: bool) -> bool:
    # What has quotes inside (JSON) is recognised by those; more around it would only confuse.
    return text in _AMBIGUOUS or (quote and " " in text and '"' not in text)


def bytes_value(data: bytes, style: Style, *, quote: bool = True) -> str:
    """Bytes: as text when they are text, else in hex; cut with the number of bytes left out."""
    limit = style.value_limit
    if limit is None or len(data) <= limit + SLACK:
        limit = len(data)
    shown = data[:limit]
    text = text_of(shown)
    if text is None and limit < len(data):
        # The cut may have gone through a character of up to four bytes.
        for back in (1, 2, 3):
            if (text := text_of(shown[:-back])) is not None:
                shown = shown[:-back]
                break
    if text is None:
        # An escape takes four characters, a byte in hex two.
        shown = data if limit == len(data) else data[: limit // 2]
        text = mixed(shown) or f"0x{shown.hex()}"
    elif _needs_quotes(text, quote):
        text = f'"{escape(text)}"'
    else:
        text = escape(text)
    if len(shown) < len(data):
        text += more(len(data) - len(shown), "byte", style)
    return text


def scalar(value: Any, style: Style, *, quote: bool = True) -> Span:
    """A plain value; null, 0 and false are dim, so that the rest stands out."""
    if value is None:
        return "dim", "null"
    if value is True:
        return "value", "true"
    if value is False:
        return "dim", "false"
    if isinstance(value, str):
        return "value", text_value(value, style, quote=quote)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "value", bytes_value(bytes(value), style, quote=quote)
    if isinstance(value, dict):
        # What stands in the place of a value that is not shown: withheld, redacted, not looked into.
        words = [name if item is True else f"{name} {item}" for name, item in value.items()]
        return "dim", f"({text_value(', '.join(words), style, quote=False)})"
    return ("dim" if value == 0 else "value"), str(value)


def meaning_spans(node: Node, kind: str = "meaning") -> Chunk:
    """The spans behind a value: its meaning, and its problem."""
    # What stands in the place of a value says itself why.
    if node.meaning and not isinstance(node.value, dict):
        return [(kind, f" ({escape(node.meaning)})"), *problem_spans(node)]
    return problem_spans(node)


def problem_spans(node: Node) -> Chunk:
    """The problem of a node, or nothing."""
    return [("", " "), ("warn", f"! {escape(node.problem)}")] if node.problem else []


def leaf(node: Node, style: Style, *, name_width: int = 0, ident: bool = False) -> Chunk:
    """``name value (meaning)`` of a field without children."""
    if is_error(node):
        return [error_span(escape(node.name), node.value, node.meaning, name_width), *problem_spans(node)]
    kind, text = scalar(node.value, style)
    meaning_kind = "dim" if kind == "dim" else "meaning"
    if ident:
        # A topic id is recognised by the topic's name.
        kind, meaning_kind = ("value", "ident") if node.type == "UUID" and node.meaning else ("ident", "meaning")
    name = label(node, style) if style.verbosity else escape(node.name)
    chunk = [("name", f"{name.ljust(name_width)} "), (kind, text)]
    if node.meaning or node.problem:
        chunk += meaning_spans(node, meaning_kind)
    return [*chunk, ("dim", f"  {escape(node.hint)}")] if node.hint and style.verbosity else chunk


def error_span(name: str, value: int, meaning: str, name_width: int) -> Span:
    """An error code that says what went wrong."""
    return "bad", f"{name.ljust(name_width)} {value} {escape(meaning) or '?'}"


def is_absent(node: Node) -> bool:
    """Whether the node is a tagged field that was not on the wire and has its default value."""
    return node.tag is not None and node.length == 0


def is_container(node: Node) -> bool:
    """Whether the node can have children, even when it has none."""
    return node.value is None and node.type.endswith(("STRUCT", "ARRAY", "RECORDS", "TAGGED_FIELDS"))


def is_plain(node: Node) -> bool:
    """Whether the node fits in the middle of a row: a value, or an array of values."""
    if not node.children:
        return True
    return node.type.endswith("ARRAY") and not any(child.children or is_container(child) for child in node.children)


def is_wrong(node: Node) -> bool:
    """Whether there is an error code or a problem anywhere in the node."""
    stack = [node]
    while stack:
        node = stack.pop()
        if node.problem or is_error(node):
            return True
        stack += node.children
    return False


def selection(nodes: Sequence[Node], limit: int, style: Style) -> tuple[list[int], bool]:
    """Which of many nodes to show, and whether all the others are without errors and problems.

    All of them with ``-v``; else the first ``limit`` and after those what is wrong, up to as many again.
    """
    if style.verbosity or len(nodes) <= limit:
        return list(range(len(nodes))), True
    wrong = [index for index in range(limit, len(nodes)) if is_wrong(nodes[index])]
    return [*range(limit), *wrong[:limit]], len(wrong) <= limit


def label(node: Node, style: Style) -> str:
    """The field's name; with ``-v`` the tag number beside it."""
    name = escape(node.name)
    return f"{name} (tag {node.tag})" if node.tag is not None and style.verbosity else name


def scalars(node: Node, style: Style, *, name_width: int = 0) -> Chunk:
    """``name 1, 2, 3`` of an array of plain values; also of an empty or null container."""
    chunk: Chunk = [("name", f"{label(node, style).ljust(name_width)} ")]
    children = node.children
    shown = children if style.verbosity else children[:SCALARS_SHOWN]
    if node.null:
        chunk.append(("dim", "null"))
    elif not children:
        chunk.append(("dim", "empty"))
    for index, child in enumerate(shown):
        if index:
            chunk.append(("", ", "))
        chunk.append(scalar(child.value, style))
        chunk += meaning_spans(child)
    if len(shown) < len(children):
        chunk.append(hidden_parts(len(children) - len(shown), style))
    return chunk + meaning_spans(node)


def hidden_parts(count: int, style: Style) -> Span:
    """The mark for values that are not shown."""
    return "dim", f", {style.glyphs.ellipsis} {count:,} more"
