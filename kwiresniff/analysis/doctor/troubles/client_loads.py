"""The share of all requests and of all bytes that a client has, or several that are alike, and how long others wait
meanwhile.

Alike are clients whose ids differ in nothing but numbers. What is asked changes nothing: Metadata, lists, descriptions,
offsets of groups. Others' waits are the broker's part of their Produce requests, by the time in which the many requests
or bytes come and the time in which none does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from statistics import median
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, NUMBER_BYTES, text_bytes
from kwiresniff.base.api_keys import API_VERSIONS, FIND_COORDINATOR, METADATA, OFFSET_FETCH, PRODUCE
from kwiresniff.base.placeholders import NO_CLIENT_ID, OTHERS
from kwiresniff.model import Connection, Exchange

#: Kinds of clients that are remembered, and their connections.
MAX_LOADS = 500
MAX_CONNECTIONS = 20_000
#: APIs of each that are counted apart; Kafka has fewer than a hundred.
MAX_APIS = 100
#: Parts of the time of a capture in which requests are counted apart; when there are as many, two become one.
MAX_PARTS = 256
FIRST_PART_NS: Final = 250_000_000
#: Waits kept of each part, to take their median.
MAX_WAITS = 8
#: Requests of a client below which nothing is said of its share; waits below which none of theirs.
ENOUGH_REQUESTS = 500
ENOUGH_WAITS = 20
#: Bytes in the busiest part of the time below which nothing is said of a client's share of them; and how much longer
#: others must wait then: as long as producers linger by default.
ENOUGH_BYTES = 1_000_000
LATE_NS: Final = 5_000_000
#: APIs that only ask, besides those whose names say that they list or describe.
_ASKS: Final = frozenset({METADATA, FIND_COORDINATOR, OFFSET_FETCH, API_VERSIONS})
#: What a client asks any broker, on a connection of its own at first.
_ANYWHERE: Final = frozenset({API_VERSIONS, METADATA, FIND_COORDINATOR})


class _Load:
    """The requests of clients that are alike."""

    __slots__ = ("apis", "asked", "case", "counts", "instances", "sizes", "sizes_of", "waits")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.apis: dict[str, int] = {}
        self.asked = 0
        self.counts: list[int] = []
        self.sizes: list[int] = []
        self.sizes_of: dict[str, int] = {}
        self.waits: list[list[int]] = []
        #: By broker, connections on which it has asked more than what any broker answers.
        self.instances: dict[str, int] = {}


class _Line:
    """A connection of such a client."""

    __slots__ = ("is_counted", "load")

    def __init__(self, load: _Load) -> None:
        self.load = load
        self.is_counted = False


class ClientLoads(Observer):
    """``client_load``: clients that are alike send more than half of all requests, most of which only ask;
    ``byte_load``: they send and receive more than half of all bytes, and others wait 5 ms longer meanwhile, and twice
    as long.

    Numbers: ``share`` of all requests, ``byte_share`` of all bytes, ``per_second``, ``bytes_per_second`` while it was
    busy, ``apis`` with their counts, ``instances``, and of each client that waited twice as long meanwhile,
    ``before_ns`` and ``during_ns`` (medians).
    """

    kinds: ClassVar[tuple[str, ...]] = ("client_load", "byte_load")
    apis: ClassVar[frozenset[int] | None] = None

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._loads: Subjects[str, _Load] = context.subjects(lambda: _Load(context.case()), 3 * MAX_PARTS, MAX_LOADS)
        self._on: dict[int, _Line] = {}
        self._part_ns = FIRST_PART_NS
        self._count = 0
        self._bytes = 0

    def exchange(self, exchange: Exchange) -> None:
        """Counts a request of any API."""
        request = exchange.request
        if request is None:
            return
        self._count += 1
        response = exchange.response
        size = request.size_bytes + (response.size_bytes if response is not None else 0)
        self._bytes += size
        line = self._on.get(exchange.connection.id) or self._new(exchange)
        if line is None:
            return
        load, api_key = line.load, exchange.api_key
        load.case.add(request.first_packet, request.first_ns)
        api = exchange.api if exchange.api in load.apis or len(load.apis) < MAX_APIS else OTHERS
        load.apis[api] = load.apis.get(api, 0) + 1
        load.asked += api_key in _ASKS or "List" in exchange.api or "Describe" in exchange.api
        if not line.is_counted and api_key not in _ANYWHERE:
            line.is_counted = True
            broker = exchange.connection.broker
            if broker in load.instances or self.context.budget.admit(ENTRY_BYTES + text_bytes(broker)):
                load.instances[broker] = load.instances.get(broker, 0) + 1
        part = max(request.first_ns - self.context.begin_ns, 0) // self._part_ns
        while part >= MAX_PARTS:
            self._widen()
            part //= 2
        counts = load.counts
        while len(counts) <= part:
            counts.append(0)
            load.sizes.append(0)
            load.waits.append([])
        counts[part] += 1
        load.sizes[part] += size
        load.sizes_of[api] = load.sizes_of.get(api, 0) + size
        if api_key == PRODUCE and len(load.waits[part]) < MAX_WAITS:
            wait_ns = exchange.broker_ns
            if wait_ns is not None and self.context.budget.admit(NUMBER_BYTES):
                load.waits[part].append(wait_ns)

    def connection(self, connection: Connection) -> None:
        """One that has ended."""
        self._on.pop(connection.id, None)

    def _new(self, exchange: Exchange) -> _Line | None:
        load = self._loads.of(_alike(exchange.client_id)) if len(self._on) < MAX_CONNECTIONS else None
        if load is None:
            return None
        load.case.note("clients", [client_of(exchange)])
        line = self._on[exchange.connection.id] = _Line(load)
        return line

    def _widen(self) -> None:
        """Makes each part of the time twice as long."""
        self._part_ns *= 2
        for load in self._loads.values():
            counts, waits = load.counts, load.waits
            load.counts = [sum(counts[at : at + 2]) for at in range(0, len(counts), 2)]
            load.sizes = [sum(load.sizes[at : at + 2]) for at in range(0, len(load.sizes), 2)]
            load.waits = [[*chain(*waits[at : at + 2])][:MAX_WAITS] for at in range(0, len(waits), 2)]

    def observations(self) -> Iterator[Observation]:
        for name, load in self._loads.items():
            total = sum(load.sizes)
            asks = load.case.count * 2 > self._count and load.asked * 2 > load.case.count >= ENOUGH_REQUESTS
            if asks:
                yield self._observation("client_load", name, load, self._slowed(load, load.counts))
            elif total * 2 > self._bytes and max(load.sizes, default=0) >= ENOUGH_BYTES:
                slowed = [
                    one for one in self._slowed(load, load.sizes) if one["during_ns"] - one["before_ns"] >= LATE_NS
                ]
                if slowed:
                    yield self._observation("byte_load", name, load, slowed)

    def _slowed(self, load: _Load, amounts: list[int]) -> list[dict[str, Any]]:
        """The others that waited longer while there was much of it."""
        others = [(other, its) for other, its in self._loads.items() if its is not load]
        return [one for other, its in others if (one := _slowed(other, its, amounts)) is not None]

    def _observation(self, kind: str, name: str, load: _Load, slowed: list[dict[str, Any]]) -> Observation:
        case, total = load.case, sum(load.sizes)
        apis = sorted(load.apis.items(), key=lambda one: -one[1])
        rate, share, byte_share = case.count / case.seconds, case.count / self._count, total / self._bytes
        busy_s = len(_busy(load.sizes)) * self._part_ns / 1e9
        clients, _seen_ns = case.noted("clients"), case.last_ns - case.first_ns
        who = clients[0] if len(clients) == 1 else name
        instances = max(load.instances.values(), default=1)
        bytes_of = sorted(load.sizes_of.items(), key=lambda one: -one[1])
        return observation_of(
            kind,
            case,
            (),
            {
                "subject": who,
                "share": round(share, 3),
                "byte_share": round(byte_share, 3),
                "per_second": round(rate, 1),
                "bytes": total,
                "bytes_per_second": round(total / busy_s) if busy_s else 0,
                "mostly": bytes_of[0][0] if bytes_of else "",
                "requests": case.count,
                "apis": dict(apis[:20]),
                "instances": instances,
                "slowed": slowed,
            },
            Harm(
                requests_late=sum(one["requests"] for one in slowed),
                late_ns=sum(one["requests"] * (one["during_ns"] - one["before_ns"]) for one in slowed),
            ),
        )


def _alike(client_id: str | None) -> str:
    """What client ids that differ in numbers only have in common."""
    return re.sub(r"[0-9]+", "#", clipped(client_id)) if client_id else NO_CLIENT_ID


def _busy(amounts: list[int]) -> set[int]:
    """The parts of the time in which there was much of it: a tenth of the most, and more."""
    least = max(amounts, default=0) // 10
    return {part for part, amount in enumerate(amounts) if amount > least}


def _slowed(name: str, other: _Load, amounts: list[int]) -> dict[str, Any] | None:
    """How much longer the Produce requests of a client waited while others sent their many requests or bytes; None
    where they did not wait twice as long."""
    busy = _busy(amounts)
    idle = {part for part in range(len(other.counts)) if part >= len(amounts) or not amounts[part]}
    during = [one for part in busy if part < len(other.waits) for one in other.waits[part]]
    before = [one for part in idle for one in other.waits[part]]
    if min(len(during), len(before)) < ENOUGH_WAITS or median(during) < 2 * median(before):
        return None
    requests = sum(other.counts[part] for part in busy if part < len(other.counts))
    return {"client": name, "before_ns": int(median(before)), "during_ns": int(median(during)), "requests": requests}
