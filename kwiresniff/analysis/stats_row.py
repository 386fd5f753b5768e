"""A row of a table of statistics while it is being counted: outcomes, bytes, records, and waits with their reasons."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.latency import BUCKET_BYTES, Histogram
from kwiresniff.model import Exchange

#: A row without its key and its histogram's buckets.
ROW_BYTES: Final = 800


class Parted:
    """Exchanges of whose wait a part was queued or held, or nobody knows: few clients have many."""

    __slots__ = ("broker", "held", "latency", "path", "queued")

    def __init__(self) -> None:
        self.latency = Histogram()
        self.queued = Histogram()
        self.held = Histogram()
        self.path = Histogram()
        self.broker = Histogram()

    def add(self, exchange: Exchange, latency_ns: int) -> None:
        if not exchange.waiting:
            self.latency.add(latency_ns)
        queued_ns, held_ns = exchange.queued, exchange.held
        if queued_ns < 0 or held_ns < 0:
            return
        if queued_ns:
            self.queued.add(queued_ns)
        if held_ns:
            self.held.add(held_ns)
        if exchange.path:
            self.path.add(exchange.path)
        broker_ns = latency_ns - exchange.path - queued_ns - held_ns
        if broker_ns > 0 or not held_ns:
            self.broker.add(broker_ns)

    def merge(self, other: Parted) -> None:
        """Adds the times of another row's exchanges."""
        self.latency.merge(other.latency)
        self.queued.merge(other.queued)
        self.held.merge(other.held)
        self.path.merge(other.path)
        self.broker.merge(other.broker)

    def buckets(self) -> int:
        return sum([len(one.buckets) for one in (self.latency, self.queued, self.held, self.path, self.broker)])


class Row:
    """One row while it is being counted."""

    __slots__ = (
        "_at_once", "_parted", "count", "errors", "negotiation", "request_bytes", "request_records", "response_bytes",
        "response_records", "unanswered", "waiting",
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
        self._at_once = Histogram()  # of whose wait all was the broker's
        self._parted: Parted | None = None  # the others
        self.waiting: dict[str, Histogram] = {}

    def add(self, exchange: Exchange) -> None:
        self.count += 1
        request, response = exchange.request, exchange.response
        if request is not None:
            self.request_bytes += request.size_bytes
        if response is not None:
            self.response_bytes += response.size_bytes
            if request is not None and response.first_ns >= request.last_ns:
                if exchange.queued == 0 and exchange.held == 0 and exchange.path == 0:
                    self._at_once.add(response.first_ns - request.last_ns)
                else:
                    self._part(exchange, response.first_ns - request.last_ns)
        if exchange.outcome != "ok":
            if exchange.is_negotiation:
                self.negotiation += 1
            elif exchange.errors:
                self.errors += 1
            elif exchange.outcome == "unanswered":
                self.unanswered += 1

    def _part(self, exchange: Exchange, latency_ns: int) -> None:
        if self._parted is None:
            self._parted = Parted()
        self._parted.add(exchange, latency_ns)
        reason = exchange.waiting
        if reason:
            if reason not in self.waiting:
                self.waiting[reason] = Histogram()
            self.waiting[reason].add(latency_ns)

    @property
    def latency(self) -> Histogram:
        """The whole wait of those that the broker did not hold back on purpose."""
        parted = self._parted
        return self._at_once if parted is None else self._at_once.with_added(parted.latency)

    @property
    def broker(self) -> Histogram:
        """The broker's own time."""
        parted = self._parted
        return self._at_once if parted is None else self._at_once.with_added(parted.broker)

    @property
    def queued(self) -> Histogram | None:
        """How long those were queued that were."""
        return None if self._parted is None else self._parted.queued

    @property
    def held(self) -> Histogram | None:
        """How long those were held back that were."""
        return None if self._parted is None else self._parted.held

    @property
    def path(self) -> Histogram | None:
        """What packets took to brokers that are far away, and back."""
        return None if self._parted is None else self._parted.path

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
        self._at_once.merge(other._at_once)
        if other._parted is not None:
            if self._parted is None:
                self._parted = Parted()
            self._parted.merge(other._parted)
        for reason, histogram in other.waiting.items():
            if reason not in self.waiting:
                self.waiting[reason] = Histogram()
            self.waiting[reason].merge(histogram)

    def size_bytes(self) -> int:
        """Its memory without its key."""
        buckets = len(self._at_once.buckets) + sum([len(one.buckets) for one in self.waiting.values()])
        if self._parted is not None:
            buckets += self._parted.buckets()
        return ROW_BYTES + BUCKET_BYTES * buckets
