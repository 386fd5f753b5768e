"""How often clients ask for Metadata, how regularly, on which connections, and what the answers say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, NUMBER_BYTES
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange

#: Of each client the times between two requests that are remembered, and the connections.
MAX_GAPS = 200
MAX_CONNECTIONS = 1_000
#: Requests of a client below which nothing is said of how often it asks.
ENOUGH_REQUESTS = 20
#: How many times as long as another an interval is that still counts as the same.
ALIKE: Final = 1.25


@dataclass(slots=True, eq=False)
class _Client:
    """The Metadata requests of a client."""

    case: Case
    gaps_ns: list[int] = field(default_factory=list)
    connections: set[int] = field(default_factory=set)
    first_on: int = 0
    last_ns: int = 0
    with_errors: int = 0
    after_failures: int = 0
    has_failed: bool = False
    answered: int = 0

    def interval_ns(self) -> int:
        """The time between two requests where most have about the same and it fills the time; 0 where not."""
        gaps = sorted(self.gaps_ns)
        if len(gaps) < ENOUGH_REQUESTS - 1:
            return 0
        early, middle = gaps[len(gaps) // 8], gaps[len(gaps) // 2]
        # What waits behind a long poll comes later than its timer says, never sooner.
        is_regular = middle <= early * ALIKE and middle * len(gaps) * 2 >= sum(gaps)
        return middle if is_regular else 0


class MetadataRequests(Observer):
    """``metadata_requests``: a client asks for Metadata again and again.

    Numbers: ``per_second``, ``interval_ns`` where it is always about the same, ``connections``, how many were
    ``answered``, how many answers came ``with_errors`` and how many requests ``after_failures`` of others, with the
    names of both.
    """

    kinds: ClassVar[tuple[str, ...]] = ("metadata_requests",)
    apis: ClassVar[frozenset[int] | None] = frozenset({METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Client] = Subjects(context.budget, lambda: _Client(context.case()), 8)

    def exchange(self, exchange: Exchange) -> None:
        """A Metadata request."""
        request = exchange.request
        if request is None:
            return
        client = self.context.client_of(exchange)
        known = self._clients.of(client)
        if known is None:
            return
        known.case.add(request.first_packet, request.first_ns)
        if known.last_ns and len(known.gaps_ns) < MAX_GAPS and self.context.budget.admit(NUMBER_BYTES):
            known.gaps_ns.append(max(request.first_ns - known.last_ns, 0))
        known.last_ns = request.first_ns
        number = exchange.connection.id
        if number not in known.connections:
            known.first_on += 1
            if len(known.connections) < MAX_CONNECTIONS and self.context.budget.admit(ENTRY_BYTES):
                known.connections.add(number)
        known.answered += exchange.response is not None
        if exchange.errors:
            known.with_errors += 1
            known.case.note("errors", [name for _, _, name, _ in exchange.errors])
            known.case.note("missing", exchange.topics)
        elif known.has_failed:
            known.after_failures += 1
        known.has_failed = False

    def failure(self, exchange: Exchange) -> None:
        """A client whose request was answered with an error asks who the leader is, or the coordinator."""
        if exchange.api_key == METADATA or not exchange.errors or exchange.is_negotiation:
            return
        known = self._clients.get(self.context.client_of(exchange))
        if known is not None:
            known.has_failed = True
            known.case.note("failures", [name for _, _, name, _ in exchange.errors])

    def observations(self) -> Iterator[Observation]:
        for client, known in self._clients.items():
            case = known.case
            if case.count < ENOUGH_REQUESTS:
                continue
            rate, gap_ns = case.count / case.seconds, known.interval_ns()
            how = f", one every {duration(gap_ns)}" if gap_ns else ""
            errors = f", {known.with_errors:,} of them answered with {listed(case.noted('errors'))}"
            yield observation_of(
                "metadata_requests",
                f"{client} asked for metadata {case.count:,} times in {duration(case.last_ns - case.first_ns)}{how}, "
                f"on {counted(known.first_on, 'connection')}{errors if known.with_errors else ''}",
                case,
                {f"client:{client}"},
                {
                    "per_second": round(rate, 1),
                    "interval_ns": gap_ns,
                    "connections": known.first_on,
                    "answered": known.answered,
                    "with_errors": known.with_errors,
                    "after_failures": known.after_failures,
                    "errors": case.noted("errors"),
                    "failures": case.noted("failures"),
                },
            )
