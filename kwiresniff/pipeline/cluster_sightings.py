"""The cluster of each broker over time: a unit may learn an id late, or never, that another unit sees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, final

from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Exchange


class Sighting(NamedTuple):
    """A broker, by its address, as one of a cluster, by its key and its id (empty where it is not known). ``last_ns``
    is -1 for a broker that others name and nobody has spoken to.
    """

    cluster: str
    cluster_id: str
    broker: str
    first_ns: int
    last_ns: int


@final
class ClusterSightings:
    """Notes when brokers were spoken to as those of their clusters; bounded as the addresses of ``clusters`` are."""

    def __init__(self, clusters: Clusters) -> None:
        self._clusters = clusters
        self._times: dict[tuple[str, int], list[int]] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""
        node = cluster_of(self._clusters, exchange)
        message = exchange.request or exchange.response
        if not node or message is None:
            return
        times = self._times.get((exchange.connection.broker, node))
        if times is None:
            self._times[exchange.connection.broker, node] = [message.first_ns, message.last_ns]
            return
        times[0] = min(times[0], message.first_ns)
        times[1] = max(times[1], message.last_ns)

    @property
    def only(self) -> str | None:
        """The key of the cluster that all brokers are taken for; None where there are several, or none."""
        keys = self._clusters.keys()
        return next(iter(keys.values())) if len(keys) == 1 else None

    def all(self) -> Iterator[Sighting]:
        """One for each broker and cluster that it was."""
        clusters, keys = self._clusters, self._clusters.keys()
        spans: dict[tuple[str, int], list[int]] = {}
        for address in clusters.addresses():
            spans[address, clusters.node_at(address)] = [0, -1]
        for (broker, node), (first_ns, last_ns) in self._times.items():
            span = spans.setdefault((broker, clusters.root(node)), [0, -1])
            span[:] = [first_ns, last_ns] if span[1] < 0 else [min(span[0], first_ns), max(span[1], last_ns)]
        ids = {clusters.scope(root): cluster_id for _, root in spans if (cluster_id := clusters.id_of(root))}
        for (broker, root), (first_ns, last_ns) in spans.items():
            scope = clusters.scope(root)
            if root:
                yield Sighting(keys[scope], ids.get(scope, ""), broker, first_ns, last_ns)
