"""Sinks that have plugins learn schemas, decode records and comment on exchanges."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.identity import clusters as identity
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Body, Connection, Direction, Event, Exchange, ForwardingSink, Message, Sink, TopicNames
from kwiresniff.plugins.misfits import Misfits
from kwiresniff.plugins.running import Plugins

#: The topic in which the Schema Registry keeps schemas (``kafkastore.topic`` by default).
SCHEMAS_TOPIC: Final = "_schemas"
_WITH_SCHEMAS: Final = frozenset({PRODUCE, FETCH})
#: What must be decoded for that, whatever the user has asked for: records, and what tells the cluster that they are of.
LEARNED_FROM: Final = _WITH_SCHEMAS | identity.LEARNED_FROM


class SchemaLearner:
    """Gives learning decoders all records with schemas, and their clusters, whatever a filter wants."""

    def __init__(self, plugins: Plugins, topic_name: TopicNames, clusters: Clusters) -> None:
        self._plugins = plugins
        self._topic_name = topic_name
        self._clusters = clusters

    def learn(self, event: Event) -> None:
        """Takes in an event."""
        if not isinstance(event, Exchange):
            return
        node = cluster_of(self._clusters, event)
        if event.api_key not in _WITH_SCHEMAS:
            return
        self._plugins.enter(node, self._clusters.scope)
        for message in (event.request, event.response):
            if message is not None and message.body is not None:
                for topic, _, batches in record_sets(message.body, self._topic_name):
                    if topic == SCHEMAS_TOPIC and isinstance(batches, list):
                        self._learn(topic, batches)

    def _learn(self, topic: str, batches: list[Body]) -> None:
        for batch in batches:
            for record in batch.get("records") or ():
                key, value = record.get("key"), record.get("value")
                if isinstance(key, bytes | None) and isinstance(value, bytes | None):
                    self._plugins.learn(topic, key, value)


class DecodingSink(ForwardingSink):
    """Has plugins decode records; what does not fit the schema that it names becomes problems of the exchange."""

    def __init__(self, next: Sink, plugins: Plugins, topic_name: TopicNames, clusters: Clusters) -> None:
        super().__init__(next)
        self._plugins = plugins
        self._topic_name = topic_name
        self._clusters = clusters

    def on_exchange(self, exchange: Exchange) -> None:
        if self._plugins.learners:
            self._plugins.enter(cluster_of(self._clusters, exchange), self._clusters.scope)
        misfits = Misfits(exchange, self._topic_name, hides_values=self._plugins.hides_values)
        self._decode("request", exchange.request, misfits)
        self._decode("response", exchange.response, misfits)
        exchange.problems.extend(misfits.problems())
        self.next.on_exchange(exchange)

    def _decode(self, side: Direction, message: Message | None, misfits: Misfits) -> None:
        if message is not None and message.body is not None:
            for topic, holder, batches in record_sets(message.body, self._topic_name):
                misfits.begin(side, topic, holder)
                self._plugins.decode_records(topic, batches, misfits)


class RedactingSink(ForwardingSink):
    """Has plugins say what ``--redact`` leaves of decoded values: stands before that."""

    def __init__(self, next: Sink, plugins: Plugins, topic_name: TopicNames) -> None:
        super().__init__(next)
        self._plugins = plugins
        self._topic_name = topic_name

    def on_exchange(self, exchange: Exchange) -> None:
        for message in (exchange.request, exchange.response):
            if message is not None and message.body is not None:
                for topic, _, batches in record_sets(message.body, self._topic_name):
                    self._plugins.redact_records(topic, batches)
        self.next.on_exchange(exchange)


class AnnotatingSink(ForwardingSink):
    """Has plugins comment on exchanges, and passes on what went wrong with plugins."""

    def __init__(self, next: Sink, plugins: Plugins) -> None:
        super().__init__(next)
        self._plugins = plugins

    def on_exchange(self, exchange: Exchange) -> None:
        self._plugins.annotate(exchange)
        self.next.on_exchange(exchange)
        self.report()

    def on_connection(self, connection: Connection) -> None:
        self.next.on_connection(connection)
        self.report()

    def report(self) -> None:
        """Passes on what went wrong with plugins since."""
        for problem in self._plugins.take_problems():
            self.next.on_problem(problem)
