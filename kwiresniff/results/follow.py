"""The events of ``follow``."""

from __future__ import annotations

from typing import Any, NamedTuple


class FollowEvent(NamedTuple):
    """A message, or what TCP had to do, at one moment of a connection.

    ``from_client`` says who sent the packet. ``event`` is ``request`` or ``response``, or a name of
    ``kwiresniff.packets.tcp_events``; ``details`` depend on it: JSON-ready.
    """

    timestamp_ns: int
    packet: int
    connection: int
    client: str
    broker: str
    from_client: bool
    event: str
    details: dict[str, Any]
