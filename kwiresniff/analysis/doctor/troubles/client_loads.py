"""The share of a client, or of several that are alike, in all requests and bytes, and how long others wait meanwhile.

Clients are alike whose ids differ in nothing but numbers. The waits of others are the broker's part of their Produce
requests, in the times with many requests or bytes and in those with none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from statistics import median
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.cause import WASTE, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import duration, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, NUMBER_BYTES, text_bytes
from kwiresniff.base.api_keys import API_VERSIONS, FIND_COORDINATOR, METADATA, OFFSET_FETCH, PRODUCE
from kwiresniff.base.placeholders import NO_CLIENT_ID, OTHERS
from kwiresniff.model import Connection, Exchange

#: Kinds of clients that are remembered, and their connections.
MAX_LOADS = 500
MAX_CONNECTIONS = 20_000
#: APIs of each that are counted apart.
MAX_APIS = 100
#: Parts of the capture's time that are counted apart; when there are more, each two become one.
MAX_PARTS = 256
FIRST_PART_NS: Final = 250_000_000
#: Waits kept of each part, to take their median.
MAX_WAITS = 8
#: Requests of a client, and waits of others, below which nothing is said.
ENOUGH_REQUESTS = 500
ENOUGH_WAITS = 20
#: Bytes in the busiest part below which nothing is said of a client's share, and how much longer others must wait.
ENOUGH_BYTES = 1_000_000
LATE_NS: Final = 5_000_000
#: APIs that only ask, besides those named List or Describe.
_ASKS: Final = frozenset({METADATA, FIND_COORDINATOR, OFFSET_FETCH, API_VERSIONS})
#: What a client asks any broker, at first on a connection of its own.
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
        #: By broker, connections with more than what any broker answers.
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
        self._on.pop(connection.id, None)

    def _new(self, exchange: Exchange) -> _Line | None:
        load = self._loads.of(_alike(exchange.client_id)) if len(self._on) < MAX_CONNECTIONS else None
        if load is None:
            return None
        load.case.note("clients", [client_of(exchange)])
        return self._on.setdefault(exchange.connection.id, _Line(load))

    def _widen(self) -> None:
        """Makes each part twice as long."""
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
        case, total, clients = load.case, sum(load.sizes), load.case.noted("clients")
        apis = sorted(load.apis.items(), key=lambda one: -one[1])
        busy_s = len(_busy(load.sizes)) * self._part_ns / 1e9
        numbers = {
            "subject": clients[0] if len(clients) == 1 else name,
            "share": round(case.count / self._count, 3),
            "byte_share": round(total / self._bytes, 3),
            "per_second": round(case.count / case.seconds, 1),
            "bytes": total,
            "bytes_per_second": round(total / busy_s) if busy_s else 0,
            "mostly": max(load.sizes_of, key=lambda api: load.sizes_of[api], default=""),
            "requests": case.count,
            "apis": dict(apis[:20]),
            "instances": max(load.instances.values(), default=1),
            "slowed": slowed,
        }
        late_ns = sum(one["requests"] * (one["during_ns"] - one["before_ns"]) for one in slowed)
        harm = Harm(requests_late=sum(one["requests"] for one in slowed), late_ns=late_ns)
        return observation_of(kind, case, (), numbers, harm)


def _alike(client_id: str | None) -> str:
    """A client id with ``#`` for its numbers."""
    return re.sub(r"[0-9]+", "#", clipped(client_id)) if client_id else NO_CLIENT_ID


def _busy(amounts: list[int]) -> set[int]:
    """The parts with more than a tenth of the greatest amount."""
    least = max(amounts, default=0) // 10
    return {part for part, amount in enumerate(amounts) if amount > least}


def _slowed(name: str, other: _Load, amounts: list[int]) -> dict[str, Any] | None:
    """How much longer a client's Produce requests waited in the busy parts; None where it is less than twice as
    long."""
    busy = _busy(amounts)
    idle = {part for part in range(len(other.counts)) if part >= len(amounts) or not amounts[part]}
    during = [one for part in busy if part < len(other.waits) for one in other.waits[part]]
    before = [one for part in idle for one in other.waits[part]]
    if min(len(during), len(before)) < ENOUGH_WAITS or median(during) < 2 * median(before):
        return None
    requests = sum(other.counts[part] for part in busy if part < len(other.counts))
    return {"client": name, "before_ns": int(median(before)), "during_ns": int(median(during)), "requests": requests}


@cause("request_load", explains=("client_load", "metadata_requests"))
def asking_clients(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`request_load` (warning where others wait twice as long meanwhile, else info): clients that are alike send more
    than half of all requests, most of which only ask: offsets of groups, lists, descriptions, metadata. Seen must be
    other clients, too. That others wait longer is seen by their Produce requests before, during and after; a broker
    that is slow in just that time for another reason looks the same.
    """
    numbers = one.numbers
    hurts, metadata = bool(numbers["slowed"]), numbers["apis"].get("Metadata", 0)
    if numbers["share"] == 1 or (not hurts and metadata * 2 > numbers["requests"]):
        return None
    clients = [name for name in one.about if name.startswith("client:")]
    apis = [f"{api} ({count:,})" for api, count in numbers["apis"].items()]
    many = f", from {numbers['instances']} instances" if numbers["instances"] > 1 else ""
    hurt = _hurt(numbers)
    return told(
        one,
        f"sends {numbers['share']:.0%} of all requests, {numbers['per_second']:,.0f} a second{many}: "
        f"{listed(apis, 5)}{'; ' if hurt else ''}{listed(hurt, 3)}",
        "What it asks changes nothing: let it ask at an interval (an exporter each 15 to 60 s), for the "
        "groups and topics that it needs, and from one instance. A quota on request_percentage holds it back "
        "until then.",
        subject=numbers["subject"],
        explained=(one, *observed.about(clients, "metadata_requests")),
        numbers={name: value for name, value in numbers.items() if name != "subject"},
        rank=WASTE if not hurt else 0,
    )


@cause("byte_load", explains=("byte_load", "late_writes"))
def heavy_clients(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`byte_load` (warning): clients that are alike send and receive more than half of all bytes, and others wait for
    their writes 5 ms longer meanwhile, and twice as long, than while they are idle: a bulk load, a backfill, a consumer
    that reads a topic again from its beginning. A broker that is slow in just that time for another reason looks the
    same.
    """
    numbers = one.numbers
    does, quota = ("writes", "producer") if numbers["mostly"] == "Produce" else ("reads", "consumer")
    hurt = _hurt(numbers)
    late = [each for each in observed.of("late_writes") if _is_within(each, one)]
    return told(
        one,
        subject=numbers["subject"],
        title=f"{does} {numbers['bytes']:,} bytes, {numbers['byte_share']:.1%} of all that go to and from the "
        f"brokers, {numbers['bytes_per_second']:,} a second, in {numbers['share']:.0%} of the requests; "
        f"{listed(hurt, 3)}",
        remedy=f"Hold it back with a quota ({quota}_byte_rate of its user or client id), let it work when "
        "others do not, or give the brokers more disk and network. A consumer that reads old records also "
        "takes the page cache from those that read new ones.",
        explained=(one, *late),
        doubt="The brokers may have been slow in just that time for another reason." if late else "",
        numbers={name: value for name, value in numbers.items() if name not in ("subject", "mostly")},
        severity="warning",
    )


def _hurt(numbers: dict[str, Any]) -> list[str]:
    """A sentence for each client that waited longer."""
    return [
        f"Produce of {slowed['client']} waits {duration(slowed['during_ns'])} meanwhile instead of "
        f"{duration(slowed['before_ns'])} (p50)"
        for slowed in numbers["slowed"]
    ]


def _is_within(late: Observation, load: Observation) -> bool:
    """Whether the late writes of a slowed client are for the most part in the time of the load."""
    names = {name for name in late.named("client") for one in load.numbers["slowed"] if one["client"] in name}
    both_ns = min(late.last_ns, load.last_ns) - max(late.first_ns, load.first_ns)
    return bool(names) and 2 * both_ns >= late.last_ns - late.first_ns
