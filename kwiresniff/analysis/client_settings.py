"""Settings of producers and consumers, as far as their requests show them, by the names of Kafka's configuration.

Some stand in requests; others are estimated from what a client does: how long a producer gathers records is seen in
their timestamps, an interval in the time between two requests. Members of groups of KIP-848 have their heartbeat
interval from the broker, so it is no setting of theirs.

Bounded: ``MAX_VALUES`` values of each setting, texts of ``MAX_TEXT_CHARS``, ``MAX_SAMPLED`` values for each estimate.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from statistics import median, quantiles
from typing import Any, Final

from kwiresniff.analysis.record_counts import batches_in, records_in
from kwiresniff.base.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    INIT_PRODUCER_ID,
    JOIN_GROUP,
    OFFSET_COMMIT,
    PRODUCE,
)
from kwiresniff.base.field_values import field_text, name_text
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Body, Exchange
from kwiresniff.results.clients import Setting

#: Values of one setting that are kept of a client; it has one, or a few after changes.
MAX_VALUES: Final = 8
MAX_TEXT_CHARS: Final = 200
#: Values that an estimate is made of; when there are more, every second one is dropped.
MAX_SAMPLED: Final = 64
#: Requests of one API that are looked into one after the other, and of those that follow one in so many. A client
#: changes its settings only with a restart, on a new connection.
ALWAYS_LOOKED_AT: Final = 16
LOOKED_AT_EVERY: Final = 64
#: Requests in flight at once that are counted.
MAX_COUNTED_IN_FLIGHT: Final = 1_000
#: Fewer values are no basis of an estimate.
MIN_SAMPLED: Final = 4
#: Memory of the settings of a client at the most: some 20 settings, of which two are texts, and four estimates.
SETTINGS_BYTES: Final = 12_000
#: Batches that are smaller follow from what an application sends at once, whatever ``batch.size`` is.
LEAST_BATCH_SIZE: Final = 900
#: A batch is full when it has this share of the largest.
_FULL: Final = 0.9
#: An interval is one when the middle half of all intervals is as close to the median as this share of it.
_REGULAR: Final = 0.15
#: Commits closer than this follow from polls, not from a timer.
_LEAST_INTERVAL_MS: Final = 100

_ISOLATION: Final = ("read_uncommitted", "read_committed")

Value = str | int | bool


class _Sample:
    """Up to ``MAX_SAMPLED`` values, evenly spread over all that were added."""

    __slots__ = ("_every", "_seen", "values")

    def __init__(self) -> None:
        self.values: list[float] = []
        self._every = 1
        self._seen = 0

    def add(self, value: float) -> None:
        self._seen += 1
        if self._seen % self._every == 0:
            self.values.append(value)
            if len(self.values) > MAX_SAMPLED:
                self.values = self.values[::2]
                self._every *= 2

    def merge(self, other: _Sample) -> None:
        for value in other.values:
            self.add(value)


class ClientSettings:
    """The settings of one client on one connection, or on several once they are merged."""

    __slots__ = (
        "_answered_ns", "_batch_bytes", "_begun_ns", "_commits", "_counts", "_heartbeats", "_idle_ns", "_in_flight",
        "_last_ns", "_linger_ms", "_most_in_flight", "_values",
    )  # fmt: skip

    def __init__(self) -> None:
        self._values: dict[str, dict[Value, int]] = {}  # by name: each value, and when it was seen first
        self._counts: dict[int, int] = {}
        self._begun_ns: dict[str, int] = {}  # since when there is something to estimate from
        self._last_ns: dict[int, int] = {}
        self._in_flight: deque[int] = deque()  # when the answers came to the latest Produce requests
        self._most_in_flight = 0
        self._answered_ns = 0  # when the latest answer to a Produce came
        self._idle_ns = 0  # how long nothing was in flight when the latest Produce was sent
        self._batch_bytes = _Sample()
        self._linger_ms = _Sample()
        self._heartbeats = _Sample()
        self._commits = _Sample()

    def take(self, exchange: Exchange) -> None:
        """Takes the settings in an exchange of one of ``TELLING_APIS``."""
        key = exchange.api_key
        request = exchange.request
        if request is None:
            return
        ns = request.first_ns
        if key == PRODUCE:
            self._produced(exchange, ns)
        elif key in (HEARTBEAT, OFFSET_COMMIT):
            self._repeated(key, ns)
        count = self._counts.get(key, 0)
        self._counts[key] = count + 1
        if count >= ALWAYS_LOOKED_AT and count % LOOKED_AT_EVERY:
            return
        body = request.body
        if body is not None:
            _LOOKS[key](self, body, ns)

    def _produced(self, exchange: Exchange, ns: int) -> None:
        """Counts the Produce requests that were in flight when this one was sent. Those before it were answered before
        it, in their order.
        """
        waiting = self._in_flight
        while waiting and waiting[0] <= ns:
            waiting.popleft()
        self._begun_ns.setdefault("in flight", ns)
        self._most_in_flight = max(self._most_in_flight, len(waiting) + 1)
        self._idle_ns = ns - self._answered_ns if self._answered_ns and not waiting else 0
        response = exchange.response
        if response is not None:
            self._answered_ns = response.first_ns
            if len(waiting) < MAX_COUNTED_IN_FLIGHT:
                waiting.append(response.first_ns)

    def _repeated(self, key: int, ns: int) -> None:
        last_ns = self._last_ns.get(key)
        self._last_ns[key] = ns
        if last_ns is not None and ns > last_ns:
            (self._heartbeats if key == HEARTBEAT else self._commits).add((ns - last_ns) / MILLISECOND_NS)
        self._begun_ns.setdefault("heartbeats" if key == HEARTBEAT else "commits", ns)

    def _set(self, name: str, value: Value | None, ns: int) -> None:
        if value is None or value == "":
            return
        if isinstance(value, str):
            value = value[:MAX_TEXT_CHARS]
        known = self._values.setdefault(name, {})
        if value in known:
            known[value] = min(known[value], ns)
        elif len(known) < MAX_VALUES:
            known[value] = ns

    def _look_at_produce(self, body: Body, ns: int) -> None:
        acks = body.get("acks")
        self._set("acks", "all" if acks == -1 else None if acks is None else str(acks), ns)
        self._set("request.timeout.ms", _number(body.get("timeout_ms", body.get("timeout"))), ns)
        for topic in body.get("topic_data") or ():
            for partition in topic.get("partition_data") or ():
                for batch in batches_in(partition):
                    self._look_at_batch(batch, ns)

    def _look_at_batch(self, batch: Body, ns: int) -> None:
        self._set("compression.type", name_text(batch.get("compression")), ns)
        if not isinstance(batch.get("producer_id"), int) or batch.get("is_control"):
            return  # before Kafka 0.11 there was neither idempotence nor the time of the last record
        self._set("enable.idempotence", batch["producer_id"] >= 0, ns)
        size, count = batch.get("size_bytes"), records_in(batch)
        if count < 2 or not isinstance(size, int):
            return
        self._begun_ns.setdefault("batches", ns)
        if batch.get("compression") == "none":
            self._batch_bytes.add(size)
        first_ms, last_ms = batch.get("base_timestamp", -1), batch.get("max_timestamp", -1)
        # Records also gather while a connection has as many requests in flight as it may have.
        if 0 <= first_ms <= last_ms and (last_ms - first_ms) * MILLISECOND_NS < self._idle_ns:
            self._linger_ms.add(last_ms - first_ms)

    def _look_at_fetch(self, body: Body, ns: int) -> None:
        self._set("fetch.min.bytes", _number(body.get("min_bytes")), ns)
        self._set("fetch.max.wait.ms", _number(body.get("max_wait_ms")), ns)
        self._set("fetch.max.bytes", _number(body.get("max_bytes")), ns)
        isolation = body.get("isolation_level")
        if isolation in (0, 1):
            self._set("isolation.level", _ISOLATION[isolation], ns)
        self._set("client.rack", name_text(body.get("rack_id")), ns)
        for topic in (body.get("topics") or ())[:1]:
            for partition in (topic.get("partitions") or ())[:1]:
                self._set("max.partition.fetch.bytes", _number(partition.get("partition_max_bytes")), ns)

    def _look_at_join(self, body: Body, ns: int) -> None:
        self._set("session.timeout.ms", _number(body.get("session_timeout_ms")), ns)
        self._set("max.poll.interval.ms", _number(body.get("rebalance_timeout_ms")), ns)
        self._set("group.instance.id", name_text(body.get("group_instance_id")), ns)
        if body.get("protocol_type") == "consumer":
            names = (field_text(one.get("name")) for one in body.get("protocols") or ())
            self._set("partition.assignment.strategy", ",".join(filter(None, names)), ns)

    def _look_at_consumer_heartbeat(self, body: Body, ns: int) -> None:
        timeout = _number(body.get("rebalance_timeout_ms"))
        self._set("max.poll.interval.ms", timeout if timeout is not None and timeout >= 0 else None, ns)
        self._set("group.instance.id", name_text(body.get("instance_id")), ns)
        self._set("group.remote.assignor", name_text(body.get("server_assignor")), ns)
        self._set("client.rack", name_text(body.get("rack_id")), ns)

    def _look_at_producer_id(self, body: Body, ns: int) -> None:
        if body.get("transactional_id"):
            self._set("transaction.timeout.ms", _number(body.get("transaction_timeout_ms")), ns)

    def _look_no_further(self, body: Body, ns: int) -> None:
        """Of these the times are all there is."""

    def merge(self, other: ClientSettings) -> None:
        """Merges the settings from another connection of the client."""
        for name, values in other._values.items():
            for value, ns in values.items():
                self._set(name, value, ns)
        for what, ns in other._begun_ns.items():
            self._begun_ns[what] = min(self._begun_ns.get(what, ns), ns)
        self._most_in_flight = max(self._most_in_flight, other._most_in_flight)
        self._batch_bytes.merge(other._batch_bytes)
        self._linger_ms.merge(other._linger_ms)
        self._heartbeats.merge(other._heartbeats)
        self._commits.merge(other._commits)

    def settings(self) -> tuple[Setting, ...]:
        """All that is known, by name; several values of one in the order of time."""
        found = [
            Setting(name, value, False, ns)
            for name, values in self._values.items()
            for value, ns in sorted(values.items(), key=lambda item: item[1])
        ]
        found += self._estimates()
        return tuple(sorted(found, key=lambda one: (one.name, one.since_ns)))

    def _estimates(self) -> Iterable[Setting]:
        begun = self._begun_ns
        if self._most_in_flight:
            yield Setting("max.in.flight.requests.per.connection", self._most_in_flight, True, begun["in flight"])
        sizes, lingered = self._batch_bytes.values, self._linger_ms.values
        full = [size for size in sizes if size >= _FULL * max(sizes)]
        are_full = bool(full) and max(full) >= LEAST_BATCH_SIZE and len(full) >= max(MIN_SAMPLED, len(sizes) // 3)
        if are_full:
            yield Setting("batch.size", round(max(full)), True, begun["batches"])
        elif len(lingered) >= MIN_SAMPLED:
            yield Setting("linger.ms", round(quantiles(lingered, n=10)[-1]), True, begun["batches"])
        if len(self._heartbeats.values) >= MIN_SAMPLED:
            yield Setting("heartbeat.interval.ms", _round(median(self._heartbeats.values)), True, begun["heartbeats"])
        commits = self._commits.values
        if len(commits) >= MIN_SAMPLED:
            low, middle, high = quantiles(commits, n=4)
            is_regular = high - low <= 2 * _REGULAR * middle
            if is_regular and middle >= _LEAST_INTERVAL_MS:
                yield Setting("auto.commit.interval.ms", _round(middle), True, begun["commits"])


_LOOKS: Final[dict[int, Callable[[ClientSettings, Body, int], None]]] = {
    PRODUCE: ClientSettings._look_at_produce,
    FETCH: ClientSettings._look_at_fetch,
    JOIN_GROUP: ClientSettings._look_at_join,
    CONSUMER_GROUP_HEARTBEAT: ClientSettings._look_at_consumer_heartbeat,
    INIT_PRODUCER_ID: ClientSettings._look_at_producer_id,
    HEARTBEAT: ClientSettings._look_no_further,
    OFFSET_COMMIT: ClientSettings._look_no_further,
}


#: APIs whose requests show settings.
TELLING_APIS: Final = frozenset(_LOOKS)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) else None


def _round(milliseconds: float) -> int:
    """To two digits: timers are late by a few milliseconds."""
    digits = len(str(int(milliseconds))) - 2
    return int(round(milliseconds, -digits)) if digits > 0 else round(milliseconds)
