"""Flows as graphs for Graphviz (``dot``) and Mermaid: clients, topics and arrows between them.

Sources: https://graphviz.org/doc/info/lang.html and https://mermaid.js.org/syntax/flowchart.html. Names from the wire
are cut to ``MAX_LABEL_CHARS`` and escaped first as for a terminal, then for the language.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from kwiresniff.render import format_units
from kwiresniff.render.blocks import cluster_name
from kwiresniff.render.flow_table import client_text, listed, place_text, topic_text
from kwiresniff.results.flows import FlowClient, FlowEdge, FlowPicture

#: Characters of a name in a label, before they are escaped for the language.
MAX_LABEL_CHARS: Final = 48
#: Characters of a Mermaid text without its line ends, styles and last words, all of which have 5,000: it draws no text
#: of more than 50,000 (``maxTextSize``). And those of one line of a label.
MERMAID_CHARS: Final = 45_000
MERMAID_LINE_CHARS: Final = 96
#: An arrow is so wide, in points, for no bytes and for the most; between them by the square root.
THINNEST, THICKEST = 1.0, 8.0

#: Colours of arrows by state: those of the page.
COLORS: Final = {"ok": "#2c7fb8", "warn": "#fe9929", "bad": "#d7301f"}

#: Characters that Mermaid may take for something else inside quotes, the colon among them: with ``style`` before it, a
#: text is taken for a style. They are written as character references.
_MERMAID_MARKS: Final = re.compile(r"[!-~](?<![\w.,/()*+=@-])")


def graphviz(picture: FlowPicture) -> Iterator[str]:
    """The lines of a graph in the language of Graphviz."""
    yield "digraph flows {"
    yield '  graph [rankdir=LR, fontname="sans-serif"];'
    yield '  node [fontname="sans-serif", fontsize=11];'
    yield '  edge [fontname="sans-serif", fontsize=9];'
    for at, client in enumerate(picture.clients):
        yield f"  c{at} [shape=box, label={_quoted(client_lines(client))}];"
    for at in range(len(picture.topics)):
        yield f"  t{at} [shape=cylinder, label={_quoted(topic_lines(picture, at))}];"
    width = width_by_bytes(picture)
    for edge in picture.edges:
        start, end = _ends(edge)
        label, color = _quoted(edge_lines(edge)), COLORS[edge.state]
        yield f'  {start} -> {end} [label={label}, penwidth={width(edge):.1f}, color="{color}"];'
    if picture.left_out:
        yield f"  left_out [shape=plaintext, label={_quoted([left_out_text(picture.left_out)])}];"
    yield "}"


def mermaid(picture: FlowPicture) -> Iterator[str]:
    """The lines of a flowchart in the language of Mermaid."""
    lines = ["flowchart LR"]
    lines += [f"  c{at}[{_mermaid(client_lines(client))}]" for at, client in enumerate(picture.clients)]
    lines += [f"  t{at}[({_mermaid(topic_lines(picture, at))})]" for at in range(len(picture.topics))]
    width = width_by_bytes(picture)
    room = MERMAID_CHARS - sum(map(len, lines))
    by_look: dict[str, list[str]] = {}
    drawn = 0
    for edge in picture.edges:
        start, end = _ends(edge)
        line = f"  {start} -->|{_mermaid(edge_lines(edge))}| {end}"
        room -= len(line)
        if room < 0:
            break
        lines.append(line)
        look = f"stroke:{COLORS[edge.state]},stroke-width:{round(width(edge))}px"
        by_look.setdefault(look, []).append(str(drawn))
        drawn += 1
    lines += [f"  linkStyle {','.join(numbers)} {look}" for look, numbers in by_look.items()]
    left_out = picture.left_out + len(picture.edges) - drawn
    if left_out:
        lines.append(f"  left_out[{_mermaid([left_out_text(left_out)])}]")
    yield from lines


def client_lines(client: FlowClient) -> list[str]:
    """The label of a client: who, where, in which zone."""
    lines = [short(client_text(client)), short(place_text(client))]
    if client.zones:
        lines.append(f"zone {names_text(client.zones)}")
    return [line for line in lines if line]


def topic_lines(picture: FlowPicture, at: int) -> list[str]:
    """The label of a topic: its name, and its cluster where there are several."""
    cluster = picture.topics[at].cluster or ""
    return [short(topic_text(picture, at))] + [short(cluster_name(cluster))] * bool(cluster)


def edge_lines(edge: FlowEdge) -> list[str]:
    """The label of an arrow: group, what went through, what is wrong."""
    lines = []
    if edge.groups and edge.role != "group":
        lines.append(f"group {names_text(edge.groups)}")
    if edge.role == "group":
        lines.append("has committed")
    else:
        lines.append(f"{format_units.count(edge.records, 'record')}, {format_units.size(edge.size_bytes)}")
    if edge.lag is not None:
        lines.append(f"lag {edge.lag:,}")
    if edge.refused:
        lines.append(f"refused {format_units.count(edge.refused, 'record')}")
    if edge.errors:
        lines.append(format_units.count(edge.errors, "error"))
    if edge.unanswered:
        lines.append(f"{edge.unanswered:,} unanswered")
    if edge.across_zones:
        lines.append(f"{format_units.size(edge.across_zones)} across zones")
    return lines


def left_out_text(left_out: int) -> str:
    """The text for the flows that a picture leaves out."""
    return f"{left_out:,} smaller flows are not shown"


def width_by_bytes(picture: FlowPicture) -> Callable[[FlowEdge], float]:
    """How wide the arrow of each edge of a picture is, between ``THINNEST`` and ``THICKEST``."""
    most = max((edge.size_bytes for edge in picture.edges), default=0) or 1
    return lambda edge: THINNEST + (THICKEST - THINNEST) * math.sqrt(edge.size_bytes / most)


def short(text: str, most: int = MAX_LABEL_CHARS) -> str:
    """A text cut to what a label has room for."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def names_text(texts: Sequence[str]) -> str:
    """Several names on one line of a label."""
    return ", ".join(map(short, listed(texts)))


def _ends(edge: FlowEdge) -> tuple[str, str]:
    """Where an arrow begins and ends: it goes as the records do."""
    client, topic = f"c{edge.client}", f"t{edge.topic}"
    return (client, topic) if edge.role == "producer" else (topic, client)


def _quoted(lines: list[str]) -> str:
    """A label in double quotes, in which a backslash and an ampersand begin something."""
    escaped = [line.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"') for line in lines]
    return '"' + "\\n".join(escaped) + '"'


def _mermaid(lines: list[str]) -> str:
    """A label in double quotes, in which only letters, digits and a few marks stand for themselves. Each line is cut to
    ``MERMAID_LINE_CHARS`` as it is written.
    """
    written = []
    for line in lines:
        parts = [_MERMAID_MARKS.sub(lambda found: f"#{ord(found[0])};", char) for char in line]
        while sum(map(len, parts)) > MERMAID_LINE_CHARS:
            parts[-2:] = ["…"]
        written.append("".join(parts))
    return '"' + "<br/>".join(written) + '"'
