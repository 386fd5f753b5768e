"""Brokers that a client is told to go to and never dials, while it works with others of the same cluster.

A name that does not resolve leaves no SYN, but a client that asks for the leaders of its topics again and again, or was
told its coordinator, and sends nothing to that address.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.cause import Cause, Explanation, symptoms
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, grouped, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.troubles.addresses import numeric_address
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FIND_COORDINATOR, METADATA
from kwiresniff.base.field_values import field_text
from kwiresniff.base.flows import host_of
from kwiresniff.model import Body, Connection, ConnectionAttempt, Exchange
from kwiresniff.results.findings import scope_of

#: Answers that name an address, and their time span, after which a client has dialled it.
ASKED: Final = 4
ASKED_NS: Final = 2_000_000_000
#: A client that can reach its coordinator has joined its group by then.
SILENT_NS: Final = 10_000_000_000


class UndialledBrokers(Observer):
    """``broker_not_dialled``: Metadata names the leader of a client's partitions, or FindCoordinator its coordinator,
    by a host name, and the client's host never dials it, though it works with other brokers. Not observed where a
    connection to it was tried, and where a dialled address could be that of the name.

    Numbers: ``address``, ``asked``, ``wanted`` and ``working``, the addresses that the host works with.
    """

    kinds = ("broker_not_dialled",)
    apis = frozenset({METADATA, FIND_COORDINATOR})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._named = context.tally()  # by client and address
        self._tried: set[tuple[str, str]] = set()

    def exchange(self, exchange: Exchange) -> None:
        request, answer = request_body(exchange), response_body(exchange)
        if not request or not answer:
            return
        wanted = _leaders(request, answer) if exchange.api_key == METADATA else _coordinators(request, answer)
        if not wanted:
            return
        client = f"{exchange.client_id or ''}\0{host_of(exchange.connection.client)}"
        packet, ns = place_of(exchange)
        for address, names in wanted.items():
            case = self._named.case(client, clipped(address))
            case.add(packet, ns)
            case.note("wanted", names)
            case.note("names", [client_of(exchange)], 1)
            case.note("apis", [exchange.api])

    def connection(self, connection: Connection) -> None:
        self._note(connection.client, connection.broker, bool(connection.bytes[1]))

    def attempt(self, attempt: ConnectionAttempt) -> None:
        self._note(attempt.client, attempt.server, True)

    def _note(self, client: str, server: str, seen: bool) -> None:
        if seen and len(self._tried) < MAX_SUBJECTS:
            self._tried.add((host_of(client), server))

    def observations(self) -> Iterator[Observation]:
        by_host: dict[str, set[str]] = {}
        for client, address, _ in self._named:
            by_host.setdefault(client.partition("\0")[2], set()).add(address)
        for client, address, case in self._named:
            name, _, host = client.partition("\0")
            served = self.context.cluster.served
            working = sorted(broker for at, broker in served if at == host)
            # An unknown working address may be that of the name; SYNs show where a numeric address is not reached.
            unknown = [broker for broker in working if broker not in by_host[host]]
            numeric = numeric_address(host_of(address)) is not None
            if numeric or (host, address) in self._tried or not working or unknown:
                continue
            asked_again = case.count >= ASKED and case.last_ns - case.first_ns >= ASKED_NS
            silent_ns = self.context.end_ns - case.last_ns
            coordinator = case.counts("apis").get("FindCoordinator", 0)
            if not asked_again and not (coordinator and silent_ns >= SILENT_NS):
                continue
            who = case.noted("names")[0]
            numbers = {
                "address": address,
                "asked": case.count,
                "wanted": case.noted("wanted"),
                "working": working,
                "works_itself": any(name in served[host, broker] for broker in working),
            }
            harm = Harm(seconds_down=(max(case.last_ns, self.context.end_ns) - case.first_ns) / 1e9)
            about = [f"client:{who}", f"broker:{address}", f"host:{host}"]
            yield observation_of("broker_not_dialled", case, about, numbers, harm)


def _leaders(request: Body, answer: Body) -> dict[str, list[str]]:
    """The partitions that were asked about, by the address of their leader."""
    if not request.get("topics"):
        return {}
    addresses = {node.get("node_id"): address_text(node) for node in answer.get("brokers") or ()}
    found: dict[str, list[str]] = {}
    for topic in answer.get("topics") or ():
        name = field_text(topic.get("name"))
        for one in topic.get("partitions") or ():
            address = addresses.get(one.get("leader_id"))
            if address and name:
                found.setdefault(address, []).append(f"{name}-{one.get('partition_index')}")
    return found


def _coordinators(request: Body, answer: Body) -> dict[str, list[str]]:
    """The groups and transactional ids that were asked about, by the address of their coordinator."""
    kind = "transactional id" if request.get("key_type") == 1 else "group"
    found: dict[str, list[str]] = {}
    for one in answer.get("coordinators") or [{**answer, "key": request.get("key")}]:
        address = "" if one.get("error_code") else address_text(one)
        if address:
            found.setdefault(address, []).append(f"{kind} {field_text(one.get('key'))}")
    return found


class UnreachableNode(Cause):
    """`broker_not_dialled` (error; warning where only one other broker is in the capture): one broker of several
    advertises an address that its clients do not reach, not even with a SYN: a name that does not resolve where they
    run, mostly. They work with the others, ask for the leaders of their partitions again and again, and what that
    broker leads or coordinates gets nothing. Must not be seen: a connection to it, tried or made, and an address that
    the name could stand for. A capture that has only some of the brokers looks the same.
    """

    codes = ("broker_not_dialled",)
    explains = ("broker_not_dialled",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        dialled = grouped(observed.of("broker_not_dialled"), lambda one: str(one.numbers["address"]))
        for address, seen in dialled.items():
            working = sorted({broker for one in seen for broker in one.numbers["working"]})
            clients = sorted({one.name("client") for one in seen})
            wanted = list(dict.fromkeys(name for one in seen for name in one.numbers["wanted"]))
            asked = sum(one.numbers["asked"] for one in seen)
            one_other = len(working) == 1
            yield Explanation(
                code="broker_not_dialled",
                subject=self.context.cluster.broker_text(address),
                title=f"Metadata names {address}, which {listed(clients)} never dials, not even with a SYN, though "
                f"told {times(asked)}: a name that does not resolve there, or advertised.listeners that are wrong; "
                f"{listed(wanted)} get nothing, while {listed(working)} serve the same host",
                remedy=f"Resolve and dial {address} from where {listed(clients)} run; its log names what fails. Then "
                "set advertised.listeners of that broker to what its clients can reach, as the other brokers have it.",
                explained=tuple(seen),
                doubt=f"The capture has no other broker than {working[0]}: it may be that it was made there."
                if one_other
                else "",
                numbers={"dialled": working[0], "advertised": [address], "clients": clients, "reached": False},
                severity="warning" if one_other else "",
                scope=scope_of("broker", [address]),
                explains=symptoms("client", clients, "metadata_storm", "coordinator_not_available", "group_deserted"),
            )
