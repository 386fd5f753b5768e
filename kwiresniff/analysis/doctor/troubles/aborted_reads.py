"""Consumers without ``isolation.level=read_committed`` that are given records of aborted transactions (KIP-98).

What a transaction wrote, and that it was aborted, shows in the producer's Produce and EndTxn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, TypeAlias

from kwiresniff.analysis.body_entities import message_transactional_ids
from kwiresniff.analysis.doctor.bodies import request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import END_TXN, FETCH, PRODUCE
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange

#: ``isolation_level`` of a Fetch that wants committed records only.
READ_COMMITTED: Final = 1
#: Transactional ids, partitions of an open transaction, ranges of aborted records, and readers remembered.
MAX_WRITERS: Final = 5_000
MAX_OPEN: Final = 500
MAX_ABORTED: Final = 20_000
MAX_READERS: Final = 5_000

#: Entries of memory for the offsets that a transaction wrote to a partition.
_RANGE_ENTRIES: Final = 4

_Partition: TypeAlias = tuple[str, str, int]
_Range: TypeAlias = tuple[int, int]


@dataclass(slots=True, eq=False)
class _Reader:
    """The offsets of a partition that a consumer without ``read_committed`` was given."""

    case: Case
    first: int = -1
    end: int = -1


class AbortedReads(Observer):
    """``aborted_read``: a consumer was given records of transactions that were aborted.

    By client and topic. Numbers: ``topic``, ``records``, ``transactions``, ``producers`` by their transactional ids.
    """

    kinds = ("aborted_read",)
    apis = frozenset({PRODUCE, FETCH, END_TXN})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._open: Subjects[str, list[tuple[_Partition, _Range]]] = context.subjects(list, 2, MAX_WRITERS)
        self._aborted: dict[_Partition, list[tuple[_Range, str]]] = {}
        self._ranges = 0
        self._has_written = False  # any transaction; what was read before cannot be of one
        self._readers: Subjects[tuple[str, str, str, int], _Reader] = context.subjects(
            lambda: _Reader(context.case()), 3, MAX_READERS
        )

    def exchange(self, exchange: Exchange) -> None:
        if exchange.errors:
            return
        if exchange.api_key == FETCH:
            if self._has_written:
                self._read(exchange)
        elif exchange.api_key == PRODUCE:
            self._write(exchange)
        else:
            body = request_body(exchange)
            name = clipped(field_text(body.get("transactional_id")))
            aborted = not body.get("committed", True)
            for partition, offsets in self._open.pop(name, []):
                if aborted and self._ranges < MAX_ABORTED:
                    self._ranges += 1
                    self._aborted.setdefault(partition, []).append((offsets, name))
                else:
                    self.context.budget.release(_RANGE_ENTRIES * ENTRY_BYTES)

    def _write(self, exchange: Exchange) -> None:
        names = message_transactional_ids(exchange.request)
        written = self._open.of(clipped(names[0])) if names else None
        if written is None:
            return
        self._has_written = True
        cluster_id = self.context.cluster.of(exchange.connection.broker)
        for name, part, answer in self.context.written(exchange):
            offset, count = answer.offset if answer is not None else -1, part.records
            if offset >= 0 and count and self.context.has_room(written, MAX_OPEN, entries=_RANGE_ENTRIES):
                written.append(((cluster_id, name, part.index), (offset, offset + count)))

    def _read(self, exchange: Exchange) -> None:
        request = request_body(exchange)
        if not request or request.get("isolation_level") == READ_COMMITTED:
            return
        client, cluster_id = client_of(exchange), self.context.cluster.of(exchange.connection.broker)
        for topic, part in self.context.brought(exchange):
            reader = self._readers.of((client, cluster_id, topic, part.index))
            if reader is not None:
                reader.case.add(*place_of(exchange))
                reader.first = part.first_offset if reader.first < 0 else min(reader.first, part.first_offset)
                reader.end = max(reader.end, part.end_offset)

    def observations(self) -> Iterator[Observation]:
        found: dict[tuple[str, str], list[tuple[Case, int, str]]] = {}
        for (client, cluster_id, topic, index), reader in self._readers.items():
            for (first, end), name in self._aborted.get((cluster_id, topic, index), ()):
                records = min(end, reader.end) - max(first, reader.first)
                if records > 0:
                    found.setdefault((client, topic), []).append((reader.case, records, name))
        for (client, topic), parts in found.items():
            case = self.context.case(dict.fromkeys(one for one, _, _ in parts))
            case.count = records = sum(records for _, records, _ in parts)
            producers = sorted({name for _, _, name in parts})
            numbers = {"topic": topic, "records": records, "producers": producers}
            about = [f"client:{client}", f"topic:{topic}", *[f"transaction:{name}" for name in producers]]
            yield observation_of("aborted_read", case, about, numbers, Harm(requests_late=len(parts)))


@cause("aborted_records_read", explains=("aborted_read",))
def uncommitted_reads(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`aborted_records_read` (warning): a consumer that does not ask for committed records only was given records of
    transactions that their producer aborted. Seen must be where the transaction wrote, the EndTxn that aborts it, and a
    Fetch with `isolation_level` 0 that brought these offsets. A consumer that is meant to see all that was written, as
    one that copies a log, looks the same.
    """
    numbers = one.numbers
    return told(
        one,
        f"was given {counted(numbers['records'], 'record')} of {numbers['topic']} whose transactions were aborted "
        f"(transactional id {listed(numbers['producers'])}): it reads what is not committed "
        "(isolation.level=read_uncommitted)",
        "Set isolation.level=read_committed, which is not the default of most clients, for whoever must not act on "
        "what a producer takes back.",
        severity="warning",
    )
