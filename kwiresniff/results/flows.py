"""Flows of records: who produces to a topic, who consumes it, and the picture of all of them together."""

from __future__ import annotations

from typing import NamedTuple

from kwiresniff.base.address_names import Name
from kwiresniff.results.topics import TopicFlow


class BrokerBytes(NamedTuple):
    """Bytes of batches that went between a client and one broker, sent again or refused ones included.

    ``node_id`` and ``zone`` are None where they are not known; ``names`` are what the address is called.
    """

    broker: str
    node_id: int | None
    zone: str | None
    size_bytes: int
    names: tuple[Name, ...] = ()


class Flow(NamedTuple):
    """One client at one topic.

    ``role`` is ``producer``, ``consumer``, ``share consumer``, ``replica``, or ``group`` for a group that has committed
    offsets and of which no member was seen to consume: then there is no client. ``records`` is what brokers took from a
    producer, or what came to a consumer; ``refused`` and ``repeated`` as in ``TopicClient``. ``zone`` is the client's,
    ``names`` are what its address is called. ``seconds`` is the time between the first and the last exchange of the
    captures, for rates; ``first_ns`` and ``last_ns`` are those of the topic where there is no client. ``cluster`` is
    None where all brokers are taken for one cluster.
    """

    role: str
    topic: str
    client_id: str | None
    address: str
    software: tuple[str | None, str | None]
    principal: str | None
    groups: tuple[str, ...]
    records: TopicFlow
    refused: TopicFlow
    repeated: TopicFlow
    errors: int
    unanswered: int
    lag: int | None
    zone: str | None
    brokers: tuple[BrokerBytes, ...]
    seconds: float
    first_ns: int
    last_ns: int
    names: tuple[Name, ...] = ()
    cluster: str | None = None

    @property
    def across_zones(self) -> int | None:
        """Bytes between the client and brokers in other zones; None where the zone of either is not known."""
        known = [one for one in self.brokers if one.zone is not None]
        if self.zone is None or not known:
            return None
        return sum(one.size_bytes for one in known if one.zone != self.zone)


class FlowClient(NamedTuple):
    """A client, or several that are shown as one.

    ``kind`` says what they have in common, and ``name`` is that: the ``client id``, a ``pattern`` of client ids with
    ``*`` for what differs, the ``group``, the ``software``, or nothing (``others``). ``count`` clients, each one client
    id at one address; ``addresses``, ``zones`` and ``names`` are theirs, each once, in order.
    """

    kind: str
    name: str | None
    count: int  # type: ignore[assignment]  # not the method of tuples
    addresses: tuple[str, ...]
    zones: tuple[str, ...]
    names: tuple[str, ...] = ()


class FlowTopic(NamedTuple):
    """A topic of a cluster (see ``Topic``); ``name`` is None for several that are shown as one, ``count`` topics."""

    name: str | None
    count: int  # type: ignore[assignment]  # not the method of tuples
    cluster: str | None = None


class FlowEdge(NamedTuple):
    """Flows between a client and a topic of a ``FlowPicture``, by their places in it, summed up.

    ``lag`` is None where that of no flow is known, ``across_zones`` where the zones of none are.
    """

    client: int
    topic: int
    role: str
    groups: tuple[str, ...]
    requests: int
    records: int
    size_bytes: int
    refused: int
    unanswered: int
    errors: int
    lag: int | None
    across_zones: int | None
    seconds: float

    @property
    def state(self) -> str:
        """``bad`` where something went wrong, ``warn`` where consumers lag behind, else ``ok``."""
        if self.errors or self.unanswered or self.refused:
            return "bad"
        return "warn" if self.lag else "ok"


class FlowPicture(NamedTuple):
    """Clients, topics and what flows between them, few enough to be looked at; the busiest topics first.

    ``left_out`` counts the edges for which there was no room: those with the fewest bytes.
    """

    clients: tuple[FlowClient, ...]
    topics: tuple[FlowTopic, ...]
    edges: tuple[FlowEdge, ...]
    left_out: int
