"""Flows as a table: a line for each client, or several that are alike, and topic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TextIO

from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.one_line import NOTHING, Column, write_lines
from kwiresniff.results.flows import FlowClient, FlowEdge, FlowPicture

#: Of several groups or zones, the first so many are named.
MAX_LISTED: Final = 3

_ROLES: Final = {
    "producer": "produces",
    "consumer": "consumes",
    "share consumer": "shares",
    "group": "committed",
    "replica": "replicates",
}


def write_flows(out: TextIO, width: int | None, color: bool, picture: FlowPicture) -> None:
    """The table of a picture, and below it what it does not show."""
    write_lines(out, width, color, picture.edges, _columns(picture))


def client_text(client: FlowClient) -> str:
    """The text for a client, or for several that are shown as one."""
    if client.kind == "others":
        return f"{client.count:,} others"
    if client.kind == "client id":
        return escape(client.name or "") or NO_CLIENT_ID
    return f"{'' if client.kind == 'pattern' else client.kind + ' '}{escape(client.name or '')}"


def place_text(client: FlowClient) -> str:
    """The address of a client, or how many clients there are at how many addresses."""
    if client.count == 1 and len(client.addresses) < 2:
        return " ".join(map(escape, (*client.addresses, *client.names[:1])))
    clients = format_units.count(client.count, "client")
    if len(client.addresses) == 1:
        return f"{clients} at {escape(client.addresses[0])}"
    return f"{clients} at {len(client.addresses):,} addresses" if client.addresses else clients


def topic_text(picture: FlowPicture, at: int) -> str:
    """The text for a topic, or for several."""
    topic = picture.topics[at]
    return escape(topic.name) if topic.name is not None else f"{topic.count:,} other topics"


def listed(texts: Sequence[str]) -> list[str]:
    """The first of several names, and how many more there are."""
    more = len(texts) - MAX_LISTED
    return [*map(escape, texts[:MAX_LISTED]), *([f"{more:,} more"] if more > 0 else [])]


def _columns(picture: FlowPicture) -> Callable[[FlowEdge], list[Column]]:
    has_zones = any(client.zones for client in picture.clients)
    has_clusters = any(topic.cluster is not None for topic in picture.topics)

    def columns(edge: FlowEdge) -> list[Column]:
        client, topic = picture.clients[edge.client], picture.topics[edge.topic]
        across = edge.across_zones
        failed = edge.errors + edge.unanswered
        found = [
            Column("topic", True, "ident", topic_text(picture, edge.topic)),
            *([Column("cluster", True, "dim", escape(topic.cluster or "") or NOTHING)] if has_clusters else []),
            Column("role", True, "value", _ROLES[edge.role]),
            Column("client", True, "client", client_text(client)),
            Column("address", True, "value", place_text(client) or NOTHING),
            Column("group", True, "value", ", ".join(listed(edge.groups)) or NOTHING),
            Column("records", False, "value", f"{edge.records:,}"),
            Column("size", False, "value", format_units.size(edge.size_bytes)),
            Column("records/s", False, "dim", f"{edge.records / edge.seconds:,.1f}" if edge.seconds >= 1 else NOTHING),
            Column("refused", False, "bad" if edge.refused else "dim", f"{edge.refused:,}"),
            Column("errors", False, "bad" if failed else "dim", f"{failed:,}"),
            Column("lag", False, "warn" if edge.lag else "value", NOTHING if edge.lag is None else f"{edge.lag:,}"),
        ]
        if has_zones:
            found += [
                Column("zone", True, "value", ", ".join(listed(client.zones)) or NOTHING),
                Column("across zones", False, "value", NOTHING if across is None else format_units.size(across)),
            ]
        return found

    return columns
