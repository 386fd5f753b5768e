"""Topics, one block of lines each: what goes through it, then who produces, who consumes, what groups committed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.render import format_units
from kwiresniff.render.blocks import BlockWriter, cluster_name
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.render.names import name_chunks
from kwiresniff.render.one_line import NOTHING, Column, cluster_column, duration_cell, name_cell
from kwiresniff.results.stats import LatencySummary
from kwiresniff.results.topics import Topic, TopicClient, TopicFlow, TopicGroup

#: Clients and groups listed of a topic before the rest is only counted; JSON has them all.
ROWS_SHOWN: Final = 20
#: Partitions of a group that are named with their lag, the furthest behind first.
LAGGING_SHOWN: Final = 3
#: The age of records is shown when it is greater by as much than the time from produce to consume: clocks differ, and
#: producers wait for a batch to fill.
AGE_SHOWN_NS: Final = 1_000_000_000
_ACKS: Final = {-1: "acks all", 0: "acks 0", 1: "acks 1"}


class TopicWriter(BlockWriter):
    """Writes topics."""

    def topics(self, topics: Iterable[Topic]) -> None:
        """One block for each, an empty line between two."""
        for index, topic in enumerate(topics):
            self._between(index)
            self._line([[("ident", escape(topic.name))], *_headline(topic)])
            for label, chunks in _facts(topic):
                self._fact(label, chunks)


def topic_columns(topic: Topic) -> list[Column]:
    """A topic in a line; rates are over the whole time."""
    seconds = topic.seconds
    in_per_second = topic.produced.records / seconds if seconds >= 1 else None
    out_per_second = topic.consumed.records / seconds if seconds >= 1 else None
    delay = topic.produce_to_consume
    errors = sum(count for _, count in topic.errors)
    consumers = sum(one.role != "replica" for one in topic.consumers)
    return [
        Column("topic", True, "ident", name_cell(topic.name)),
        Column("partitions", False, "dim", str(len(topic.partitions))),
        Column("producers", False, "value", str(len(topic.producers))),
        Column("records_in", False, "value", str(topic.produced.records)),
        Column("bytes_in", False, "value", str(topic.produced.size_bytes)),
        Column("in/s", False, "value", _per_second(in_per_second)),
        Column("consumers", False, "value", str(consumers)),
        Column("records_out", False, "value", str(topic.consumed.records)),
        Column("bytes_out", False, "value", str(topic.consumed.size_bytes)),
        Column("out/s", False, "value", _per_second(out_per_second)),
        Column("groups", False, "dim", str(len(topic.groups))),
        Column("lag", False, "warn" if topic.lag else "value", NOTHING if topic.lag is None else str(topic.lag)),
        Column("delay_p99", False, "value", NOTHING if delay is None else duration_cell(delay.p99_ns)),
        Column("errors", False, "bad" if errors else "dim", str(errors)),
        *cluster_column(topic.cluster),
    ]


def _per_second(per_second: float | None) -> str:
    return NOTHING if per_second is None else f"{per_second:.1f}"


def _headline(topic: Topic) -> Iterator[Chunk]:
    if topic.cluster:
        yield [("dim", cluster_name(topic.cluster))]
    yield [("dim", format_units.count(len(topic.partitions), "partition"))]
    for word, flow in (("in", topic.produced), ("out", topic.consumed)):
        if flow.records:
            yield [("value", f"{word} {_records(flow)}{_rate(flow, topic.seconds)}")]
        elif flow is topic.produced and (topic.refused.batches or topic.repeated.batches):
            yield [("value", "in no records")]
    yield from _not_taken(topic.refused, topic.repeated)
    if topic.lag is not None:
        yield [("warn" if topic.lag else "good", f"lag {topic.lag:,}")]


def _not_taken(refused: TopicFlow, repeated: TopicFlow) -> Iterator[Chunk]:
    """Batches that producers sent and brokers did not append."""
    if refused.batches:
        yield [("bad", f"refused {_records(refused)}")]
    if repeated.batches:
        yield [("warn", f"repeated {_records(repeated)}")]


def _records(flow: TopicFlow) -> str:
    return f"{format_units.count(flow.records, 'record')} {format_units.size(flow.size_bytes)}"


def _rate(flow: TopicFlow, seconds: float) -> str:
    if seconds < 1:
        return ""
    return f" ({flow.records / seconds:,.1f}/s, {format_units.size(round(flow.size_bytes / seconds))}/s)"


def _facts(topic: Topic) -> Iterator[tuple[str, list[Chunk]]]:
    if topic.errors:
        yield "errors", [[("bad", f"{escape(name)} {count:,}")] for name, count in topic.errors]
    for label, clients in (("producer", topic.producers), ("consumer", topic.consumers)):
        for client in clients[:ROWS_SHOWN]:
            yield client.role if client.role == "replica" else label, list(_client(client))
        if len(clients) > ROWS_SHOWN:
            yield label, [[("dim", f"and {len(clients) - ROWS_SHOWN:,} more")]]
    for group in topic.groups[:ROWS_SHOWN]:
        yield "group", list(_group(group))
    if len(topic.groups) > ROWS_SHOWN:
        yield "group", [[("dim", f"and {len(topic.groups) - ROWS_SHOWN:,} more")]]
    if topic.produce_to_consume is not None:
        yield "delay", [[("value", _waits(topic.produce_to_consume))], [("dim", "from produce to consume")]]
    if topic.record_age is not None and _is_older(topic.record_age, topic.produce_to_consume):
        yield "age", [[("value", _waits(topic.record_age))], [("dim", "from a record's timestamp to its delivery")]]


def _client(client: TopicClient) -> Iterator[Chunk]:
    yield [("ident" if client.client_id else "dim", escape(client.client_id or "") or NO_CLIENT_ID)]
    yield [("value", escape(client.address))]
    yield from name_chunks(client.names)
    name, version = client.software
    if name:
        yield [("client", escape(f"{name} {version or ''}".strip()))]
    if client.principal:
        yield [("value", f"user {escape(client.principal)}")]
    if client.role == "share consumer":
        yield [("value", "share group")]
    for group in client.groups:
        yield [("value", f"group {escape(group)}")]
    flow = client.flow
    yield [("value", _records(flow) if flow.records else "no records")]
    if flow.batches:
        each = (
            f"{flow.records / flow.batches:,.1f} records and {format_units.size(flow.size_bytes // flow.batches)} each"
        )
        yield [("dim", f"in {format_units.count(flow.batches, 'batch', 'batches')} of {each}")]
    yield from _not_taken(client.refused, client.repeated)
    if any(codec != "none" for codec, _ in client.compression):
        yield [("value", "+".join(escape(codec) for codec, _ in client.compression))]
    if client.role == "producer":
        yield [("value", ", ".join(_ACKS.get(acks, f"acks {acks}") for acks in client.acks))]
        if client.transactional_ids:
            yield [("value", f"transactional {escape(', '.join(client.transactional_ids))}")]
        elif client.idempotent:
            yield [("value", "idempotent")]
    elif client.partitions:
        yield [("dim", f"partitions {format_units.number_ranges(client.partitions)}")]
    if client.lag is not None and client.role != "producer":
        yield [("warn" if client.lag else "good", f"lag {client.lag:,}")]
    if client.unanswered:
        yield [("bad", f"{format_units.count(client.unanswered, 'request')} unanswered")]
    if client.errors:
        yield [("bad", format_units.count(client.errors, "error"))]


def _group(group: TopicGroup) -> Iterator[Chunk]:
    yield [("ident", escape(group.group) or '""')]
    yield [("value", f"committed in {format_units.count(len(group.partitions), 'partition')}")]
    if group.lag is None:
        yield [("dim", "lag not known: no high watermark in the capture")]
        return
    yield [("warn" if group.lag else "good", f"lag {group.lag:,}")]
    behind = sorted(((lag, index) for index, _, lag in group.partitions if lag), reverse=True)[:LAGGING_SHOWN]
    if behind and len(group.partitions) > 1:
        yield [("dim", ", ".join(f"{lag:,} in partition {index}" for lag, index in behind))]


def _is_older(age: LatencySummary, delay: LatencySummary | None) -> bool:
    """Whether the age of records says more than the time from produce to consume."""
    return age.max_ns - (0 if delay is None else delay.max_ns) >= AGE_SHOWN_NS


def _waits(latency: LatencySummary) -> str:
    p50, p99, most = map(format_units.duration, (latency.p50_ns, latency.p99_ns, latency.max_ns))
    return f"p50 {p50}, p99 {p99}, max {most}"
