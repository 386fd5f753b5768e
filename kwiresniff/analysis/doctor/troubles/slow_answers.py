"""Answers that took the broker itself long, without a reason that shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.body_entities import acks_of
from kwiresniff.analysis.doctor.cause import SYMPTOM, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Episodes, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.latency import BUCKET_BYTES, Histogram
from kwiresniff.analysis.memory_budget import MemoryBudget
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import JOIN_GROUP, PRODUCE, SYNC_GROUP
from kwiresniff.model import Exchange

#: APIs that wait for the members of a group.
HOLDING: Final = frozenset({JOIN_GROUP, SYNC_GROUP})
#: From here on an answer is slow.
SLOW_NS: Final = 1_000_000_000
#: Bytes of the times by broker and API; beyond it those with the fewest requests have no percentiles.
MAX_HISTOGRAM_BYTES = 16 << 20
#: A histogram without its buckets, with its key.
_HISTOGRAM_BYTES: Final = 600
#: Added to the API where earlier responses, which may have throttled the client, are cut off.
CUT: Final = "\0cut"


#: Fewer and shorter ones occur when brokers start or create an internal topic.
FEW: Final = 3
VERY_SLOW_NS: Final = 5_000_000_000
#: Requests of an API below which a percentile says nothing.
ENOUGH: Final = 20
_COMPARE = (
    "Compare with other brokers (kwiresniff stats --by broker): one that is slow has a disk, CPU or request-queue "
    "problem; all that are slow share a network or a controller."
)
_REPLICAS = (
    "With acks=all it waits for the slowest replica in sync: look at disks and network of the brokers, and at their "
    "RemoteTimeMs and LocalTimeMs metrics."
)
_LEADER = (
    "No other replica is waited for: look at the broker's disks and CPU, at its LocalTimeMs and RequestQueueTimeMs "
    "metrics, and whether it compresses again what producers send (compression.type of the topic)."
)


class SlowAnswers(Observer):
    """``slow_answer``: answers that took the broker itself a second or more, by broker and API, episodes apart.

    Time in the queue of the connection and on the path does not count. Numbers: ``api``, ``worst_ns``, ``of`` (answers
    of that broker and API), ``p50_ns`` and ``p99_ns`` of these; ``is_cut``: the capture lacks parts of the responses;
    ``is_replicated``: Produce with acks=all to partitions that may have other replicas. They are late by the time
    beyond a second.
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
        key = exchange.connection.broker, exchange.api
        known = self._all.get(key)
        if known is None and not self._closed and len(self._all) < MAX_SUBJECTS:
            self._budget.charge(_HISTOGRAM_BYTES)
            known = self._all[key] = Histogram()
        return known

    def _make_room(self) -> None:
        """Drops the histograms with the fewest requests; none is added later, as it would be incomplete."""
        while self._budget.exceeded and self._all:
            self._closed = True
            least = min(self._all, key=lambda key: self._all[key].count)
            self._budget.release(_HISTOGRAM_BYTES + BUCKET_BYTES * len(self._all.pop(least).buckets))

    def observations(self) -> Iterator[Observation]:
        for broker, what, case in self._slow:
            api, cut, _ = what.partition(CUT)
            known = self._all.get((broker, api))
            numbers: dict[str, Any] = {"api": api, "worst_ns": case.most}
            if known is not None and (summary := known.summary()) is not None:
                numbers |= {"of": known.count, "p50_ns": summary.p50_ns, "p99_ns": summary.p99_ns}
            numbers |= {"is_cut": bool(cut), "is_replicated": bool(case.noted("replicated"))}
            late = Harm(requests_late=case.count, late_ns=case.total - case.count * SLOW_NS)
            yield observation_of("slow_answer", case, [f"broker:{broker}"], numbers, Harm() if cut else late)

    def _is_replicated(self, produce: Exchange) -> bool:
        """Whether a Produce waits for other replicas: with acks=all, unless its partitions are known to have none."""
        if acks_of(produce.request) != -1:
            return False
        cluster = self.context.cluster.of(produce.connection.broker)
        parts = self.context.parts(produce.request)
        known = [self.context.replicas.of(cluster, topic, part.index) for topic, part in parts]
        return any(one is None or len(one.all) > 1 for one in known)


@cause("slow", explains=("slow_answer",))
def slow_answer(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`slow` (error when p99 is above a second and 3 were slow, or when p50 is; warning from 3 on or 5 s, else info):
    the broker itself took more than a second, and nothing shows why; with the median and the 99th percentile. What a
    path, a queue, a quota, a stalled broker, a slow disk or replica makes late is a symptom of that.
    """
    numbers = one.numbers
    title = f"{numbers['api']} takes the broker more than a second"
    if numbers["is_cut"]:
        title += ", unless it throttled the client: its responses are cut off in the capture"
    remedy = _COMPARE
    if numbers["api"] == "Produce":
        remedy = _REPLICAS if numbers["is_replicated"] else _LEADER
    shown = ("api", "worst_ns", "of", "p50_ns", "p99_ns")
    return told(
        one,
        title,
        remedy,
        subject=one.name("broker"),
        severity=_severity(one),
        numbers={**{name: numbers[name] for name in shown if name in numbers}, "clients": one.named("client")},
        rank=SYMPTOM,
    )


def _severity(one: Observation) -> str:
    numbers = one.numbers
    if numbers["is_cut"]:
        return "info"
    p50_ns, p99_ns = numbers.get("p50_ns", 0), numbers.get("p99_ns", 0)
    # Of fewer than 100 requests a single one is the 99th percentile.
    often = one.count >= FEW or p50_ns >= SLOW_NS
    if numbers.get("of", 0) >= ENOUGH and p99_ns >= SLOW_NS and often:
        return "error"
    return "warning" if one.count >= FEW or numbers["worst_ns"] >= VERY_SLOW_NS else "info"
