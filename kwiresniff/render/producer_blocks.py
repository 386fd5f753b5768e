"""Producers, one block of lines each: who they are, what is wrong with their sequences, then their transactions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from kwiresniff.render import format_units
from kwiresniff.render.blocks import BlockWriter, cluster_name
from kwiresniff.render.escape import escape
from kwiresniff.render.line_wrapping import Chunk
from kwiresniff.results.producers import Fencing, Producer, Transaction

#: Transactions, partitions and fencings listed of a producer before the rest is only counted; JSON has more.
ROWS_SHOWN: Final = 20
NAMES_SHOWN: Final = 6
_KINDS: Final = {"committed": "good", "aborted": "warn", "fenced": "bad", "open": "warn"}


class ProducerWriter(BlockWriter):
    """Writes producers."""

    def producers(self, producers: Iterable[Producer], until_ns: int = 0) -> None:
        """One block for each, an empty line between two. ``until_ns`` is the end of the capture: transactions that do
        not end in it are open until then."""
        for index, producer in enumerate(producers):
            self._between(index)
            self._line(list(_headline(producer)))
            for label, chunks in self._facts(producer, until_ns):
                self._fact(label, chunks)

    def _facts(self, producer: Producer, until_ns: int) -> Iterator[tuple[str, list[Chunk]]]:
        if producer.errors:
            yield "errors", [[("bad", f"{escape(name)} {count:,}")] for name, count in producer.errors]
        for flaw in producer.flaws[:ROWS_SHOWN]:
            parts: list[Chunk] = [[("ident", escape(flaw.partition))]]
            if flaw.missing_records:
                parts.append([("warn", f"{format_units.count(flaw.missing_records, 'record')} missing")])
            if flaw.duplicate_batches:
                parts.append(
                    [("value", f"{format_units.count(flaw.duplicate_batches, 'batch', 'batches')} sent again")]
                )
            if flaw.reused_sequences:
                reused = format_units.count(flaw.reused_sequences, "batch", "batches")
                parts.append([("bad", f"{reused} with the sequence of another")])
            yield "sequence", parts
        if len(producer.flaws) > ROWS_SHOWN:
            yield "sequence", [[("dim", f"and {len(producer.flaws) - ROWS_SHOWN:,} more partitions")]]
        shown = producer.transactions[-ROWS_SHOWN:]
        ended = sum(count for _, count in producer.ended)
        if ended > len(shown):
            yield "", [[("dim", f"{ended - len(shown):,} transactions before these")]]
        for one in shown:
            yield one.state, list(self._transaction(one, max(producer.last_ns, until_ns)))
        for fencing in producer.fencings[:ROWS_SHOWN]:
            yield "fenced", list(self._fencing(fencing))

    def _transaction(self, one: Transaction, until_ns: int) -> Iterator[Chunk]:
        if one.begin_ns is None:
            yield [("dim", "from before the capture")]
        else:
            yield [("value", format_units.clock(one.begin_ns, 3))]
        if one.begin_ns is not None:
            end_ns = one.end_ns if one.end_ns is not None else until_ns
            lasted = end_ns - one.begin_ns
            words = "" if one.end_ns is not None else " at least"
            yield [(_KINDS.get(one.state, "value"), f"{format_units.duration(lasted)}{words}")]
        if one.by:
            yield [("warn", f"ended by {escape(one.by)}")]
        yield [("dim", f"epoch {one.epoch}")]
        if one.records:
            yield [("value", format_units.count(one.records, "record"))]
        if one.partitions:
            yield [("value", _listed(one.partitions))]
        for group in one.groups[:NAMES_SHOWN]:
            yield [("value", f"offsets of group {escape(group)}")]
        yield [("dim", self._in_packet(one.packet))]

    def _fencing(self, one: Fencing) -> Iterator[Chunk]:
        yield [("value", format_units.clock(one.timestamp_ns, 3))]
        yield [("bad", escape(one.error))]
        yield [("ident", escape(one.client)), ("dim", f" epoch {one.epoch}")]
        if one.by_epoch >= 0:
            yield [("value", f"by {escape(one.by_client)}"), ("dim", f" epoch {one.by_epoch}")]
        yield [("dim", self._in_packet(one.packet))]


def _headline(producer: Producer) -> Iterator[Chunk]:
    yield [("ident", f"producer {producer.producer_id}")]
    if producer.cluster:
        yield [("dim", cluster_name(producer.cluster))]
    low, high = producer.epochs
    yield [("dim", f"epoch {high}" if low == high else f"epochs {low} to {high}")]
    if producer.transactional_id is not None:
        yield [("ident", f"transactional {escape(producer.transactional_id)}")]
    elif not producer.ended:
        yield [("value", "idempotent")]
    for client in producer.clients[:NAMES_SHOWN]:
        yield [("client", escape(client))]
    if producer.batches:
        batches = format_units.count(producer.batches, "batch", "batches")
        partitions = format_units.count(producer.partitions, "partition")
        yield [("value", f"{format_units.count(producer.records, 'record')} in {batches} to {partitions}")]
    if producer.ended:
        yield [("value", ", ".join(f"{count:,} {state}" for state, count in producer.ended))]
    if producer.longest_ns is not None:
        yield [("dim", f"longest {format_units.duration(producer.longest_ns)}")]
    if producer.timeout_ms is not None and producer.transactional_id is not None:
        yield [("dim", f"transaction.timeout.ms {producer.timeout_ms:,}")]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMES_SHOWN:,} more" if len(names) > NAMES_SHOWN else ""
    return ", ".join(map(escape, names[:NAMES_SHOWN])) + more
