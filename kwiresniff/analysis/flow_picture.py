"""A picture of flows that a person can look at: clients that are alike are folded into one, with their number.

Folded are, the largest set first and only until few enough are left: clients with one client id, with client ids that
differ in numbers, of one group, with one software. Topics and clients with the fewest bytes are then taken together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Final, NamedTuple, TypeAlias

from kwiresniff.results.flows import Flow, FlowClient, FlowEdge, FlowPicture, FlowTopic

#: Clients and topics of a picture, each. More boxes fit on no screen.
MAX_BOXES: Final = 40
#: Edges of a picture. Mermaid draws no more than 500 (``maxEdges``).
MAX_EDGES: Final = 250

#: The parts of client ids that differ between instances of one application: UUIDs, the hash and the random end of pods'
#: names in the alphabet of Kubernetes (``SafeEncodeString``, ``rand.String``), hexadecimal text with a digit, numbers.
_VARIES: Final = re.compile(
    r"(?<![0-9A-Za-z])(?:[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?:[bcdf-hj-np-tv-xz2456789]{6,10}-)?(?=[a-z]{0,4}[2-9])[bcdf-hj-np-tv-xz2456789]{5}"
    r"|[bcdf-hj-np-tv-xz2456789]{6,10}-[bcdf-hj-np-tv-xz2456789]{5}"
    r"|(?=[a-fA-F]*[0-9])[0-9a-fA-F]{6,})(?![0-9A-Za-z])"
    r"|[0-9]+"
)
#: Characters of a client id that are compared; the rest is no part of its pattern.
_COMPARED_CHARS: Final = 200

#: A client: its id and its address; or a group of which no member was seen, with its cluster.
_Who: TypeAlias = tuple[str | None, str, tuple[str, ...]]


#: A topic: its cluster, where there are several, and its name.
_Log: TypeAlias = tuple[str | None, str]


class _Box(NamedTuple):
    """Clients that are shown as one, and what they have in common."""

    kind: str
    name: str | None
    members: tuple[_Who, ...]


def picture_of(flows: Sequence[Flow]) -> FlowPicture:
    """The picture of flows, which are in the order of their topics."""
    sizes: dict[_Who, int] = {}
    by_client: dict[_Who, list[Flow]] = {}
    topics: dict[_Log, int] = {}
    for flow in flows:
        who = _who(flow)
        by_client.setdefault(who, []).append(flow)
        sizes[who] = sizes.get(who, 0) + flow.records.size_bytes
        topics[_log(flow)] = topics.get(_log(flow), 0) + flow.records.size_bytes
    boxes = _fold(by_client, sizes)
    place = {who: at for at, box in enumerate(boxes) for who in box.members}
    shown = list(topics) if len(topics) <= MAX_BOXES else sorted(topics, key=topics.__getitem__, reverse=True)
    kept = shown[: MAX_BOXES - 1] if len(shown) > MAX_BOXES else shown
    topic_place = {name: at for at, name in enumerate(kept)}
    named = [FlowTopic(name, 1, cluster) for cluster, name in kept]
    if len(shown) > len(kept):
        named.append(FlowTopic(None, len(shown) - len(kept)))
    summed: dict[tuple[int, int, str], list[Flow]] = {}
    for flow in flows:
        key = topic_place.get(_log(flow), len(kept)), place[_who(flow)], flow.role
        summed.setdefault(key, []).append(flow)
    edges = [_edge(client, topic, role, summed[topic, client, role]) for topic, client, role in _in_order(summed)]
    if len(edges) > MAX_EDGES:
        least = sorted(range(len(edges)), key=lambda at: (edges[at].state != "ok", edges[at].size_bytes))
        dropped = set(least[: len(edges) - MAX_EDGES])
        edges = [edge for at, edge in enumerate(edges) if at not in dropped]
    clients = tuple(_client(box, by_client) for box in boxes)
    return FlowPicture(clients, tuple(named), tuple(edges), len(summed) - len(edges))


def _in_order(keys: dict[tuple[int, int, str], list[Flow]]) -> list[tuple[int, int, str]]:
    """By topic, producers first."""
    roles = ("producer", "consumer", "share consumer", "group", "replica")
    return sorted(keys, key=lambda key: (key[0], roles.index(key[2]), key[1]))


def _log(flow: Flow) -> _Log:
    return flow.cluster, flow.topic


def _who(flow: Flow) -> _Who:
    return flow.client_id, flow.address, (flow.cluster or "", *flow.groups) if flow.role == "group" else ()


def _fold(by_client: dict[_Who, list[Flow]], sizes: dict[_Who, int]) -> list[_Box]:
    """The clients, no more than ``MAX_BOXES``, those with most bytes first."""
    roles = {who: tuple(sorted({flow.role for flow in flows})) for who, flows in by_client.items()}
    groups = {who: tuple(dict.fromkeys(group for flow in by_client[who] for group in flow.groups)) for who in by_client}
    software = {who: next((flow.software[0] for flow in by_client[who] if flow.software[0]), None) for who in by_client}
    levels: list[tuple[str, Callable[[_Who], str | None], Callable[[_Who], Hashable]]] = [
        ("client id", lambda who: who[0], lambda who: groups[who]),
        ("pattern", lambda who: pattern_of(who[0]) if who[0] is not None else None, lambda who: groups[who]),
        ("group", lambda who: ", ".join(groups[who]) or None, lambda who: None),
        ("software", lambda who: software[who], lambda who: roles[who]),
    ]
    boxes = [_Box("group", groups[who][0], (who,)) if who[2] else _Box("client id", who[0], (who,)) for who in sizes]
    for kind, name_of, beside in levels:
        if len(boxes) <= MAX_BOXES:
            break
        sets: dict[Hashable, list[_Box]] = {}
        for box in boxes:
            name = name_of(box.members[0])
            sets.setdefault((name, beside(box.members[0])) if name is not None else id(box), []).append(box)
        over = len(boxes) - MAX_BOXES
        folded: list[_Box] = []
        gone: set[int] = set()
        for found in sorted(sets.values(), key=len, reverse=True):
            if over <= 0 or len(found) == 1:
                break
            over -= len(found) - 1
            gone.update(map(id, found))
            members = tuple(who for box in found for who in box.members)
            folded.append(_Box(kind, name_of(members[0]), members))
        boxes = [box for box in boxes if id(box) not in gone] + folded
    boxes.sort(key=lambda box: -sum(sizes[who] for who in box.members))
    if len(boxes) > MAX_BOXES:
        rest = boxes[MAX_BOXES - 1 :]
        boxes = [*boxes[: MAX_BOXES - 1], _Box("others", None, tuple(who for box in rest for who in box.members))]
    return boxes


def pattern_of(client_id: str) -> str:
    """A client id with ``*`` for what differs between instances of one application."""
    return _VARIES.sub("*", client_id[:_COMPARED_CHARS])


def _client(box: _Box, by_client: dict[_Who, list[Flow]]) -> FlowClient:
    addresses = dict.fromkeys(who[1] for who in box.members if who[1])
    zones = dict.fromkeys(flow.zone for who in box.members for flow in by_client[who] if flow.zone is not None)
    names = dict.fromkeys(one.name for who in box.members for flow in by_client[who] for one in flow.names)
    return FlowClient(box.kind, box.name, len(box.members), tuple(addresses), tuple(zones), tuple(names))


def _edge(client: int, topic: int, role: str, flows: list[Flow]) -> FlowEdge:
    lags = [flow.lag for flow in flows if flow.lag is not None]
    across = [size_bytes for flow in flows if (size_bytes := flow.across_zones) is not None]
    return FlowEdge(
        client=client,
        topic=topic,
        role=role,
        groups=tuple(dict.fromkeys(group for flow in flows for group in flow.groups)),
        requests=sum(flow.records.requests for flow in flows),
        records=sum(flow.records.records for flow in flows),
        size_bytes=sum(flow.records.size_bytes for flow in flows),
        refused=sum(flow.refused.records for flow in flows),
        unanswered=sum(flow.unanswered for flow in flows),
        errors=sum(flow.errors for flow in flows),
        lag=sum(lags) if lags else None,
        across_zones=sum(across) if across else None,
        seconds=flows[0].seconds,
    )
