"""The cluster that an exchange belongs to, with what Produce and Fetch answers say of logs as evidence."""

from __future__ import annotations

from kwiresniff.analysis.topic_parts import message_parts, refused_parts
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.flows import host_of
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Exchange


def cluster_of(clusters: Clusters, exchange: Exchange) -> int:
    """The node of ``clusters`` that an exchange is counted under; analyses of one run share them."""
    return learn_cluster(clusters, exchange) if clusters.is_new(exchange) else clusters.of(exchange)


def learn_cluster(clusters: Clusters, exchange: Exchange) -> int:
    """Has ``clusters`` learn from an exchange, and returns the node that it is counted under."""
    node = clusters.learn(exchange)
    if clusters.is_watching and exchange.response is not None:
        if exchange.api_key == PRODUCE:
            _appended(clusters, exchange, node)
        elif exchange.api_key == FETCH:
            for topic in message_parts(exchange.response):
                for part in topic.partitions:
                    if part.high_watermark >= 0:
                        ns = exchange.response.last_ns
                        clusters.logs.served(node, topic.name, part.index, part.high_watermark, ns)
    return node


def _appended(clusters: Clusters, exchange: Exchange, node: int) -> None:
    answered = message_parts(exchange.response)
    refused = refused_parts(exchange, answered) if exchange.errors else {}
    host = host_of(exchange.connection.client)
    sent = {
        (topic.name, part.index): part
        for topic in message_parts(exchange.request)
        for part in topic.partitions
        if (topic.name, part.index) not in refused
    }
    for topic in answered:
        for part in topic.partitions:
            written = sent.get((topic.name, part.index))
            if part.offset >= 0 and written is not None and written.records:
                batch = host, written.producer
                clusters.logs.appended(node, topic.name, part.index, part.offset, written.records, batch)
