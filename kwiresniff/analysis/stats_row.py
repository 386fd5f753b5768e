"""A row of a table of statistics while it is being counted: outcomes, bytes, records, and waits with their reasons."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.latency import BUCKET_BYTES, Histogram
from kwiresniff.model import Exchange

#: A row without its key and its histograms' buckets.
ROW_BYTES: Final = 800


def own_time_ns(exchange: Exchange, latency_ns: int) -> int | None:
    """The broker's own part of a latency, in nanoseconds, as distributions count it; None where it is not known, or
    where nothing is left to it of a wait that it held back.
    """
    queued_ns, held_ns = exchange.queued, exchange.held
    if queued_ns < 0 or held_ns < 0:
        return None
    broker_ns = latency_ns - exchange.path - queued_ns - held_ns
    return broker_ns if broker_ns > 0 or not held_ns else None


class _Parts:
    """Exchanges of whose wait a part was queued or held, or is not known: few clients have many."""

    __slots__ = ("broker", "held", "latency", "path", "queued", "waiting")

    def __init__(self) -> None:
        self.latency = Histogram()  # of those without a reason to wait
        self.queued = Histogram()
        self.held = Histogram()
        self.path = Histogram()
        self.broker = Histogram()
        self.waiting: dict[str, Histogram] = {}  # whole waits by their reasons

    def add(self, exchange: Exchange, latency_ns: int) -> None:
        reason = exchange.waiting
        if not reason:
            self.latency.add(latency_ns)
        else:
            if reason not in self.waiting:
                self.waiting[reason] = Histogram()
            self.waiting[reason].add(latency_ns)
        if exchange.queued > 0 and exchange.held >= 0:
            self.queued.add(exchange.queued)
        if exchange.held > 0 and exchange.queued >= 0:
            self.held.add(exchange.held)
        if exchange.path:
            self.path.add(exchange.path)
        own_ns = own_time_ns(exchange, latency_ns)
        if own_ns is not None:
            self.broker.add(own_ns)

    def merge(self, other: _Parts) -> None:
        """Adds the times of another row's exchanges."""
        self.latency.merge(other.latency)
        self.queued.merge(other.queued)
        self.held.merge(other.held)
        self.path.merge(other.path)
        self.broker.merge(other.broker)
        for reason, histogram in other.waiting.items():
            if reason not in self.waiting:
                self.waiting[reason] = Histogram()
            self.waiting[reason].merge(histogram)

    def buckets(self) -> int:
        listed = [self.latency, self.queued, self.held, self.path, self.broker, *self.waiting.values()]
        return sum([len(one.buckets) for one in listed])


class Waits:
    """How long exchanges waited, whole and in parts."""

    __slots__ = ("_at_once", "_parts")

    def __init__(self) -> None:
        self._at_once = Histogram()  # of whose wait all was the broker's
        self._parts: _Parts | None = None  # the others

    def add(self, exchange: Exchange) -> None:
        """Counts an exchange that has both its messages, the response not before the request."""
        request, response = exchange.request, exchange.response
        if request is None or response is None or response.first_ns < request.last_ns:
            return
        latency_ns = response.first_ns - request.last_ns
        if exchange.queued == 0 and exchange.held == 0 and exchange.path == 0:
            self._at_once.add(latency_ns)
            return
        if self._parts is None:
            self._parts = _Parts()
        self._parts.add(exchange, latency_ns)

    @property
    def latency(self) -> Histogram:
        """The whole wait of those that the broker did not hold back on purpose."""
        parts = self._parts
        return self._at_once if parts is None else self._at_once.with_added(parts.latency)

    @property
    def whole(self) -> Histogram:
        """The whole wait of all."""
        found = self.latency
        for histogram in self.waiting.values():
            found = found.with_added(histogram)
        return found

    @property
    def broker(self) -> Histogram:
        """The broker's own time."""
        parts = self._parts
        return self._at_once if parts is None else self._at_once.with_added(parts.broker)

    @property
    def queued(self) -> Histogram | None:
        """How long those were queued that were."""
        return None if self._parts is None else self._parts.queued

    @property
    def held(self) -> Histogram | None:
        """How long those were held back that were."""
        return None if self._parts is None else self._parts.held

    @property
    def path(self) -> Histogram | None:
        """What packets took to brokers that are far away, and back."""
        return None if self._parts is None else self._parts.path

    @property
    def waiting(self) -> dict[str, Histogram]:
        """The whole wait of those that the broker held back on purpose, by the reason."""
        return {} if self._parts is None else self._parts.waiting

    def merge(self, other: Waits) -> None:
        """Adds another row's waits."""
        self._at_once.merge(other._at_once)
        if other._parts is not None:
            if self._parts is None:
                self._parts = _Parts()
            self._parts.merge(other._parts)

    def buckets(self) -> int:
        """The buckets of all histograms."""
        return len(self._at_once.buckets) + (0 if self._parts is None else self._parts.buckets())


class Row:
    """One row while it is being counted."""

    __slots__ = (
        "count", "errors", "negotiation", "request_bytes", "request_records", "response_bytes", "response_records",
        "unanswered", "waits",
    )  # fmt: skip

    def __init__(self) -> None:
        self.count = 0
        self.errors = 0
        self.negotiation = 0
        self.unanswered = 0
        self.request_bytes = 0
        self.response_bytes = 0
        self.request_records = 0
        self.response_records = 0
        self.waits = Waits()

    def add(self, exchange: Exchange) -> None:
        self.count += 1
        request, response = exchange.request, exchange.response
        if request is not None:
            self.request_bytes += request.size_bytes
        if response is not None:
            self.response_bytes += response.size_bytes
            self.waits.add(exchange)
        if exchange.outcome != "ok":
            if exchange.is_negotiation:
                self.negotiation += 1
            elif exchange.errors:
                self.errors += 1
            elif exchange.outcome == "unanswered":
                self.unanswered += 1

    def merge(self, other: Row) -> None:
        """Adds another row's counts."""
        self.count += other.count
        self.errors += other.errors
        self.negotiation += other.negotiation
        self.unanswered += other.unanswered
        self.request_bytes += other.request_bytes
        self.response_bytes += other.response_bytes
        self.request_records += other.request_records
        self.response_records += other.response_records
        self.waits.merge(other.waits)

    def size_bytes(self) -> int:
        """Its memory without its key."""
        return ROW_BYTES + BUCKET_BYTES * self.waits.buckets()
