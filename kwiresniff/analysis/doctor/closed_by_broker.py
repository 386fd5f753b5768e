"""Connections that a broker closes instead of answering."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in, is_waiting
from kwiresniff.analysis.doctor.evidence import Case
from kwiresniff.analysis.doctor.rule import SYMPTOM, Rule, as_clients, found
from kwiresniff.analysis.doctor.unanswered import CLUSTER_API_NAMES
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.base.api_keys import SASL_AUTHENTICATE
from kwiresniff.base.field_values import field_number
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding

#: A broker that closes so many connections of one client does so because of what the client does.
OFTEN = 3
#: Connections of which is remembered when their session ends.
MAX_SESSIONS = 2_000
#: A smaller request is below any limit that a broker may be configured with.
LARGE_BYTES = 10_000
#: A connection on which nothing was answered for so long was idle; so many different times are kept, in seconds.
IDLE_NS = 1_000_000_000
MAX_IDLE = 100
#: socket.request.max.bytes, unless it is configured.
MAX_REQUEST_BYTES = 100 << 20
_REAUTHENTICATE = (
    "The broker ends sessions (connections.max.reauth.ms), and the client does not authenticate again on its "
    "connection: update it to one that knows KIP-368, or let it expect that its connection is closed."
)


_FORGOTTEN = (
    "Something on the way (NAT, firewall, load balancer, proxy) forgets connections that are idle for so long, or the "
    "broker drops them (connections.max.idle.ms) and the client does not learn of it: set connections.max.idle.ms of "
    "the client below that, or let TCP send keep-alives. Clients ask again on a new connection."
)


class ClosedByBrokerRule(Rule):
    """Brokers that close a connection instead of answering."""

    codes = ("closed_by_broker",)
    apis = frozenset({SASL_AUTHENTICATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._expiries: dict[int, int] = {}
        self._expired = False

    def exchange(self, exchange: Exchange) -> None:
        """A session that ends some time after it was authenticated (KIP-368)."""
        response, number = exchange.response, exchange.connection.id
        body = response.body if response is not None else None
        lifetime_ms = field_number((body or {}).get("session_lifetime_ms"))
        if response is not None and lifetime_ms and (number in self._expiries or len(self._expiries) < MAX_SESSIONS):
            self._expiries[number] = response.first_ns + lifetime_ms * 1_000_000

    def connection(self, connection: Connection) -> None:
        """One that is over needs no session any more; ``ending`` is called afterwards."""
        expiry_ns = self._expiries.pop(connection.id, 0)
        self._expired = 0 < expiry_ns <= connection.closed_ns

    def ending(self, ending: Ending) -> None:
        """One that was closed with requests under way, for no reason that another rule knows."""
        if ending.reason != "closed by broker" or is_waiting(ending, ending.first):
            return
        first, connection = ending.first, ending.connection
        case = self._cases.case(client_in(ending), connection.broker)
        case.add(first.packet, first.first_ns, first.size_bytes, until_ns=connection.closed_ns)
        case.note("requests", [f"{first.api} v{first.version}"])
        if self._expired:
            case.note("expired", ["yes"])
        case.note("sizes", [f"{first.size_bytes:,}"])
        answered_ns = self.context.cluster.ended_answer_ns
        at_once = connection.was_reset and 0 <= connection.closed_ns - first.last_ns < IDLE_NS
        quiet = answered_ns and "no_response_expected" not in connection.exchanges  # acks=0 is traffic, too
        if at_once and quiet and first.first_ns - answered_ns >= IDLE_NS:
            case.note("idle", [str((first.first_ns - answered_ns) // IDLE_NS)], most=MAX_IDLE)
        case.note("fresh", ["yes" if connection.exchanges.keys() <= {"unanswered"} else "no"])
        if first.api in CLUSTER_API_NAMES:
            case.note("cluster", ["yes"])

    def findings(self) -> Iterator[Finding]:
        """By client and broker."""
        for client, broker, case in self._cases:
            requests = case.noted("requests")
            large = case.most >= MAX_REQUEST_BYTES
            # The same request again and again: it is the request that the broker does not take.
            same = len(requests) == 1 and len(case.counts("sizes")) == 1 and case.most >= LARGE_BYTES
            again = case.count >= OFTEN and (case.noted("fresh") == ["yes"] or same)
            size = f" of {case.most:,} bytes" if large or (again and same) else ""
            expired = case.counts("expired").get("yes", 0) == case.count
            why = ", once the session of its SASL authentication had expired" if expired else ""
            remedy = (
                "The request is larger than socket.request.max.bytes of the broker takes."
                if large
                else "It is this request that the broker does not take: larger than its socket.request.max.bytes, or "
                "one that it cannot read; its log says which."
                if again and same
                else "A broker that stops or is killed does so; else its log says why: a request that it cannot read, "
                "an authentication that expired, connections.max.idle.ms, or max.connections.per.ip."
            )
            name = self.context.cluster.broker_text(broker)
            title = (
                f"{name} closed the connection after {listed(requests)}{size} "
                f"{times(case.count)}, without an answer{why}"
            )
            if idle := idle_seconds(case):
                remedy = _FORGOTTEN
                title = (
                    f"connections to {name} are reset when they are used again after {idle} s or more without traffic, "
                    f"{times(case.count)} ({listed(requests)} without an answer)"
                )
            yield found(
                "closed_by_broker",
                "error" if large or again else "info" if case.noted("cluster") else "warning",
                client,
                title,
                _REAUTHENTICATE if expired else remedy,
                case,
                {"broker": broker, "requests": requests, "largest_request_bytes": case.most},
                clients=[client],
                brokers=[broker],
                explains={"connection_churn": as_clients(client), "metadata_storm": as_clients(client)},
                rank=SYMPTOM,
            )


def idle_seconds(case: Case) -> int:
    """For how long all connections of a case had been idle when they were closed at the next request; 0 where some were
    not, or there is but one."""
    idle = case.counts("idle")
    return min(map(int, idle)) if case.count > 1 and "" not in idle and sum(idle.values()) == case.count else 0
