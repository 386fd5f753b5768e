"""Requests that took long although nobody meant them to, judged by the time that the broker itself needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Episodes, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.latency import BUCKET_BYTES, Histogram
from kwiresniff.analysis.memory_budget import MemoryBudget
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import message_parts
from kwiresniff.base.api_keys import JOIN_GROUP, PRODUCE, SYNC_GROUP
from kwiresniff.model import Exchange

#: What these wait for is their group.
HOLDING: Final = frozenset({JOIN_GROUP, SYNC_GROUP})
#: An answer that the broker did not hold back on purpose is slow from here on.
SLOW_NS: Final = 1_000_000_000
#: Bytes of what brokers took, by broker and API; beyond it those of fewest requests are reported without percentiles.
MAX_HISTOGRAM_BYTES = 16 << 20
#: A histogram without its buckets, with its key.
_HISTOGRAM_BYTES: Final = 600
#: Stands behind the API where the responses before, which may have throttled the client, are cut off.
CUT: Final = "\0cut"


class SlowAnswers(Observer):
    """``slow_answer``: answers that took the broker itself a second or more, by broker and API, episodes apart.

    Time behind other requests of the connection is not the broker's, nor is the path to it and back. Numbers: ``api``,
    ``worst_ns``, ``of`` how many answers of that broker and API, ``p50_ns`` and ``p99_ns`` of these; ``is_cut``: the
    capture lacks parts of the responses; ``is_replicated``: it is Produce with acks=all to partitions that have other
    replicas, as far as is known. They are late by the time beyond a second.
    """

    kinds: ClassVar[tuple[str, ...]] = ("slow_answer",)
    apis: ClassVar[frozenset[int] | None] = None

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
            case.note("replicated", ["yes"] * (exchange.api_key == PRODUCE and self._is_replicated(exchange)))

    def _of(self, exchange: Exchange) -> Histogram | None:
        """What its broker took for the API of an exchange."""
        key = (exchange.connection.broker, exchange.api)
        known = self._all.get(key)
        return known if known is not None else self._new(key)

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

    def observations(self) -> Iterator[Observation]:
        """One for each broker, API and episode."""
        for broker, what, case in self._slow:
            api, cut, _ = what.partition(CUT)
            known = self._all.get((broker, api))
            numbers: dict[str, Any] = {"api": api, "worst_ns": case.most}
            if known is not None and (summary := known.summary()) is not None:
                numbers |= {"of": known.count, "p50_ns": summary.p50_ns, "p99_ns": summary.p99_ns}
            yield observation_of(
                "slow_answer",
                case,
                [f"broker:{broker}"],
                {**numbers, "is_cut": bool(cut), "is_replicated": bool(case.noted("replicated"))},
                Harm() if cut else Harm(requests_late=case.count, late_ns=case.total - case.count * SLOW_NS),
            )

    def _is_replicated(self, produce: Exchange) -> bool:
        """Whether a Produce waits for other replicas: with acks=all, where its partitions are known to have no others
        it does not."""
        request = produce.request
        if request is None:
            return False
        digest = request.digest
        if (digest.acks if digest is not None else (request.body or {}).get("acks")) != -1:
            return False
        cluster = self.context.cluster.of(produce.connection.broker)
        parts = (
            (self.context.topic_in(topic), part.index) for topic in message_parts(request) for part in topic.partitions
        )
        known = [self.context.replicas.of(cluster, topic, index) for topic, index in parts]
        return any(one is None or len(one.all) > 1 for one in known)
