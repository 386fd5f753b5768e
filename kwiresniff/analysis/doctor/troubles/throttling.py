"""Quotas: clients that are throttled, their users, and the time that they lose (KIP-13, KIP-124, KIP-219, KIP-599)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.body_entities import throttle_ms_of
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import duration, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS, FETCH, PRODUCE
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Connection, Exchange

#: Connections whose mute is remembered.
MAX_MUTED: Final = 10_000
#: Kinds of quotas by API; that on changes is of KIP-599.
_MUTATIONS: Final = "controller mutation quota"
_QUOTAS: Final = {
    PRODUCE: "produce quota",
    FETCH: "fetch quota",
    **dict.fromkeys((CREATE_TOPICS, DELETE_TOPICS, CREATE_PARTITIONS), _MUTATIONS),
}
#: The user of a connection without authentication.
ANONYMOUS: Final = "ANONYMOUS"
#: The part of its time that a client may lose before it is an error, and the throttle time that this needs.
MUCH: Final = 0.5
SEVERE_MS: Final = 1_000
#: The longest throttle of a quota on request time (``request_percentage``): its window.
WINDOW_MS: Final = 1_000
_MUTED: Final = "Its requests wait before the broker reads them"
_HELD: Final = "The broker, which is older than Kafka 2.0, holds its responses back"
#: Other findings of a throttled client.
_SYMPTOMS: Final = (
    "unanswered", "broker_stalled", "request_timed_out", "closed_by_broker", "consumer_lag", "own_queue",
    "throttling_quota_exceeded", "slow_transfer",
)  # fmt: skip


class Throttling(CountingObserver):
    """`throttled`: responses with ``throttle_time_ms``, during which the broker mutes the connection.

    By client and user. Numbers: ``user``, ``quotas``, ``longest_ms``, ``total_ms``, ``lost_ns`` (the time for which its
    connections were muted in the capture), ``seen_ns`` (from the first such response to the end, for each broker),
    ``held_back`` (the broker, older than Kafka 2.0, held responses back instead).
    """

    kinds: ClassVar[tuple[str, ...]] = ("throttled",)
    entities: ClassVar[tuple[str, str]] = ("client", "user")
    apis: ClassVar[frozenset[int] | None] = None

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._muted: dict[int, tuple[int, Case]] = {}
        self._costs: dict[int, int] = {}

    def exchange(self, exchange: Exchange) -> None:
        response = exchange.response
        throttle_ns = throttle_ms_of(response) * MILLISECOND_NS
        if response is None or throttle_ns <= 0:
            return
        connection = exchange.connection
        case = self.cases.case(client_of(exchange), user_of(connection))
        packet, ns = place_of(exchange)
        # Before KIP-219 brokers hold the response back and mute nothing.
        held_back = exchange.waiting == "throttled" and (exchange.held_ns or 0) >= throttle_ns
        until_ns = response.last_ns + (0 if held_back else throttle_ns)
        until = min(until_ns, max(self.context.end_ns, ns))
        case.add(packet, ns, throttle_ns // MILLISECOND_NS, until_ns=until)
        case.note("quotas", [_QUOTAS.get(exchange.api_key, "request quota")])
        case.note("brokers", [connection.broker])
        if held_back:
            case.note("held", ["yes"])
            self._cost(case, throttle_ns)
            return
        muted_until = self._muted.pop(connection.id, (0, case))[0]
        if len(self._muted) < MAX_MUTED:
            self._muted[connection.id] = max(until_ns, muted_until), case
        self._cost(case, max(until_ns - max(response.last_ns, muted_until), 0))

    def _cost(self, case: Case, ns: int) -> None:
        self._costs[id(case)] = self._costs.get(id(case), 0) + ns

    def connection(self, connection: Connection) -> None:
        """Takes back the rest of a mute when its connection ends."""
        until_ns, case = self._muted.pop(connection.id, (0, None))
        if case is not None:
            self._cost(case, -max(until_ns - (connection.closed_ns or self.context.end_ns), 0))

    def observations(self) -> Iterator[Observation]:
        end_ns = self.context.end_ns
        for client, user, case in self.cases:
            over_ns = sum(max(until_ns - end_ns, 0) for until_ns, one in self._muted.values() if one is case)
            lost_ns = max(self._costs.get(id(case), 0) - over_ns, 0)
            yield self.observed(
                client,
                user,
                case,
                harm=Harm(requests_late=case.count, late_ns=lost_ns),
                user=user,
                longest_ms=case.most,
                total_ms=case.total,
                lost_ns=lost_ns,
                quotas=case.noted("quotas"),
                seen_ns=max(end_ns - case.first_ns, 1) * max(len(case.noted("brokers")), 1),
                held_back=bool(case.noted("held")),
            )


def user_of(connection: Connection) -> str:
    """The user of a connection, from SASL or the client's certificate."""
    principal = (connection.sasl or {}).get("principal")
    if principal:
        return str(principal)
    names = (connection.tls or {}).get("client_certificate_names")
    if names:
        return str(names[0])
    return ANONYMOUS if connection.tls is None and connection.sasl is None else "(not known)"


@cause("throttled", explains=("throttled",))
def throttled(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`throttled` (error when more than half of the time is lost, else warning): a quota delays a client; with user,
    kind of quota as far as the traffic shows it, and the time it cost.

    Seen must be ``throttle_time_ms`` in responses. Requests that wait in the muted channel (KIP-219) look like a slow
    broker; where the responses before are cut off, that is told with the slow requests.
    """
    client, brokers, numbers = one.name("client"), one.named("broker"), one.numbers
    longest_ms, lost_ns = numbers["longest_ms"], numbers["lost_ns"]
    quotas = listed(numbers["quotas"])
    of_traffic = quotas in ("produce quota", "fetch quota") or len(numbers["quotas"]) > 1
    if longest_ms <= WINDOW_MS and of_traffic and "request" not in quotas:
        quotas = f"{quotas} or the request quota"
    severe = lost_ns / numbers["seen_ns"] >= MUCH and longest_ms >= SEVERE_MS
    on = "its connections" if len(brokers) > 1 else "its connection"
    name = client.rpartition(" ")[0]
    alike = [other.name("client") for other in observed.about([f"user:{numbers['user']}"], "throttled")]
    hosts = [other.rpartition(" ")[2] for other in alike if other != client and other.startswith(f"{name} ")]
    return told(
        one,
        f"is throttled by the {quotas} of user {numbers['user']} or its client id: {one.count} answers tell "
        f"it to wait, {duration(longest_ms * MILLISECOND_NS)} at most; on {on} it lost {duration(lost_ns)}",
        "Raise the quota of the user or client id (kafka-configs --describe --entity-type users, clients), "
        f"or make the client send less. {_HELD if numbers['held_back'] else _MUTED}: brokers and disks are not "
        "slow.",
        numbers={
            **{name: numbers[name] for name in ("user", "longest_ms", "total_ms", "lost_ns", "quotas")},
            "brokers": brokers,
        },
        details=(f"{listed(hosts)} has the same user and client id {name}, and shares its quota",) if hosts else (),
        severity="error" if severe else "warning",
        explains=symptoms("broker", brokers, "slow") | symptoms("client", [client], *_SYMPTOMS),
    )
