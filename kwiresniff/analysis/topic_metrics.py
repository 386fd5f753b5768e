"""Metrics of topics for a monitoring system: records, bytes, lag, the time from produce to consume.

A few topics have series of their own, the rest is counted together. A topic that was given its own keeps it, and what
was counted of it before stays with the rest, so that no counter ever falls.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, TypeAlias

from kwiresniff.analysis.metrics import DEFAULT_SERIES, label
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.base.needs import Needs
from kwiresniff.base.placeholders import OTHERS
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Event, Exchange, TopicNames
from kwiresniff.results.metrics import Metric
from kwiresniff.results.topics import Topic

#: How often topics are summed up, by the clock of the packets: monitoring systems come by every ten seconds or more.
SUM_UP_NS = 5_000_000_000

_COUNTERS = (
    ("topic_produced_records", "Records in Produce requests by topic."),
    ("topic_produced_batch_bytes", "Bytes of record batches in Produce requests by topic."),
    ("topic_consumed_records", "Records in Fetch responses to clients by topic."),
    ("topic_consumed_batch_bytes", "Bytes of record batches in Fetch responses to clients by topic."),
)
_Counts: TypeAlias = tuple[int, ...]
#: A topic by its name and its cluster, which is empty where there is but one.
_Key: TypeAlias = tuple[str, str]
_NONE: _Counts = (0,) * len(_COUNTERS)


class TopicMetrics:
    """Counts exchanges with decoded bodies. ``collect`` may be called from another thread at any time."""

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True)

    def __init__(
        self, series: int = DEFAULT_SERIES, topic_name: TopicNames | None = None, clusters: Clusters | None = None
    ) -> None:
        """``series`` is how many topics have series of their own; ``clusters`` are those of other analyses."""
        self._traffic = TopicTraffic(topic_name, clusters)
        self._series = series
        self._own: dict[_Key, _Counts] = {}  # and what was counted of each before
        self._seen: set[_Key] = set()  # what was summed up at least once, and so is in the rest
        self._topics: list[Topic] = []
        self._summed_ns = 0

    def add(self, event: Event) -> None:
        """One more exchange."""
        if not isinstance(event, Exchange):
            return
        self._traffic.exchange(event)
        message = event.response or event.request
        if message is not None and message.last_ns - self._summed_ns >= SUM_UP_NS:
            self._summed_ns = message.last_ns
            self.sum_up()

    def sum_up(self) -> None:
        """Work out what ``collect`` gives from now on."""
        topics = self._traffic.topics()
        own = dict(self._own)
        for topic in topics:
            if len(own) >= self._series:
                break
            if _key(topic) not in own:
                own[_key(topic)] = _counts(topic) if _key(topic) in self._seen else _NONE
        if len(self._seen) <= len(topics):  # bounded as the topics are
            self._seen.update(map(_key, topics))
        self._topics, self._own = topics, own

    def collect(self) -> Iterator[Metric]:
        """Everything counted until topics were last summed up."""
        topics, own = self._topics, self._own
        mine = [topic for topic in topics if _key(topic) in own]
        by = ("topic", "cluster") if any(topic.cluster for topic in topics) else ("topic",)
        samples = [(_names(topic), _less(_counts(topic), own[_key(topic)])) for topic in mine]
        rest = _NONE
        for topic in topics:
            counts = _counts(topic)
            rest = tuple(map(sum, zip(rest, own.get(_key(topic), counts), strict=True)))
        for at, (name, help) in enumerate(_COUNTERS):
            values = [(names, counts[at]) for names, counts in samples]
            yield Metric(name, help, "counter", by, [*values, ((OTHERS,) * len(by), rest[at])])
        lags = [(_names(topic), topic.lag) for topic in mine if topic.lag is not None]
        yield Metric("topic_lag_records", "High watermark less what consumers fetch next.", "gauge", by, lags)
        groups = [
            ((*_names(topic), label(group.group)), group.lag)
            for topic in mine
            for group in topic.groups[: self._series]
            if group.lag is not None
        ]
        help = "High watermark less what the group has committed."
        yield Metric("topic_group_lag_records", help, "gauge", (*by, "group"), groups[: self._series])
        for role, who in (("producers", "that produce"), ("consumers", "that consume")):
            people = [(_names(topic), sum(one.role != "replica" for one in getattr(topic, role))) for topic in mine]
            yield Metric(f"topic_{role}", f"Clients {who}, by topic.", "gauge", by, people)
        delays = [
            ((*_names(topic), quantile), value / 1e9)
            for topic in mine
            if (delay := topic.produce_to_consume) is not None
            for quantile, value in (("0.5", delay.p50_ns), ("0.99", delay.p99_ns))
        ]
        help = "From the answer to a Produce to the answer to a Fetch that carries its batch."
        yield Metric("topic_produce_to_consume_seconds", help, "gauge", (*by, "quantile"), delays)


def _key(topic: Topic) -> _Key:
    return topic.name, topic.cluster or ""


def _names(topic: Topic) -> tuple[str, ...]:
    """The labels of a topic: its name, and its cluster where there are several."""
    return (label(topic.name), label(topic.cluster)) if topic.cluster else (label(topic.name),)


def _counts(topic: Topic) -> _Counts:
    written, read = topic.produced, topic.consumed
    return written.records, written.size_bytes, read.records, read.size_bytes


def _less(counts: _Counts, before: _Counts) -> _Counts:
    return tuple(max(now - then, 0) for now, then in zip(counts, before, strict=True))
