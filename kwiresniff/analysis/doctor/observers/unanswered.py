"""Requests without an answer, and connections that brokers close instead of answering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.client_traffic import CLUSTER_APIS
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in, is_waiting
from kwiresniff.analysis.doctor.evidence import Case, Episodes
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.base.api_keys import SASL_AUTHENTICATE
from kwiresniff.base.field_values import field_number
from kwiresniff.model import Connection, Exchange
from kwiresniff.schema import API_NAMES

#: Requests that only nodes of the cluster send.
CLUSTER_API_NAMES: Final = frozenset(API_NAMES[key] for key in CLUSTER_APIS if key in API_NAMES)
#: A request that was not answered so short a time before the end may just not have been answered yet, as one that takes
#: so long is no trouble either (``VERY_SLOW_NS`` of slow answers).
LATE_NS: Final = 5_000_000_000
#: A client that leaves sooner was not waiting for the answer, it was closing.
GAVE_UP_NS: Final = 1_000_000_000
#: Connections of which is remembered when their session ends.
MAX_SESSIONS: Final = 2_000
#: A connection on which nothing was answered for so long was idle; so many different times are kept, in seconds.
IDLE_NS: Final = 1_000_000_000
MAX_IDLE: Final = 100


class UnansweredRequests(Observer):
    """``unanswered``: requests whose client gave up, or which the capture has no answer to although there was time.

    By broker and API, episodes apart. What another cause of the ending explains, what the broker held back on purpose
    and what a client leaves behind that shuts down is not counted. Numbers: ``api``, ``longest_ns``, ``ended`` (the
    capture did, not the connection). Each is a request that failed.
    """

    kinds: ClassVar[tuple[str, ...]] = ("unanswered",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._episodes = Episodes(context.budget)

    def ending(self, ending: Ending) -> None:
        """Takes requests that nobody answered in time."""
        if ending.reason not in ("closed by client", "capture ended", "not authenticated"):
            return
        over_ns = ending.first.last_ns + ending.waited_ns
        broker, ended = ending.connection.broker, ending.reason == "capture ended"
        api = ""
        for request in ending.requests:
            waited_ns = over_ns - request.last_ns
            if is_waiting(ending, request) or waited_ns < (LATE_NS if ended else GAVE_UP_NS):
                continue
            api = request.api
            case = self._episodes.case(broker, f"{api}{'/' * ended}", request.first_ns)
            case.add(request.packet, request.first_ns, waited_ns, until_ns=over_ns)
            case.note("clients", [client_in(ending)])
        more = sum(ending.counts.values()) - len(ending.requests)
        if api and more > 0 and len({request.api for request in ending.requests}) == 1:
            case.count += more

    def observations(self) -> Iterator[Observation]:
        """One for each broker, API and episode."""
        for broker, what, case in self._episodes:
            ended, api = what.endswith("/"), what.removesuffix("/")
            how = "before the capture ended" if ended else f"and its client gave up after {duration(case.most)} at most"
            yield observation_of(
                "unanswered",
                f"{api} to {broker} was not answered {how}, {times(case.count)}",
                case,
                [f"broker:{broker}"],
                {"api": api, "longest_ns": case.most, "ended": ended},
                Harm(requests_failed=case.count),
            )


class ClosedInstead(Observer):
    """``closed_by_broker``: connections that a broker closed instead of answering, for no reason that shows.

    By client and broker. Numbers: ``requests`` (the oldest of each connection, API and version), ``same`` (they were
    of one kind and size), ``largest_request_bytes``, ``expired`` (how many after their session's end, KIP-368),
    ``fresh`` (none had been answered before), ``cluster`` (nodes send such requests), and ``idle_s``, how long all of
    several connections had been without traffic at least. Each is a request that failed.
    """

    kinds: ClassVar[tuple[str, ...]] = ("closed_by_broker",)
    apis: ClassVar[frozenset[int] | None] = frozenset({SASL_AUTHENTICATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._expiries: dict[int, int] = {}
        self._expired = False

    def exchange(self, exchange: Exchange) -> None:
        """Takes when a session ends that was authenticated."""
        response, number = exchange.response, exchange.connection.id
        body = response.body if response is not None else None
        lifetime_ms = field_number((body or {}).get("session_lifetime_ms"))
        if response is not None and lifetime_ms and (number in self._expiries or len(self._expiries) < MAX_SESSIONS):
            self._expiries[number] = response.first_ns + lifetime_ms * 1_000_000

    def connection(self, connection: Connection) -> None:
        """Takes one that is over and needs no session any more; ``ending`` is called afterwards."""
        expiry_ns = self._expiries.pop(connection.id, 0)
        self._expired = 0 < expiry_ns <= connection.closed_ns

    def ending(self, ending: Ending) -> None:
        """Takes one that was closed with requests under way."""
        if ending.reason != "closed by broker" or is_waiting(ending, ending.first):
            return
        first, connection = ending.first, ending.connection
        case = self._cases.case(client_in(ending), connection.broker)
        case.add(first.packet, first.first_ns, first.size_bytes, until_ns=connection.closed_ns)
        case.note("requests", [f"{first.api} v{first.version}"])
        case.note("sizes", [f"{first.size_bytes:,}"])
        case.note("expired", ["yes"] * self._expired)
        case.note("cluster", ["yes"] * (first.api in CLUSTER_API_NAMES))
        case.note("fresh", ["yes" if connection.exchanges.keys() <= {"unanswered"} else "no"])
        answered_ns = self.context.cluster.ended_answer_ns
        at_once = connection.was_reset and 0 <= connection.closed_ns - first.last_ns < IDLE_NS
        quiet = answered_ns and "no_response_expected" not in connection.exchanges  # acks=0 is traffic, too
        if at_once and quiet and first.first_ns - answered_ns >= IDLE_NS:
            case.note("idle", [str((first.first_ns - answered_ns) // IDLE_NS)], most=MAX_IDLE)

    def observations(self) -> Iterator[Observation]:
        """One for each client and broker."""
        for client, broker, case in self._cases:
            requests = case.noted("requests")
            yield observation_of(
                "closed_by_broker",
                f"{self.context.cluster.broker_text(broker)} closed the connection of {client} after "
                f"{listed(requests)} {times(case.count)}, without an answer",
                case,
                [f"client:{client}", f"broker:{broker}"],
                {
                    "requests": requests,
                    "same": len(requests) == 1 and len(case.counts("sizes")) == 1,
                    "largest_request_bytes": case.most,
                    "expired": case.counts("expired").get("yes", 0),
                    "fresh": case.noted("fresh") == ["yes"],
                    "cluster": bool(case.noted("cluster")),
                    "idle_s": _idle_seconds(case),
                },
                HARMLESS if case.noted("cluster") else Harm(requests_failed=case.count),
            )


def _idle_seconds(case: Case) -> int:
    """For how long all connections of a case had been idle when they were closed at the next request; 0 where some were
    not, or there is but one."""
    idle = case.counts("idle")
    return min(map(int, idle)) if case.count > 1 and "" not in idle and sum(idle.values()) == case.count else 0
