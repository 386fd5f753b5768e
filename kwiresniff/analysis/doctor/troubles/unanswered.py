"""Requests without an answer, and connections that brokers close instead of answering."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.client_traffic import CLUSTER_APIS
from kwiresniff.analysis.doctor.cause import INCIDENT, SYMPTOM, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in, is_waiting
from kwiresniff.analysis.doctor.evidence import Case, Episodes
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import CountingObserver, Observer
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.base.api_keys import SASL_AUTHENTICATE
from kwiresniff.base.field_values import field_number
from kwiresniff.model import Connection, Exchange
from kwiresniff.schema import API_NAMES

#: Requests that only nodes of the cluster send.
CLUSTER_API_NAMES: Final = frozenset(API_NAMES[key] for key in CLUSTER_APIS if key in API_NAMES)
#: A request that is younger at the end of the capture may be answered later.
LATE_NS: Final = 5_000_000_000
#: A client that leaves sooner was not waiting for the answer.
GAVE_UP_NS: Final = 1_000_000_000
#: Connections whose session end is remembered.
MAX_SESSIONS: Final = 2_000
#: A connection without answers for so long was idle; the number of different times that are kept, in seconds.
IDLE_NS: Final = 1_000_000_000
MAX_IDLE: Final = 100
#: Requests that a broker passes on to the active controller (KIP-590), or that clients send it.
TO_CONTROLLER: Final = frozenset({
    "CreateTopics", "DeleteTopics", "CreatePartitions", "AlterConfigs", "IncrementalAlterConfigs", "CreateAcls",
    "DeleteAcls", "AlterPartitionReassignments", "ListPartitionReassignments", "AlterClientQuotas", "ElectLeaders",
    "AlterUserScramCredentials", "UpdateFeatures", "UnregisterBroker", "CreateDelegationToken",
})  # fmt: skip
#: A broker that closes more connections of a client does so because of the client.
OFTEN: Final = 3
#: A smaller request is below any configurable limit.
LARGE_BYTES: Final = 10_000
#: The default of ``socket.request.max.bytes``.
MAX_REQUEST_BYTES: Final = 100 << 20
_CONTROLLER = (
    "The broker passes such requests on to the active controller: see whether there is one (kafka-metadata-quorum "
    "describe --status), and whether this broker reaches it. Nothing can be created or changed until then."
)
_SILENT = (
    "See what the broker was doing then (its log, pauses of garbage collection, disks), and whether its answers can "
    "reach the client; request.timeout.ms says how long a client waits. One that a quota throttled before the capture "
    "began waits as well, for as long as it was told then."
)
_REAUTHENTICATE = (
    "The broker ends sessions (connections.max.reauth.ms), and the client does not authenticate again on its "
    "connection: update it to one that knows KIP-368, or let it expect that its connection is closed."
)
_STOPPED = (
    "A broker that stops or is killed does so; else its log says why: a request that it cannot read, an authentication "
    "that expired, connections.max.idle.ms, or max.connections.per.ip."
)


class UnansweredRequests(Observer):
    """``unanswered``: requests whose client gave up, or without an answer in the capture although there was time.

    By broker and API, episodes apart. Not counted is what another cause of the ending explains, what the broker held
    back on purpose, and what a client leaves behind that shuts down. Numbers: ``api``, ``longest_ns``, ``ended`` (the
    capture did, not the connection). Each is a request that failed.
    """

    kinds = ("unanswered",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._episodes = Episodes(context.budget)

    def ending(self, ending: Ending) -> None:
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
        for broker, what, case in self._episodes:
            ended, api = what.endswith("/"), what.removesuffix("/")
            numbers = {"api": api, "longest_ns": case.most, "ended": ended}
            harm = Harm(requests_failed=case.count)
            yield observation_of("unanswered", case, [f"broker:{broker}"], numbers, harm)


class ClosedInstead(CountingObserver):
    """``closed_by_broker``: connections that a broker closed instead of answering, for no reason that shows.

    By client and broker. Numbers: ``requests`` (the oldest of each connection, API and version), ``same`` (they have
    one kind and size), ``largest_request_bytes``, ``expired`` (how many after their session's end, KIP-368), ``fresh``
    (none had been answered before), ``cluster`` (nodes send such requests), and ``idle_ns``, for how long all of
    several connections had been idle at least, in whole seconds. Each is a request that failed.
    """

    kinds = ("closed_by_broker",)
    apis = frozenset({SASL_AUTHENTICATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._expiries: dict[int, int] = {}
        self._expired = False

    def exchange(self, exchange: Exchange) -> None:
        response, number = exchange.response, exchange.connection.id
        body = response.body if response is not None else None
        lifetime_ms = field_number((body or {}).get("session_lifetime_ms"))
        if response is not None and lifetime_ms and (number in self._expiries or len(self._expiries) < MAX_SESSIONS):
            self._expiries[number] = response.first_ns + lifetime_ms * 1_000_000

    def connection(self, connection: Connection) -> None:
        """Notes whether its session is over; ``ending`` is called next."""
        expiry_ns = self._expiries.pop(connection.id, 0)
        self._expired = 0 < expiry_ns <= connection.closed_ns

    def ending(self, ending: Ending) -> None:
        if ending.reason != "closed by broker" or is_waiting(ending, ending.first):
            return
        first, connection = ending.first, ending.connection
        case = self.cases.case(client_in(ending), connection.broker)
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
        for client, broker, case in self.cases:
            requests = case.noted("requests")
            numbers = {
                "requests": requests,
                "same": len(requests) == 1 and len(case.counts("sizes")) == 1,
                "largest_request_bytes": case.most,
                "expired": case.counts("expired").get("yes", 0),
                "fresh": case.noted("fresh") == ["yes"],
                "cluster": bool(case.noted("cluster")),
                "idle_ns": _idle_seconds(case) * IDLE_NS,
            }
            harm = HARMLESS if case.noted("cluster") else Harm(requests_failed=case.count)
            yield self.observed(client, broker, case, harm, **numbers)


def _idle_seconds(case: Case) -> int:
    """For how long all connections of a case had been idle when they were closed at the next request; 0 where one was
    not, or there is one."""
    idle = case.counts("idle")
    return min(map(int, idle)) if case.count > 1 and "" not in idle and sum(idle.values()) == case.count else 0


@cause("unanswered", explains=("unanswered",))
def unanswered(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`unanswered` (error; warning where only nodes of the cluster send such requests, or the broker closed connections
    just then; info where the capture has lost so much that the answer may be among it): a client gave up waiting, or
    the capture has no answer after 5 s. Requests that were waiting on purpose do not count, nor those of a client that
    leaves within a second, which shuts down. A stalled broker, a broken path and a missing controller look the same:
    where they show, this is a symptom of theirs.
    """
    broker, api, longest_ns = one.name("broker"), one.numbers["api"], one.numbers["longest_ns"]
    if one.numbers["ended"]:
        title = f"{api} was not answered before the capture ended"
    else:
        title = f"{api} was not answered: the client gave up after {duration(longest_ns)}"
    # A broker that answered later was not dead.
    alive = context.cluster.last_answer_ns.get(broker, 0) > one.first_ns
    passed_on = alive and api in TO_CONTROLLER
    went = not alive and context.cluster.went(broker, one.first_ns)
    lossy = context.is_lossy(one.count)
    if lossy:
        title += "; or its answer is among what the capture lost"
    if went:
        title += ": the broker closed other connections then, it was stopped or killed"
    if passed_on:
        title += ", though the broker answered other requests: the controller does not"
    return told(
        one,
        title,
        _CONTROLLER if passed_on else _SILENT,
        subject=broker,
        severity="info" if lossy else "warning" if api in CLUSTER_API_NAMES or went else "error",
        numbers={"api": api, "clients": one.named("client"), "longest_ns": longest_ns},
        rank=SYMPTOM,
    )


@cause("closed_by_broker", "session_expired", explains=("closed_by_broker",))
def closed_by_broker(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`closed_by_broker` (error where the request is too large or the same is closed on again and again; info between
    nodes; else warning): a broker closes a connection instead of answering, and nothing shows why. A broker that stops
    does so; one that refuses a version, wants SASL or TLS, or has too many connections is told as that.

    `session_expired` (warning): a broker closes connections because the session of their SASL authentication is over
    (`connections.max.reauth.ms`, a token that expired), and the client has not authenticated again. Seen must be the
    lifetime that SaslAuthenticate told the client, on all connections that were closed.
    """
    numbers, client, broker = one.numbers, one.name("client"), one.name("broker")
    requests, largest = numbers["requests"], numbers["largest_request_bytes"]
    large = largest >= MAX_REQUEST_BYTES
    # The broker refuses the same request again and again.
    same = numbers["same"] and largest >= LARGE_BYTES
    again = one.count >= OFTEN and (numbers["fresh"] or same)
    size = f" of {largest:,} bytes" if large or (again and same) else ""
    expired = numbers["expired"] == one.count
    name = context.cluster.broker_text(broker)
    title = f"{name} closed the connection after {listed(requests)}{size} {times(one.count)}, without an answer"
    remedy = _STOPPED
    if large:
        remedy = "The request is larger than socket.request.max.bytes of the broker takes."
    elif again and same:
        remedy = (
            "It is this request that the broker does not take: larger than its socket.request.max.bytes, or one "
            "that it cannot read; its log says which."
        )
    if expired:
        title += ", once the session of its SASL authentication had expired"
        remedy = _REAUTHENTICATE
    return told(
        one,
        title,
        remedy,
        code="session_expired" if expired else "closed_by_broker",
        severity="warning" if expired else "error" if large or again else "info" if numbers["cluster"] else "warning",
        numbers={"broker": broker, "requests": requests, "largest_request_bytes": largest},
        rank=INCIDENT if expired else SYMPTOM,
        explains=symptoms("client", [client], "connection_churn", "metadata_storm"),
    )
