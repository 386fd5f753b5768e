"""Fetches from offsets outside the log: the partition, the offset, and the range that the log has.

The error does not give the range. ListOffsets and DeleteRecords answers, and later fetches of the partition, do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import DELETE_RECORDS, FETCH, LIST_OFFSETS
from kwiresniff.base.field_values import field_number
from kwiresniff.model import Exchange

OUT_OF_RANGE = "OFFSET_OUT_OF_RANGE"
#: ``timestamp`` of ListOffsets for the ends of the log.
LATEST, EARLIEST = -1, -2
#: Partitions whose range is remembered.
MAX_RANGES = 10_000
#: Partitions listed of one client.
MAX_LISTED = 12
_Partition = tuple[str, str, int]


@dataclass(slots=True, eq=False)
class _Range:
    """The first offset of the log and its end, -1 where not known; ``deleter`` deleted the records below
    ``deleted``."""

    first: int = -1
    end: int = -1
    deleted: int = -1
    deleter: str = ""


class OutOfRange(CountingObserver):
    """``offset_out_of_range``: a client asked for offsets that are not in the log.

    Notes: ``apis``, ``topics``, ``concerns``, ``messages``. Numbers: ``asked``, the offset and the range of each
    partition; ``deleted``, how many records from these offsets on DeleteRecords had deleted, and ``deleted_by``.
    """

    kinds = ("offset_out_of_range",)
    apis = frozenset({DELETE_RECORDS, LIST_OFFSETS, FETCH})
    judges = frozenset({OUT_OF_RANGE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._asked: dict[tuple[str, _Partition], int] = {}
        #: How many of the records from that offset on had been deleted, and by whom.
        self._lost: dict[tuple[str, _Partition], tuple[int, str]] = {}
        self._ranges: Subjects[_Partition, _Range] = context.subjects(_Range, 5, MAX_RANGES)
        self._wanted = 0

    def exchange(self, exchange: Exchange) -> None:
        """Learns the ends of logs from ListOffsets, and from fetches while some are not known."""
        if exchange.api_key == FETCH and self._wanted > 0:
            self._fetch(exchange)
        elif exchange.api_key == LIST_OFFSETS:
            self._list_offsets(exchange)
        elif exchange.api_key == DELETE_RECORDS:
            self._delete_records(exchange)

    def failure(self, exchange: Exchange) -> None:
        places = error_places(exchange, self.context, self.judges)
        if not places:
            return
        asked = _fetch_offsets(exchange, self.context)
        client = client_of(exchange)
        case = self.cases.case(client)
        case.add(*place_of(exchange))
        case.note("apis", [exchange.api])
        case.note("brokers", [exchange.connection.broker])
        for place in places:
            partition = self.context.cluster.of(exchange.connection.broker), place.topic, place.partition
            place.note(case)
            range_ = self._ranges.of(partition)
            if range_ is not None and (range_.first < 0 or range_.end < 0):
                self._wanted += 1
            offset = asked.get((place.topic, place.partition))
            if offset is not None and len(self._asked) < MAX_RANGES:
                self._asked[client, partition] = offset
                if range_ is not None and offset < range_.deleted:
                    self._lost[client, partition] = range_.deleted - offset, range_.deleter

    def _list_offsets(self, exchange: Exchange) -> None:
        cluster = self.context.cluster.of(exchange.connection.broker)
        asked = self.context.members(request_body(exchange))
        kinds = {(name, one.get("partition_index")): one.get("timestamp") for name, one in asked}
        for name, one in self.context.members(response_body(exchange)):
            kind, offset = kinds.get((name, one.get("partition_index"))), one.get("offset", -1)
            if one.get("error_code") or kind not in (LATEST, EARLIEST) or offset < 0:
                continue
            known = self._ranges.of((cluster, name, one.get("partition_index", -1)))
            if known is not None:
                known.first, known.end = (offset, known.end) if kind == EARLIEST else (known.first, offset)

    def _delete_records(self, exchange: Exchange) -> None:
        cluster = self.context.cluster.of(exchange.connection.broker)
        for name, one in self.context.members(response_body(exchange)):
            known = self._ranges.of((cluster, name, one.get("partition_index", -1)))
            if known is not None and not one.get("error_code"):
                known.first = known.deleted = max(one.get("low_watermark", -1), known.first)
                known.deleter = client_of(exchange)

    def _fetch(self, exchange: Exchange) -> None:
        cluster = self.context.cluster.of(exchange.connection.broker)
        for name, one in self.context.members(response_body(exchange), "responses"):
            known = self._ranges.get((cluster, name, one.get("partition_index", -1)))
            if known is not None and not one.get("error_code"):
                first, end = one.get("log_start_offset", -1), one.get("high_watermark", -1)
                self._wanted -= end >= 0 and known.end < 0 and self._wanted > 0
                known.first, known.end = max(first, known.first), end if end >= 0 else known.end

    def observations(self) -> Iterator[Observation]:
        for client, _, case in self.cases:
            asked = [
                _told(partition, offset, self._ranges.get(partition) or _Range())
                for (who, partition), offset in self._asked.items()
                if who == client
            ]
            lost = [one for (who, _), one in self._lost.items() if who == client]
            numbers: dict[str, Any] = {"asked": asked[:MAX_LISTED]}
            if lost:
                numbers |= {"deleted": sum(count for count, _ in lost), "deleted_by": sorted({by for _, by in lost})}
            yield self.observed(client, "", case, **numbers)


def _told(partition: _Partition, offset: int, known: _Range) -> dict[str, str | int | None]:
    return {
        "partition": f"{partition[1]}-{partition[2]}",
        "offset": offset,
        "log_start_offset": known.first if known.first >= 0 else None,
        "log_end_offset": known.end if known.end >= 0 else None,
    }


def _fetch_offsets(exchange: Exchange, context: Context) -> dict[tuple[str, int], int]:
    """Offsets that a request names, by topic and partition."""
    return {
        (topic, field_number(one.get("partition", one.get("partition_index", -1)))): offset
        for topic, one in context.members(request_body(exchange))
        if isinstance(offset := one.get("fetch_offset", one.get("offset")), int)
    }


@cause("offset_out_of_range", explains=("offset_out_of_range",))
def offset_out_of_range(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`offset_out_of_range` (warning): a fetch from outside the log; with the partition, the offset asked for, and the
    range there was as far as the capture shows it. Where the record at that offset was deleted by DeleteRecords in the
    capture, who did it, and how many records were deleted from that offset on.
    """
    asked, apis = one.numbers["asked"], one.noted("apis")
    texts = [f"{each['partition']} from offset {each['offset']}; {_range(each)}" for each in asked]
    often = f", {times(one.count)}" if one.count > 1 else ""
    lost, by_whom = one.numbers.get("deleted", 0), one.numbers.get("deleted_by", [])
    deleted = f"; {listed(by_whom)} had deleted {counted(lost, 'record')} from there on (DeleteRecords)" if lost else ""
    return told(
        one,
        f"{OUT_OF_RANGE}: asks for {listed(texts, 3) or listed(one.noted('concerns'))}{often}{deleted}",
        _DELETED if lost else _remedy(asked),
        severity="warning" if "Fetch" in apis else "info",
        numbers={
            "error": OUT_OF_RANGE,
            "concerns": [*apis, *one.noted("concerns")],
            "partitions": asked,
            **({"deleted": lost, "deleted_by": by_whom} if lost else {}),
            "error_messages": one.noted("messages"),
        },
    )


def _range(asked: dict[str, Any]) -> str:
    first, end = asked["log_start_offset"], asked["log_end_offset"]
    if first is not None and end is not None:
        return f"the log holds {first} to {end}"
    if end is not None:
        return f"the log ends at {end}"
    return f"the log begins at {first}" if first is not None else "its range is not in the capture"


def _remedy(asked: list[dict[str, Any]]) -> str:
    beyond = any(each["log_end_offset"] is not None and each["log_end_offset"] < each["offset"] for each in asked)
    before = any(each["offset"] < (each["log_start_offset"] or 0) for each in asked)
    if beyond and not before:
        return (
            "The offset lies beyond the end: the topic was made anew or truncated (an unclean leader election), or the "
            "offset comes from another cluster. auto.offset.reset says where the consumer goes on."
        )
    if before and not beyond:
        return (
            "The offset has been deleted by retention: the consumer was slower than that, records were skipped. Look "
            "at its lag and at retention.ms and retention.bytes of the topic."
        )
    return (
        "The consumer was slower than retention, or the log was truncated: records were skipped or will be read again, "
        "as auto.offset.reset says."
    )


_DELETED = (
    "The records were deleted before this consumer had read them: see what the groups of a topic have committed before "
    "its records are deleted (kafka-consumer-groups --describe), or leave that to retention.ms."
)
