"""Events to rows: one function a table, values in the order of ``kwiresniff.export.table_columns``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.export.clients import audit_json, client_json
from kwiresniff.export.encode import json_text
from kwiresniff.export.groups import group_event_json
from kwiresniff.export.json_objects import connection_json, problem_json
from kwiresniff.export.producers import producer_json
from kwiresniff.export.topics import topic_json
from kwiresniff.model import (
    Body,
    Connection,
    Event,
    Exchange,
    Message,
    Problem,
    Segment,
    TopicNames,
    file_index,
    packet_number,
)
from kwiresniff.pipeline.cluster_sightings import Sighting
from kwiresniff.pipeline.entities import Entities
from kwiresniff.pipeline.exchange_row import exchange_row
from kwiresniff.pipeline.moments import day_of, micros_of, nanos_of
from kwiresniff.results.clients import AuditRow, Client
from kwiresniff.results.groups import GroupEvent
from kwiresniff.results.producers import Producer
from kwiresniff.results.topics import Topic, TopicClient
from kwiresniff.session import endpoints

Row = tuple[Any, ...]

#: Where the partition index stands beside a record set, in this order.
_PARTITION_FIELDS = ("partition_index", "index", "partition")
#: The columns of ``records`` from the batch of a record.
_BATCH_FIELDS = ("compression", "producer_id", "is_transactional", "is_control")


class Rows:
    """Rows of one source. ``files`` are its files in reading order, ``topic_name`` what is known of topic ids.

    ``shard`` and ``shards`` keep connection numbers apart that were given in different tasks.
    """

    def __init__(
        self, source: str, files: Sequence[str], topic_name: TopicNames, shard: int = 0, shards: int = 1
    ) -> None:
        self._source = source
        self._files = files
        self.topic_name = topic_name
        self._shard = shard
        self._shards = shards

    def exchange(self, exchange: Exchange, entities: Entities) -> Row:
        """The row of ``exchanges``; ``entities`` are the names in the exchange."""
        return exchange_row(exchange, self._source, self._number(exchange.connection.id), entities, self._files)

    def connection(self, connection: Connection) -> Row:
        """The row of ``connections``."""
        details = self._numbered(connection_json(connection))
        return (
            *self._place(connection),
            connection.protocol,
            micros_of(connection.first_ns),
            micros_of(connection.last_ns),
            nanos_of(connection.first_ns),
            nanos_of(connection.last_ns),
            *connection.bytes,
            sum(connection.exchanges.values()),
            self._json(details),
        )

    def problem(self, problem: Problem) -> Row:
        """The row of ``problems`` for what belongs to no exchange."""
        details = self._numbered(problem_json(problem, self._files))
        file = details.get("file")
        if file is None and problem.packet is not None:
            file = self._file(problem.packet)
        return (
            self._source,
            file,
            None if problem.packet is None else packet_number(problem.packet),
            None if problem.timestamp_ns is None else micros_of(problem.timestamp_ns),
            problem.code,
            problem.message,
            details.get("connection_id"),
            self._json(details),
        )

    def records(self, exchange: Exchange) -> Iterator[Row]:
        """The rows of ``records``: whatever either body carries, batches that could not be read left out."""
        for message in (exchange.request, exchange.response):
            if message is None or not _may_have_records(message) or message.body is None:
                continue
            head = (
                day_of(message.first_ns),
                exchange.api or None,
                micros_of(message.first_ns),
                *self._place(exchange.connection),
                exchange.client_id,
                exchange.correlation_id,
            )
            for topic, holder, batches in record_sets(message.body, self.topic_name):
                partition = next((holder[name] for name in _PARTITION_FIELDS if name in holder), None)
                for batch in batches if isinstance(batches, list) else ():
                    of_batch = [batch.get(name) for name in _BATCH_FIELDS]
                    for record in batch.get("records") or ():
                        decoded = [self._decoded(record, part) for part in ("key", "value")]
                        yield (*head, topic, partition, *self._record(record), *of_batch, *decoded)

    def cluster(self, sighting: Sighting) -> Row:
        """The row of ``clusters``."""
        cluster, cluster_id, broker, first_ns, last_ns = sighting
        times = (None, None) if last_ns < 0 else (micros_of(first_ns), micros_of(last_ns))
        return (self._source, cluster, cluster_id or None, broker, *times)

    def client(self, client: Client, cluster: str | None) -> Row:
        """The row of ``clients``, of a client of a ``cluster``."""
        return (
            *self._client(client),
            cluster,
            micros_of(client.first_ns),
            micros_of(client.last_ns),
            client.connections,
            client.exchanges,
            client.errors,
            client.unanswered,
            client.request_bytes,
            client.response_bytes,
            [(use.api or None, use.version, use.count, use.errors) for use in client.uses],
            list(client.topics),
            list(client.groups),
            list(client.transactional_ids),
            self._json(client_json(client, self._files)),
        )

    def verdict(self, row: AuditRow, target: str) -> Row:
        """The row of ``audit``."""
        details = self._json(audit_json(row, target, self._files))
        return (*self._client(row.client), target, row.verdict, row.reason, details)

    def topic(self, topic: Topic, cluster: str | None) -> Row:
        """The row of ``topics``, of a topic of a ``cluster``."""
        waits = topic.produce_to_consume
        groups = [name for consumer in topic.consumers for name in consumer.groups]
        return (
            self._source,
            cluster,
            topic.name,
            topic.topic_id,
            micros_of(topic.first_ns),
            micros_of(topic.last_ns),
            *topic.produced,
            *topic.consumed,
            _names(topic.producers),
            _names(topic.consumers),
            list(dict.fromkeys([*groups, *(group.group for group in topic.groups)])),
            topic.errors,
            topic.lag,
            None if waits is None else waits.p50_ns,
            None if waits is None else waits.p99_ns,
            self._json(topic_json(topic)),
        )

    def group_event(self, event: GroupEvent, cluster: str | None) -> Row:
        """The row of ``groups``, of a group of a ``cluster``."""
        generation = event.generation
        return (
            self._source,
            cluster,
            event.group,
            micros_of(event.timestamp_ns),
            event.event,
            event.protocol,
            generation if isinstance(generation, int) else None,
            event.client_id,
            event.client,
            event.broker,
            event.member_id or None,
            self._json(group_event_json(event, self._files)),
        )

    def producer(self, producer: Producer, cluster: str | None) -> Row:
        """The row of ``producers``, of a producer of a ``cluster``."""
        return (
            self._source,
            cluster,
            producer.producer_id,
            producer.transactional_id,
            micros_of(producer.first_ns),
            micros_of(producer.last_ns),
            list(producer.clients),
            producer.batches,
            producer.records,
            producer.errors,
            producer.ended,
            self._json(producer_json(producer, self._files)),
        )

    def _client(self, client: Client) -> Row:
        principal = (client.sasl or {}).get("principal")
        return (self._source, client.kind, client.client_id, client.address, client.broker, *client.software, principal)

    def segment(self, segment: Segment) -> Row:
        """The row of ``segments``."""
        packet, ns, flow, seq, ack, flags, _, start, end, missing = segment
        return (
            self._source,
            self._file(packet),
            packet_number(packet),
            micros_of(ns),
            nanos_of(ns),
            *_endpoints(flow),
            seq,
            ack,
            flags,
            end - start,
            missing,
        )

    def _record(self, record: Body) -> Row:
        headers = record.get("headers")
        return (
            record.get("offset"),
            record.get("timestamp"),
            self._bytes(record.get("key")),
            self._bytes(record.get("value")),
            self._json(headers) if headers else None,
        )

    def _decoded(self, record: Body, part: str) -> str | None:
        """A decoded key or value as JSON, or None."""
        decoded = record.get("decoded")
        member = decoded.get(part) if isinstance(decoded, dict) else None
        return None if member is None else self._json(member)

    def _bytes(self, value: Any) -> bytes | None:
        """A key or value as it was; redacted ones are objects, and stay readable."""
        return value if value is None or isinstance(value, bytes) else json_text(value)

    def _numbered(self, details: Body) -> Body:
        """Exported JSON with the number that tables have for a connection in place of the exported one."""
        found = {}
        for name, value in details.items():
            if name == "connection":
                found["connection_id"] = self._number(value) if isinstance(value, int) else value
            else:
                found[name] = value
        return found

    def _number(self, connection: int) -> int:
        """The number in tables of the connection that its task gave the number ``connection``, from 1."""
        return (connection - 1) * self._shards + self._shard + 1

    def _place(self, connection: Connection) -> Row:
        return (self._source, self._number(connection.id), connection.client, connection.broker)

    def _file(self, reference: int) -> str:
        return self._files[file_index(reference)]

    def _json(self, value: Any) -> str:
        return json_text(value).decode()


def rows_of(table: str, event: Event, rows: Rows) -> Iterable[Row]:
    """The rows of one table that an event gives, those of ``exchanges`` left out."""
    if isinstance(event, Exchange):
        return rows.records(event) if table == "records" else ()
    if isinstance(event, Problem):
        return (rows.problem(event),) if table == "problems" else ()
    return (rows.connection(event),) if table == "connections" and isinstance(event, Connection) else ()


def _may_have_records(message: Message) -> bool:
    """Whether the body is worth decoding for them, where it is not decoded yet."""
    digest = message.digest
    return digest is None or digest.batches > 0 or digest.is_cut


def _names(clients: Iterable[TopicClient]) -> list[str]:
    """Client ids, each once."""
    return list(dict.fromkeys(one.client_id for one in clients if one.client_id is not None))


_endpoints = lru_cache(maxsize=4096)(endpoints)
