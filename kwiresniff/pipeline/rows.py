"""Events to rows: one function a table, values in the order of ``kwiresniff.pipeline.columns``.

Everything the exported JSON says about an exchange is in its row, so the one can be made from the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any

from kwiresniff.analysis.names import record_sets
from kwiresniff.answers.clients import AuditRow, Client
from kwiresniff.export import JsonEncoder, connection_json, exchange_json, problem_json
from kwiresniff.export.clients import audit_json, client_json
from kwiresniff.model import (
    Body,
    Connection,
    Exchange,
    Message,
    Problem,
    Segment,
    TopicNames,
    file_index,
    packet_number,
)
from kwiresniff.pipeline.mentions import Mentions, mentions
from kwiresniff.session import endpoints

Row = tuple[Any, ...]

_MICROSECONDS = 1_000
_DAY_NS = 86_400 * 10**9
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
#: Spark and Python have years 1 to 9999, and Parquet 64 bits; a capture may claim any time.
_MIN_NS = -62_135_596_800 * 10**9
_MAX_NS = 2**63 - 1
_NO_MESSAGE: Row = (None,) * 7

#: Where the partition index stands beside a record set, in this order.
_PARTITION_FIELDS = ("partition_index", "index", "partition")


class Rows:
    """Rows of one source. ``files`` are its files in reading order, ``topic_name`` what is known of topic ids.

    ``shard`` and ``shards`` keep connection numbers apart that were given in different tasks.
    """

    def __init__(
        self, source: str, files: Sequence[str], topic_name: TopicNames, shard: int = 0, shards: int = 1
    ) -> None:
        self._source = source
        self._files = files
        self._topic_name = topic_name
        self._line = JsonEncoder().line
        self._last: Exchange | None = None
        self._mentions = Mentions([], [], [], [])
        self._number: Callable[[int], int] = lambda number: (number - 1) * shards + shard + 1

    def exchange(self, exchange: Exchange) -> Row:
        """The row of ``exchanges``."""
        request, response = exchange.request, exchange.response
        day, time = when(seen_ns(exchange))
        return (
            day,
            exchange.api or None,
            time,
            *self._place(exchange.connection),
            exchange.api_key,
            exchange.api_version,
            exchange.correlation_id,
            exchange.client_id,
            exchange.outcome,
            exchange.waiting or None,
            exchange.latency_ns,
            exchange.queued_ns,
            exchange.held_ns,
            exchange.broker_ns,
            None if request is None else request.last_ns - request.first_ns,
            None if response is None else response.last_ns - response.first_ns,
            *self.mentions(exchange)[:3],
            list(dict.fromkeys(name for _, _, name, _ in exchange.errors)),
            [
                {"path": path, "code": code, "name": name, "retriable": retriable}
                for path, code, name, retriable in exchange.errors
            ],
            list(dict.fromkeys(problem.code for problem in exchange.problems)),
            self._json(exchange_json(exchange)["problems"]) if exchange.problems else None,
            *self._message(request),
            *self._message(response),
        )

    def connection(self, connection: Connection) -> Row:
        """The row of ``connections``."""
        details = connection_json(connection)
        details["connection"] = self._number(connection.id)
        return (
            *self._place(connection),
            connection.protocol,
            when(connection.first_ns)[1],
            when(connection.last_ns)[1],
            _int64(connection.first_ns),
            _int64(connection.last_ns),
            *connection.bytes,
            sum(connection.exchanges.values()),
            self._json(details),
        )

    def problem(self, problem: Problem) -> Row:
        """The row of ``problems`` for what belongs to no exchange."""
        details = problem_json(problem, self._files)
        number = details.get("connection")
        if isinstance(number, int):
            number = details["connection"] = self._number(number)
        file = details.get("file")
        if file is None and problem.packet is not None:
            file = self._file(problem.packet)
        return (
            self._source,
            file,
            None if problem.packet is None else packet_number(problem.packet),
            None if problem.timestamp_ns is None else when(problem.timestamp_ns)[1],
            problem.code,
            problem.message,
            number,
            self._json(details),
        )

    def records(self, exchange: Exchange) -> Iterator[Row]:
        """The rows of ``records``: whatever either body carries, batches that could not be read left out."""
        for message in (exchange.request, exchange.response):
            if message is None or message.body is None:
                continue
            day, time = when(message.first_ns)
            head = (
                day,
                exchange.api or None,
                time,
                *self._place(exchange.connection),
                exchange.client_id,
                exchange.correlation_id,
            )
            for topic, holder, batches in record_sets(message.body, self._topic_name):
                partition = next((holder[name] for name in _PARTITION_FIELDS if name in holder), None)
                for batch in batches if isinstance(batches, list) else ():
                    for record in batch.get("records") or ():
                        yield (*head, topic, partition, *self._record(batch, record))

    def client(self, client: Client) -> Row:
        """The row of ``clients``."""
        return (
            *self._client(client),
            when(client.first_ns)[1],
            when(client.last_ns)[1],
            client.connections,
            client.exchanges,
            client.errors,
            client.unanswered,
            client.request_bytes,
            client.response_bytes,
            [
                {"api": use.api or None, "version": use.version, "exchanges": use.count, "errors": use.errors}
                for use in client.uses
            ],
            list(client.topics),
            list(client.groups),
            list(client.transactional_ids),
            self._json(client_json(client, self._files)),
        )

    def verdict(self, row: AuditRow, target: str) -> Row:
        """The row of ``audit``."""
        details = self._json(audit_json(row, target, self._files))
        return (*self._client(row.client), target, row.verdict, row.reason, details)

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
            when(ns)[1],
            _int64(ns),
            *_endpoints(flow),
            seq,
            ack,
            flags,
            end - start,
            missing,
        )

    def mentions(self, exchange: Exchange) -> Mentions:
        """What an exchange speaks of. Several tables ask for the same one in turn, so the last answer is kept."""
        if self._last is not exchange:
            self._last = exchange
            self._mentions = mentions(exchange, self._topic_name)
        return self._mentions

    def names(self, exchange: Exchange) -> tuple[list[str], list[str], list[str]]:
        """The topics, groups and transactional ids an exchange speaks of."""
        found = self.mentions(exchange)
        return found.topics, found.groups, found.transactional_ids

    def _record(self, batch: Body, record: Body) -> Row:
        headers = record.get("headers")
        return (
            record.get("offset"),
            record.get("timestamp"),
            self._bytes(record.get("key")),
            self._bytes(record.get("value")),
            self._json(headers) if headers else None,
            batch.get("compression"),
            batch.get("producer_id"),
            batch.get("is_transactional"),
            batch.get("is_control"),
        )

    def _bytes(self, value: Any) -> bytes | None:
        """A key or value as it was; redacted ones are objects, and stay readable."""
        return value if value is None or isinstance(value, bytes) else self._line(value)[:-1]

    def _place(self, connection: Connection) -> Row:
        return (self._source, self._number(connection.id), connection.client, connection.broker)

    def _message(self, message: Message | None) -> Row:
        if message is None:
            return _NO_MESSAGE
        return (
            _int64(message.first_ns),
            self._file(message.first_packet),
            packet_number(message.first_packet),
            packet_number(message.last_packet),
            message.size_bytes,
            message.header_version,
            None if message.body is None else self._json(message.body),
        )

    def _file(self, reference: int) -> str:
        return self._files[file_index(reference)]

    def _json(self, value: Any) -> str:
        return self._line(value)[:-1].decode()


def seen_ns(exchange: Exchange) -> int:
    """The moment an exchange counts for: its request's first byte, its response's when the request is missing."""
    message = exchange.request or exchange.response
    return message.first_ns if message is not None else 0


def when(ns: int) -> tuple[date | None, datetime | None]:
    """The UTC day and the moment in microseconds; nothing for what no calendar here can hold."""
    if not _MIN_NS <= ns <= _MAX_NS:
        return None, None
    day, rest_ns = divmod(ns, _DAY_NS)
    midnight = _midnight(day)
    second, micro = divmod(rest_ns // _MICROSECONDS, 1_000_000)
    minute, second = divmod(second, 60)
    return midnight[0], midnight[1].replace(hour=minute // 60, minute=minute % 60, second=second, microsecond=micro)


@lru_cache(maxsize=16)
def _midnight(day: int) -> tuple[date, datetime]:
    found = date.fromordinal(_EPOCH_ORDINAL + day)
    return found, datetime(found.year, found.month, found.day, tzinfo=UTC)


def _int64(ns: int) -> int | None:
    return ns if -_MAX_NS <= ns <= _MAX_NS else None


@lru_cache(maxsize=4096)
def _endpoints(flow: bytes) -> tuple[str, str]:
    return endpoints(flow)
