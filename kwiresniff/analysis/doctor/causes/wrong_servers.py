"""Clients that dial the wrong port, of a server that is no broker or of a broker that is not meant."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import ERROR, Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.results.findings import scope_of

#: Protocols by another name than ``session.signatures`` gives them.
_NAMES: Final = {"http": "HTTP", "text": "lines of text", "zookeeper": "ZooKeeper's protocol"}
_SENDER: Final = (
    "Give it the address and port of the service that it is meant for; the broker closes each of these connections and "
    "logs a receive of an invalid size."
)
_SENDERS: Final = {
    "http": "Find the process on that host: a scraper of metrics, a health check or a browser that is meant for "
    "another port (a JMX exporter, REST proxy, Connect, Schema Registry). The broker closes each of these connections "
    "and logs a receive of an invalid size.",
    "zookeeper": "Give it the address of ZooKeeper (port 2181), or retire the check where the cluster runs on KRaft.",
}


class NotKafkaServer(Cause):
    """`not_kafka_answer` (error): a server that is asked for Kafka answers with another protocol: a wrong port, a web
    server.
    """

    codes = ("not_kafka_answer",)
    explains = ("foreign_answer",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        server, protocol, hosts = one.name("broker"), one.name("protocol"), one.noted("hosts")
        symptoms = ("unanswered", "closed_by_broker", "connection_churn")
        return self.told(
            one,
            f"is asked for Kafka by {', '.join(hosts)} and answers with {protocol}, {times(one.count)}: it is no "
            "broker",
            "Give the client the address and port of a broker (bootstrap.servers); see what listens there, or what "
            "stands in between.",
            severity="error",
            numbers={"server": server, "protocol": protocol},
            scope=scope_of("host", hosts),
            explains=dict.fromkeys(symptoms, scope_of("broker", [server])),
        )


class NotKafkaClient(Cause):
    """`not_kafka_client` (warning): a broker that answers Kafka in the capture is sent another protocol: HTTP by a
    scraper of metrics or a health check, Redis, ZooKeeper's four-letter words; with the hosts that do so. What is not
    recognised has no finding: it may be Kafka of which the capture has too little.
    """

    codes = ("not_kafka_client",)
    explains = ("foreign_request",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        server, protocol, hosts = one.name("broker"), one.name("protocol"), one.noted("hosts")
        return self.told(
            one,
            f"sends {_NAMES.get(protocol, protocol)} to {self.context.cluster.broker_text(server)}, a broker, which "
            f"takes none, {times(one.count)}",
            _SENDERS.get(protocol, _SENDER),
            subject=listed(hosts),
            severity="warning",
            rank=ERROR,
            numbers={"server": server, "protocol": protocol, "hosts": hosts},
            scope=scope_of("host", hosts),
        )


class ControllerDialled(Cause):
    """`controller_dialled` (error): a client dials a KRaft controller instead of a broker: neither Metadata nor Produce
    is offered there, and it goes no further than ApiVersions.
    """

    codes = ("controller_dialled",)
    explains = ("controller_dialled",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        server = one.name("broker")
        return self.told(
            one,
            f"dials {server}, the listener of a controller: that offers no Metadata and no Produce, and the client "
            f"goes no further than ApiVersions, {times(one.count)}",
            "Let bootstrap.servers name brokers, by a port of listeners that is not in controller.listener.names. "
            "Admin clients that mean the controllers name them by bootstrap.controllers.",
            severity="error",
            numbers={"address": server},
            explains={"connection_churn": scope_of("client", one.named("client"))},
        )
