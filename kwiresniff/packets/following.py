"""What TCP had to do on the chosen connections, read from the captures once these are known."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.model import Segment
from kwiresniff.packets.matching import PacketMatcher
from kwiresniff.packets.selection import Selection
from kwiresniff.packets.source import Source, segments_of
from kwiresniff.packets.tcp_events import TcpEvents
from kwiresniff.results.follow import FollowEvent

#: Events of messages, and of TCP, that are told; some 1 KB each.
MAX_EVENTS = 200_000


def tcp_events(source: Source, selection: Selection, most: int = MAX_EVENTS) -> Iterator[FollowEvent]:
    """The events of all connections of a selection, in the order of the captures, ``most`` of them."""
    selection.close()
    matcher = PacketMatcher(selection)
    followers: dict[int, TcpEvents] = {}
    for _, segment in segments_of(source):
        for event in _events(segment, matcher, followers):
            if not most:
                return
            most -= 1
            yield event


def _events(segment: Segment, matcher: PacketMatcher, followers: dict[int, TcpEvents]) -> Iterator[FollowEvent]:
    matcher.wants(segment)
    chosen = matcher.connection_of(segment[2])
    if chosen is None:
        return
    connection = chosen.connection
    follower = followers.get(connection.id)
    if follower is None:
        follower = followers[connection.id] = TcpEvents()
    from_client = segment[2] == chosen.flow
    ends = connection.client, connection.broker
    for name, details in follower.events(segment, from_client):
        yield FollowEvent(segment[1], segment[0], connection.id, *ends, from_client, name, details)
