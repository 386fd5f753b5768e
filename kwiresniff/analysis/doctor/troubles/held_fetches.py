"""Fetches that brokers hold although there are records, because ``fetch.min.bytes`` is not reached.

A record is late by its time in a held fetch: from its timestamp, or the request if that is later, to the answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import SLOW_NS, Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.analysis.record_counts import batches_in, records_in
from kwiresniff.analysis.topic_parts import structs
from kwiresniff.base.api_keys import FETCH
from kwiresniff.base.entities import TOPIC_ARRAYS
from kwiresniff.base.field_values import field_number
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Body, Exchange

#: The default of ``fetch.min.bytes``: any record ends the wait.
ANY_BYTES = 1
#: Held fetches of a client whose records are looked at; the body of each is decoded.
MAX_FETCHES = 200


@dataclass(slots=True, eq=False)
class _Held:
    """The held fetches of a client: its settings, what it got, and how late."""

    case: Case
    min_bytes: int = 0
    max_wait_ms: int = 0
    records: int = 0
    late_ns: int = 0
    longest_ns: int = 0
    largest_bytes: int = 0


class HeldFetches(Observer):
    """``held_fetches``: fetches of a consumer are held for a second or more until many bytes have come together.

    Numbers: ``min_bytes`` and ``max_wait_ms`` as it asks, ``fetches`` with ``records``, ``largest_bytes`` of them,
    ``mean_late_ns`` and ``longest_late_ns`` of their records.
    """

    kinds = ("held_fetches",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Held] = context.subjects(lambda: _Held(context.case()), 8)

    def slow(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        if exchange.api_key != FETCH or exchange.waiting != "long poll" or exchange.errors:
            return
        if request is None or response is None or response.first_ns - request.last_ns < SLOW_NS:
            return
        brought = self.context.brought(exchange)
        min_bytes = field_number((request.body or {}).get("min_bytes")) if brought else 0
        if min_bytes <= ANY_BYTES:
            return
        known = self._clients.of(client_of(exchange))
        if known is None or known.case.count >= MAX_FETCHES:
            return
        records, late_ns, longest_ns = _late(response.body or {}, request.last_ns, response.first_ns)
        if not records:
            return
        known.case.add(response.first_packet, request.last_ns, until_ns=response.first_ns)
        known.case.note("topics", dict.fromkeys(topic for topic, _ in brought))
        known.min_bytes, known.max_wait_ms = min_bytes, field_number((request.body or {}).get("max_wait_ms"))
        known.records += records
        known.late_ns += late_ns
        known.longest_ns = max(known.longest_ns, longest_ns)
        known.largest_bytes = max(known.largest_bytes, sum(part.size_bytes for _, part in brought))

    def observations(self) -> Iterator[Observation]:
        for client, known in self._clients.items():
            if not known.records:
                continue
            mean_ns = known.late_ns // known.records
            numbers = {
                "min_bytes": known.min_bytes,
                "max_wait_ms": known.max_wait_ms,
                "fetches": known.case.count,
                "records": known.records,
                "mean_late_ns": mean_ns,
                "longest_late_ns": known.longest_ns,
                "largest_bytes": known.largest_bytes,
            }
            harm = Harm(requests_late=known.case.count, late_ns=mean_ns * known.case.count)
            yield observation_of("held_fetches", known.case, {f"client:{client}"}, numbers, harm)


def _late(body: Body, asked_ns: int, answered_ns: int) -> tuple[int, int, int]:
    """The records of a Fetch response with timestamps, and how long they waited for it: the sum and the maximum.

    The first record of a batch has its base timestamp, the last its greatest; those between are taken as even.
    """
    records = late_ns = longest_ns = 0
    for topic in structs(body, TOPIC_ARRAYS):
        for part in structs(topic, ("partitions", "partition_responses")):
            for batch in batches_in(part):
                first, last = batch.get("base_timestamp"), batch.get("max_timestamp")
                if not isinstance(first, int) or not isinstance(last, int) or first < 0 or last < 0:
                    continue
                earliest_ns, latest_ns = (
                    min(max(answered_ns - at * MILLISECOND_NS, 0), answered_ns - asked_ns) for at in (first, last)
                )
                count = records_in(batch)
                records += count
                late_ns += (earliest_ns + latest_ns) // 2 * count
                longest_ns = max(longest_ns, earliest_ns)
    return records, late_ns, longest_ns


@cause("late_fetches", explains=("held_fetches",))
def late_fetches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`late_fetches` (warning): a consumer lets its broker hold its fetches for longer than the default of 500 ms until
    many bytes have come together (`fetch.min.bytes`, `fetch.max.wait.ms`), and records wait in the broker meanwhile.
    How long is told by their own timestamps. Must not be seen: waits of consumers that take any record at once.
    """
    numbers = one.numbers
    wait_ns = numbers["max_wait_ms"] * MILLISECOND_NS
    reached = numbers["largest_bytes"] >= numbers["min_bytes"]
    return told(
        one,
        f"lets the broker hold its fetches for up to {duration(wait_ns)} until there are "
        f"{numbers['min_bytes']:,} bytes{'' if reached else ', which never come together'}: its records are "
        f"{duration(numbers['mean_late_ns'])} late on average, {duration(numbers['longest_late_ns'])} at most",
        f"Lower fetch.max.wait.ms ({numbers['max_wait_ms']}) and fetch.min.bytes "
        f"({numbers['min_bytes']}) to what the application can wait for; by default the broker answers with "
        "the first record.",
        supports=(f"the largest answer had {numbers['largest_bytes']:,} bytes of records",),
        severity="warning",
    )
