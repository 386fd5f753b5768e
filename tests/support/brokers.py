"""Exchanges with brokers of two clusters: A and B are of one, C is of another."""

from __future__ import annotations

from typing import Any

from kwiresniff.model import Exchange
from tests.support.exchanges import connection, exchange

A, B, C = "10.1.0.2:9092", "10.1.0.3:9092", "10.2.0.2:9092"


def on(broker: str, *, client: str = "10.0.0.5:50000", id: int = 0, **more: Any) -> Exchange:
    """An exchange with a broker, on a connection of its own."""
    number = id or abs(hash((broker, client))) % 1_000_000
    return exchange(on=connection(number, client, broker), **more)


def metadata(broker: str, cluster_id: str | None, *named: str, **more: Any) -> Exchange:
    brokers = [
        {"node_id": number, "host": one.rpartition(":")[0], "port": int(one.rpartition(":")[2])}
        for number, one in enumerate(named)
    ]
    answer = {"brokers": brokers, "cluster_id": cluster_id, "topics": []}
    return on(broker, api="Metadata", api_key=3, request={"topics": None}, response=answer, **more)


def fetch(broker: str, **more: Any) -> Exchange:
    return on(broker, request={"replica_id": -1, "topics": []}, response={"responses": []}, **more)
