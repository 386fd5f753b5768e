"""Requests that took long although nobody meant them to, judged by the time that the broker itself needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Episodes, client_of
from kwiresniff.analysis.doctor.rule import SYMPTOM, Rule, found
from kwiresniff.analysis.latency import BUCKET_BYTES, Histogram
from kwiresniff.analysis.memory_budget import MemoryBudget
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import JOIN_GROUP, SYNC_GROUP
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding

#: What these wait for is their group.
HOLDING: Final = frozenset({JOIN_GROUP, SYNC_GROUP})
#: An answer that the broker did not hold back on purpose is slow from here on.
SLOW_NS: Final = 1_000_000_000
#: Once or twice, and not for so long, is what happens when brokers start or make an internal topic.
FEW = 3
VERY_SLOW_NS = 5_000_000_000
#: Bytes of what brokers took, by broker and API; beyond it those of fewest requests are reported without percentiles.
MAX_HISTOGRAM_BYTES = 16 << 20
#: A histogram without its buckets, with its key.
_HISTOGRAM_BYTES: Final = 600
#: Stands behind the API where the responses before, which may have throttled the client, are cut off.
CUT: Final = "\0cut"
#: Requests of an API that must be seen before a percentile says anything.
ENOUGH = 20

_REMEDY = (
    "Compare with other brokers (kwiresniff stats --by broker): one that is slow has a disk, CPU or request-queue "
    "problem; all that are slow share a network or a controller."
)
_PRODUCE_REMEDY = (
    "With acks=all it waits for the slowest replica in sync: look at disks and network of the brokers, and at their "
    "RemoteTimeMs and LocalTimeMs metrics."
)


class LatencyRule(Rule):
    """Slow answers, by broker and API. Time behind other requests of the connection is not the broker's, nor is the
    path to it and back.

    `slow` (error when p99 is above a second and 3 were slow, or when p50 is; warning from 3 on or 5 s, else info): the
    broker itself took more than a second.
    """

    codes = ("slow",)
    apis = None

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._slow = Episodes(context.budget)
        self._all: dict[tuple[str, str], Histogram] = {}
        self._budget = MemoryBudget(MAX_HISTOGRAM_BYTES)
        self._closed = False  # for other brokers and APIs than it has

    def exchange(self, exchange: Exchange) -> None:
        """Count what the broker took."""
        took_ns = exchange.broker_ns
        if took_ns is None or exchange.api_key in HOLDING:
            return
        if not exchange.path and (path_ns := exchange.connection.path_ns):
            took_ns = max(took_ns - path_ns, 0)
        known = self._of(exchange)
        if known is not None:
            before = len(known.buckets)
            known.add(took_ns)
            if len(known.buckets) > before:
                self._budget.charge(BUCKET_BYTES)
                self._make_room()
        if took_ns >= SLOW_NS:
            packet, ns = place_of(exchange)
            assert exchange.request is not None
            cut = CUT if exchange.connection.id in self.context.cut else ""
            case = self._slow.case(exchange.connection.broker, exchange.api + cut, ns)
            case.add(packet, ns, took_ns)
            case.first_ns = min(case.first_ns, exchange.request.first_ns)
            case.note("clients", [client_of(exchange)])

    def _of(self, exchange: Exchange) -> Histogram | None:
        """What its broker took for the API of an exchange."""
        notes = None if self._closed else self.context.notes
        if notes is not None and notes.api_key == exchange.api_key:
            return notes.latencies
        key = (exchange.connection.broker, exchange.api)
        known = self._all.get(key)
        if known is None:
            known = self._new(key)
        if notes is not None and known is not None:
            notes.api_key, notes.latencies = exchange.api_key, known
        return known

    def _new(self, key: tuple[str, str]) -> Histogram | None:
        if self._closed or len(self._all) >= MAX_SUBJECTS:
            return None
        self._budget.charge(_HISTOGRAM_BYTES)
        known = self._all[key] = Histogram()
        return known

    def _make_room(self) -> None:
        """Forget what is known of those with the fewest requests; one that came back would have only part of them."""
        while self._budget.exceeded and self._all:
            self._closed = True
            least = min(self._all, key=lambda key: self._all[key].count)
            self._budget.release(_HISTOGRAM_BYTES + BUCKET_BYTES * len(self._all.pop(least).buckets))

    def findings(self) -> Iterator[Finding]:
        """By broker and API, the episodes apart."""
        for broker, what, case in self._slow:
            api, cut, _ = what.partition(CUT)
            known = self._all.get((broker, api))
            clients = case.noted("clients")
            numbers: dict[str, Any] = {"api": api, "worst_ns": case.most, "clients": clients}
            much = False
            if known is not None and (summary := known.summary()) is not None:
                numbers |= {"of": known.count, "p50_ns": summary.p50_ns, "p99_ns": summary.p99_ns}
                # Of fewer than 100 requests a single one is the 99th percentile.
                often = case.count >= FEW or summary.p50_ns >= SLOW_NS
                much = known.count >= ENOUGH and summary.p99_ns >= SLOW_NS and often
            worse = "error" if much else "warning" if case.count >= FEW or case.most >= VERY_SLOW_NS else "info"
            title = f"{api} takes the broker more than a second"
            yield found(
                "slow",
                "info" if cut else worse,
                broker,
                f"{title}, unless it throttled the client: its responses are cut off in the capture" if cut else title,
                _PRODUCE_REMEDY if api == "Produce" else _REMEDY,
                case,
                numbers,
                brokers=[broker],
                rank=SYMPTOM,
            )
