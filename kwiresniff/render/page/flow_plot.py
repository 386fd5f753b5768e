"""The picture of flows in a report: producers, topics and consumers from left to right, as SVG inside the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape as quoted
from typing import Final

from kwiresniff.render.flow_graphs import (
    COLORS,
    client_lines,
    edge_lines,
    left_out_text,
    names_text,
    short,
    topic_lines,
    width_by_bytes,
)
from kwiresniff.results.flows import FlowEdge, FlowPicture

#: Sizes in the units of the picture, which the page scales to its width.
_WIDTH: Final = 1_000
_BOX: Final = 230
_BOX_CHARS: Final = 36
_LINE: Final = 13
_PAD: Final = 6
_GAP: Final = 12
_COLUMNS: Final = (0, (_WIDTH - _BOX) // 2, _WIDTH - _BOX)
_STYLE: Final = 'font-family="sans-serif" font-size="11" fill="#1b1b1b"'


class _Column:
    """Boxes below each other; ``middle`` has the height of each one's middle by its key."""

    def __init__(self, left: int, boxes: dict[int, list[str]]) -> None:
        self.left = left
        self.boxes = boxes
        self.height = sum(_height(lines) + _GAP for lines in boxes.values())
        self.middle: dict[int, float] = {}

    def place(self, height: int) -> None:
        """Places the boxes in the middle of the picture's height."""
        top = (height - self.height + _GAP) / 2
        for key, lines in self.boxes.items():
            self.middle[key] = top + _height(lines) / 2
            top += _height(lines) + _GAP

    def svg(self, fill: str) -> Iterator[str]:
        for key, lines in self.boxes.items():
            top = self.middle[key] - _height(lines) / 2
            yield (
                f'<rect x="{self.left}" y="{top:.0f}" width="{_BOX}" height="{_height(lines)}" rx="4" fill="{fill}"'
                ' stroke="#888888"/>'
            )
            for number, line in enumerate(lines):
                y = top + _PAD + _LINE * (number + 0.8)
                yield f'<text x="{self.left + 8}" y="{y:.0f}" {_STYLE}>{quoted(short(line, _BOX_CHARS))}</text>'


def flow_plot(picture: FlowPicture) -> str:
    """The picture; an arrow shows its label when the pointer rests on it."""
    producers = [edge for edge in picture.edges if edge.role == "producer"]
    consumers = [edge for edge in picture.edges if edge.role != "producer"]
    columns = (
        _Column(_COLUMNS[0], _clients(picture, producers)),
        _Column(_COLUMNS[1], {at: topic_lines(picture, at) for at in range(len(picture.topics))}),
        _Column(_COLUMNS[2], _clients(picture, consumers)),
    )
    height = max(column.height for column in columns) + _GAP
    for column in columns:
        column.place(height)
    left, topics, right = columns
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height + _LINE}" xmlns="http://www.w3.org/2000/svg" role="img"'
        ' aria-label="Who produces to which topic, and who consumes it">'
    ]
    width = width_by_bytes(picture)
    for edge in picture.edges:
        if edge.role == "producer":
            ends = (left.left + _BOX, left.middle[edge.client], topics.left, topics.middle[edge.topic])
        else:
            ends = (topics.left + _BOX, topics.middle[edge.topic], right.left, right.middle[edge.client])
        told = ", ".join([*client_lines(picture.clients[edge.client]), *edge_lines(edge)])
        parts.append(_arrow(ends, COLORS[edge.state], width(edge), told))
    for column, fill in zip(columns, ("#ffffff", "#eef4f8", "#ffffff"), strict=True):
        parts += column.svg(fill)
    if picture.left_out:
        parts.append(f'<text x="8" y="{height + _PAD}" {_STYLE}>{quoted(left_out_text(picture.left_out))}</text>')
    return "".join([*parts, "</svg>"])


def _clients(picture: FlowPicture, edges: Sequence[FlowEdge]) -> dict[int, list[str]]:
    """The boxes of the clients at one side, in the order of their topics: who, in which groups, how far behind."""
    of_client: dict[int, list[FlowEdge]] = {}
    for edge in edges:
        of_client.setdefault(edge.client, []).append(edge)
    boxes = {}
    for client, own in of_client.items():
        lines = client_lines(picture.clients[client])
        groups = tuple(dict.fromkeys(group for edge in own if edge.role != "group" for group in edge.groups))
        lag = sum(edge.lag or 0 for edge in own)
        boxes[client] = lines + [f"group {names_text(groups)}"] * bool(groups) + [f"lag {lag:,}"] * bool(lag)
    return boxes


def _height(lines: Sequence[str]) -> int:
    return len(lines) * _LINE + 2 * _PAD


def _arrow(ends: tuple[float, float, float, float], color: str, width: float, told: str) -> str:
    """A curve that leaves and arrives level, with a point at its end."""
    x0, y0, x1, y1 = ends
    tip = 4 + width
    middle = (x0 + x1) / 2
    return (
        f'<g><title>{quoted(told)}</title><path d="M{x0:.0f} {y0:.0f}C{middle:.0f} {y0:.0f} {middle:.0f} {y1:.0f}'
        f' {x1 - tip:.0f} {y1:.0f}" fill="none" stroke="{color}" stroke-width="{width:.1f}" stroke-opacity="0.6"/>'
        f'<path d="M{x1:.0f} {y1:.0f}l{-tip:.0f} {-tip * 0.7:.1f}v{tip * 1.4:.1f}z" fill="{color}"/></g>'
    )
