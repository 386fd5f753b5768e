"""Events in the life of groups."""

from __future__ import annotations

from typing import Any


class GroupEvent:
    """One event in a group, as the traffic shows it.

    ``protocol`` is ``classic``, ``consumer``, ``share`` or ``streams``. ``event`` is ``join``, ``assigned``, ``epoch``,
    ``leave``, ``commit``, ``rejoin`` or ``error``; ``details`` is JSON-ready and depends on it. ``generation`` is the
    generation or the member epoch, None when it is not in the traffic. ``timestamp_ns`` and ``packet`` are those of the
    request; of commits in a row, which are one event, those of the first. ``node`` is that of clusters which it was
    taken from (``identity.clusters``), ``cluster`` the cluster, None where there is but one.
    """

    __slots__ = (
        "broker", "client", "client_id", "cluster", "details", "event", "generation", "group", "instance_id",
        "member_id", "node", "packet", "protocol", "timestamp_ns",
    )  # fmt: skip

    def __init__(
        self,
        group: str,
        protocol: str,
        event: str,
        timestamp_ns: int,
        packet: int,
        client_id: str | None,
        client: str,
        broker: str,
        member_id: str,
        instance_id: str | None,
        generation: int | None,
        details: dict[str, Any],
    ) -> None:
        self.group = group
        self.protocol = protocol
        self.event = event
        self.timestamp_ns = timestamp_ns
        self.packet = packet
        self.client_id = client_id
        self.client = client
        self.broker = broker
        self.member_id = member_id
        self.instance_id = instance_id
        self.generation = generation
        self.details = details
        self.node = 0
        self.cluster: str | None = None
