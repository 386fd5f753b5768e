"""Quotas: who is throttled, as which user, and how much time it costs (KIP-13, KIP-124, KIP-219)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.body_entities import throttle_ms_of
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.selection import THROTTLED
from kwiresniff.analysis.doctor.wording import duration, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding

#: Connections whose mute is remembered.
MAX_MUTED = 10_000
#: A client that loses so much of its time to a quota cannot do its work.
MUCH = 0.5
SEVERE_NS = 1_000_000_000
#: A quota on the time that requests take (``request_percentage``) throttles for no longer than its window at a time.
WINDOW_MS = 1_000
_QUOTAS = {PRODUCE: "produce quota", FETCH: "fetch quota"}
_MUTED = "Its requests wait before the broker reads them"
_HELD = "The broker, which is older than Kafka 2.0, holds its responses back"
#: Who has not authenticated, as brokers call it.
ANONYMOUS = "ANONYMOUS"


class QuotaRule(Rule):
    """Clients that are throttled. The channel is muted for the response's ``throttle_time_ms``."""

    codes = ("throttled",)
    apis = None
    selection = THROTTLED

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._throttled = context.tally()
        self._muted: dict[int, tuple[int, Case]] = {}
        self._costs: dict[int, int] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Counts a response that throttles its client."""
        response = exchange.response
        throttle_ms = throttle_ms_of(response)
        if response is None or throttle_ms <= 0:
            return
        connection = exchange.connection
        case = self._throttled.case(client_of(exchange), user_of(connection))
        packet, ns = place_of(exchange)
        # Brokers of before KIP-219 held the response itself back, and nothing is muted.
        held_back = exchange.waiting == "throttled" and (exchange.held_ns or 0) >= throttle_ms * 1_000_000
        until_ns = response.last_ns + (0 if held_back else throttle_ms * 1_000_000)
        case.add(packet, ns, throttle_ms, until_ns=min(until_ns, max(self.context.end_ns, ns)))
        case.note("quotas", [_QUOTAS.get(exchange.api_key, "request quota")])
        case.note("brokers", [connection.broker])
        if held_back:
            case.note("held", ["yes"])
            self._costs[id(case)] = self._costs.get(id(case), 0) + throttle_ms * 1_000_000
            return
        muted_until = self._muted.pop(connection.id, (0, case))[0]
        if len(self._muted) < MAX_MUTED:
            self._muted[connection.id] = max(until_ns, muted_until), case
        cost = max(until_ns - max(response.last_ns, muted_until), 0)
        self._costs[id(case)] = self._costs.get(id(case), 0) + cost

    def connection(self, connection: Connection) -> None:
        """A connection that ends while it is muted has waited no longer than that."""
        until_ns, case = self._muted.pop(connection.id, (0, None))
        if case is not None:
            self._costs[id(case)] -= max(until_ns - (connection.closed_ns or self.context.end_ns), 0)

    def findings(self) -> Iterator[Finding]:
        """By client and user."""
        for client, user, case in self._throttled:
            over_ns = sum(
                max(until_ns - self.context.end_ns, 0) for until_ns, one in self._muted.values() if one is case
            )
            cost = max(self._costs.get(id(case), 0) - over_ns, 0)
            brokers = case.noted("brokers")
            seen = max(self.context.end_ns - case.first_ns, 1) * max(len(brokers), 1)
            severe = cost / seen >= MUCH and case.most * 1_000_000 >= SEVERE_NS
            quotas = listed(case.noted("quotas"))
            if case.most <= WINDOW_MS and "request" not in quotas:
                quotas = f"{quotas} or the request quota"
            numbers: dict[str, Any] = {
                "user": user,
                "longest_ms": case.most,
                "total_ms": case.total,
                "lost_ns": cost,
                "quotas": case.noted("quotas"),
                "brokers": brokers,
            }
            yield found(
                "throttled",
                "error" if severe else "warning",
                client,
                f"is throttled by the {quotas} of user {user} or its client id: {case.count} answers tell it to wait, "
                f"{duration(case.most * 1_000_000)} at most; on {_connections(len(brokers))} it lost {duration(cost)}",
                "Raise the quota of the user or client id (kafka-configs --describe --entity-type users, clients), or "
                f"make the client send less. {_HELD if case.noted('held') else _MUTED}: brokers and disks are not "
                "slow.",
                case,
                numbers,
                clients=[client],
                brokers=brokers,
                explains={
                    "slow": as_brokers(*brokers),
                    "unanswered": as_clients(client),
                    "broker_stalled": as_clients(client),
                    "request_timed_out": as_clients(client),
                    "closed_by_broker": as_clients(client),
                    "consumer_lag": as_clients(client),
                },
                rank=INCIDENT,
            )


def user_of(connection: Connection) -> str:
    """The user of a connection, as far as its authentication shows it."""
    principal = (connection.sasl or {}).get("principal")
    if principal:
        return str(principal)
    names = (connection.tls or {}).get("client_certificate_names")
    if names:
        return str(names[0])
    return ANONYMOUS if connection.tls is None and connection.sasl is None else "(not known)"


def _connections(brokers: int) -> str:
    return "its connections" if brokers > 1 else "its connection"
