"""Connections that are not Kafka: counted by what they are and whom they went to, and looked at no more."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from kwiresniff.model import Problem
from kwiresniff.session.flows import endpoints

if TYPE_CHECKING:
    from kwiresniff.session.link import Link

#: Flows known not to be Kafka.
MAX_FLOWS = 65_536
#: Different (protocol, server) pairs counted apart.
MAX_SERVERS = 10_000


class Strangers:
    """What was met besides Kafka. The counts of a server are a list: connections, bytes, first packet, its time."""

    __slots__ = ("_flows", "_servers")

    def __init__(self) -> None:
        self._flows: dict[bytes, list[int]] = {}  # flow -> the counts of its server
        self._servers: dict[tuple[str, str], list[int]] = {}

    def knows(self, flow: bytes, length: int) -> bool:
        """Whether a flow is known not to be Kafka; if it is, ``length`` more bytes of it are counted."""
        counts = self._flows.get(flow)
        if counts is None:
            return False
        counts[1] += length
        return True

    def forget(self, *flows: bytes) -> None:
        """A new connection takes the place of one that was not Kafka."""
        for flow in flows:
            self._flows.pop(flow, None)

    def count(self, link: Link, protocol: str) -> list[int]:
        """One more connection that is not Kafka; returns the counts of its server."""
        client, server = endpoints(link.client.flow)
        where = server if link.opened_by_syn else f"{server} or {client}"
        key = (protocol, where) if len(self._servers) < MAX_SERVERS else (protocol, "further servers")
        counts = self._servers.setdefault(key, [0, 0, 0, link.first_ns])
        counts[0] += 1
        counts[1] += link.client.bytes + link.broker.bytes
        return counts

    def remember(self, flow: bytes, counts: list[int]) -> None:
        """What else comes on this flow only adds to the counts."""
        self._flows[flow] = counts
        if (
            len(self._flows) > MAX_FLOWS
        ):  # some at once: the first of a dict is found behind the places of all before it
            for oldest in list(islice(self._flows, 1 + MAX_FLOWS // 16)):
                del self._flows[oldest]

    def problems(self) -> Iterator[Problem]:
        """What there was, one problem for each server; the counts begin anew."""
        for (protocol, server), (connections, size, packet, ns) in self._servers.items():
            what = "something other than Kafka" if protocol == "unknown" else protocol
            many = f"{connections} connections" if connections > 1 else "a connection"
            yield Problem(
                "not_kafka",
                f"{many} to {server} carried {what}, left alone",
                packet=packet or None,
                timestamp_ns=ns or None,
                details={"protocol": protocol, "server": server, "connections": connections, "bytes": size},
            )
        self._servers.clear()
