"""Brokers that advertise addresses which a client cannot reach (``advertised.listeners``), and brokers that are down.

A client dials a bootstrap address and then the addresses that Metadata names. A name that does not resolve, or an
unused address in the client's network, leaves no SYN: the client asks for leaders and its coordinator again and again.
Clients that ask once and are silent then are in ``bootstraps``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_one_way
from kwiresniff.analysis.doctor.evidence import MAX_NAMES, Case, Episodes, clipped
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.bootstraps import LEARNT_NS, Bootstraps
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FIND_COORDINATOR, METADATA
from kwiresniff.base.flows import host_of
from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.model import Body, Connection, ConnectionAttempt, Exchange

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address


#: Addresses remembered of the Metadata from one dialled address.
MAX_ADVERTISED = 100
#: Addresses reached from a host, and clients whose connection began before the capture, that are remembered.
MAX_REACHED = 10_000
#: A SYN without an answer for so long was dropped; attempts so far apart are episodes of their own.
SYN_NS = 1_000_000_000
PAUSE_NS = 5_000_000_000
#: A client that asks so often in such a time, is answered each time, and does nothing else cannot reach its leaders or
#: its coordinator; fewer times are enough over a longer time.
ASKED_AGAIN = 4
ASKED_NS = 2_000_000_000
ASKED_SLOWLY = 3
ASKED_SLOWLY_NS = 5_000_000_000
ASKED_EVERY_NS = 5_000_000_000
#: Connections to a broker whose begin and end are remembered.
MAX_SERVED = 1_000


@dataclass(slots=True, eq=False)
class _Dialled:
    """The addresses that a client's host got from Metadata at one address."""

    case: Case
    advertised: dict[str, None] = field(default_factory=dict)


class Addresses(Observer):
    """``advertised_not_reached``: Metadata names addresses that the clients of a host cannot reach, or that cannot be
    right there; ``left_bootstrap``: clients learned the brokers' addresses, left, and were seen nowhere else;
    ``connections_failed``: a server refused connections, or did not answer SYNs.

    Numbers of the first two: ``dialled``, ``advertised``, ``clients``, and ``how`` it shows, or for how long they were
    silent (``silent_ns``) and whether the capture has an only broker of several (``is_partial``); of the third:
    ``address``, ``refused``, ``unanswered``, ``hosts``, whether it ``is_back``, ``is_starting``, ``is_broker``,
    whether one of the hosts ``works`` with other brokers, the hosts that had a connection to it meanwhile
    (``reached_by``), and the addresses that answered on its port by the other version of IP, where none did by its own
    (``other_family``).
    """

    kinds = ("advertised_not_reached", "left_bootstrap", "connections_failed")
    apis = frozenset({METADATA, FIND_COORDINATOR})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._dialled: Subjects[tuple[str, str], _Dialled] = context.subjects(lambda: _Dialled(context.case()), 20)
        self._failed = Episodes(context.budget, PAUSE_NS)
        self._reached: dict[tuple[str, str], int] = {}
        self._served: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._asking = context.tally()
        self._midway: set[tuple[str, str, str]] = set()
        self._bootstraps = Bootstraps(context)
        self._one_way = 0  # connections with one direction captured, less the others

    def exchange(self, exchange: Exchange) -> None:
        body = response_body(exchange)
        if not body:
            return
        host, broker = host_of(exchange.connection.client), exchange.connection.broker
        if exchange.api_key == FIND_COORDINATOR:
            if not exchange.errors:
                self._asks(exchange, host, broker)
            return
        self._bootstraps.exchange(exchange)
        known = self._dialled.of((host, broker))
        if known is None:
            return
        known.case.add(*place_of(exchange))
        if exchange.client_id:
            known.case.note("names", [exchange.client_id])
        if _names_leaders(exchange, body):
            self._asks(exchange, host, broker)
        for node in body.get("brokers") or ():
            address, advertised = clipped(address_text(node)), known.advertised
            if address and address not in advertised and self.context.has_room(advertised, MAX_ADVERTISED, address):
                advertised[address] = None

    def _asks(self, exchange: Exchange, host: str, broker: str) -> None:
        case = self._asking.case(f"{exchange.client_id or ''}\0{host}", broker)
        case.add(*place_of(exchange))
        case.note("asked", [f"{exchange.connection.id} {exchange.api}"])

    def connection(self, connection: Connection) -> None:
        self._one_way += 1 if is_one_way(connection) else -1
        key = host_of(connection.client), connection.broker
        self._bootstraps.connection(connection, key[0])
        if connection.bytes[1] and (key in self._reached or len(self._reached) < MAX_REACHED):
            self._reached[key] = connection.first_ns
            served = self._served.setdefault(key, [])
            if len(served) < MAX_SERVED:
                served.append((connection.first_ns, connection.last_ns))
        if not connection.handshake_seen and len(self._midway) < MAX_REACHED:
            self._midway.add((connection.client_id or "", *key))

    def attempt(self, attempt: ConnectionAttempt) -> None:
        """Counts a SYN that was refused or not answered; ``total`` of its case are the refusals."""
        if attempt.refused or self.context.end_ns - attempt.first_ns >= SYN_NS or attempt.syns > 1:
            case = self._failed.case(host_of(attempt.client), attempt.server, attempt.first_ns)
            case.add(attempt.packet, attempt.first_ns, int(attempt.refused), until_ns=attempt.last_ns)

    def observations(self) -> Iterator[Observation]:
        explained: set[tuple[str, str]] = set()
        for (host, broker), dialled in self._dialled.items():
            if wrong := self._wrong(host, broker, dialled):
                explained.update((host, address) for address in wrong)
                yield self._not_reached(host, broker, dialled, wrong)
            elif gone := self._gone(host, broker, dialled):
                yield self._left(host, broker, gone, list(dialled.advertised))
        by_server: dict[str, list[tuple[str, Case]]] = {}
        for host, server, case in self._failed:
            if (host, server) not in explained and not self._is_silent(host, server):
                by_server.setdefault(server, []).append((host, case))
        brokers = {broker for _, broker in self._dialled} | {server for _, server in self._reached}
        for server, failures in by_server.items():
            is_broker = server in brokers or self.context.cluster.is_advertised(server)
            served = [times for host, _ in failures for times in self._served.get((host, server), ())]
            for absence in absences(failures, served if is_broker else ()):
                yield self._failures(server, absence, is_broker)

    def _is_silent(self, host: str, server: str) -> bool:
        """Whether a failed SYN proves nothing because the capture lacks what servers send."""
        return self._one_way > 0 and not any(one.total for one in self._failed.of(host, server))

    def _wrong(self, host: str, broker: str, dialled: _Dialled) -> list[str]:
        """The advertised addresses that are wrong for this client: none of them can be reached."""
        advertised = list(dialled.advertised)
        if broker in dialled.advertised or any((host, address) in self._reached for address in advertised):
            return []
        failed = [address for address in advertised if self._failed.of(host, address)]
        if failed:
            return failed
        if any(at in self.context.cluster.served for at in ((host, broker), *((host, one) for one in advertised))):
            return []  # the advertised address is translated on the way, as by a forwarded port
        elsewhere = [address for address in advertised if _is_elsewhere(address, host, broker)]
        if self.context.end_ns - dialled.case.first_ns < LEARNT_NS:
            # The capture ends before it shows whether the others can be reached.
            return [address for address in elsewhere if _is_loopback(host_of(address))]
        return elsewhere or (advertised if self._waiting(host, broker) else [])

    def _waiting(self, host: str, broker: str) -> dict[str, Case]:
        """The clients at a host that keep asking for leaders and never send these anything."""
        working = {
            name for (served, _), names in self.context.cluster.served.items() if served == host for name in names
        }
        found: dict[str, Case] = {}
        for subject, asked, case in self._asking:
            name, _, at = subject.partition("\0")
            lasted_ns = case.last_ns - case.first_ns
            # Asking twice on a later connection is polling; who cannot reach its leader asks once on each.
            questions = case.counts("asked")
            first = next(iter(questions), "").partition(" ")[0]
            again = any(count > 1 for one, count in questions.items() if one.partition(" ")[0] != first)
            often = any(
                case.count >= count and lasted_ns >= ns
                for count, ns in ((ASKED_AGAIN, ASKED_NS), (ASKED_SLOWLY, ASKED_SLOWLY_NS))
            )
            known = (at, asked) == (host, broker) and name not in working and (name, host, broker) not in self._midway
            if known and often and not again and lasted_ns <= case.count * ASKED_EVERY_NS:
                found[name] = case
        return found

    def _gone(self, host: str, broker: str, dialled: _Dialled) -> dict[str, Case]:
        """The clients at a host that learned the addresses, left, and were seen nowhere."""
        if not dialled.advertised or broker in dialled.advertised:
            return {}
        addresses = [(host, address) for address in dialled.advertised]
        served = self.context.cluster.served
        if (host, broker) in served or any(
            one in served or one in self._reached or self._failed.of(*one) for one in addresses
        ):
            return {}
        return self._bootstraps.left(host, broker)

    def _not_reached(self, host: str, broker: str, dialled: _Dialled, wrong: list[str]) -> Observation:
        failures = [one for address in wrong for one in self._failed.of(host, address)]
        waiting = {} if failures else self._waiting(host, broker)
        case = self.context.case(failures or waiting.values() or [dialled.case])
        names = [name for name in waiting if name] or dialled.case.noted("names") or [NO_CLIENT_ID]
        if any(one.count > one.total for one in failures):
            how = "where SYNs stay unanswered"
        elif failures:
            how = "where connections are refused"
        elif any(_is_loopback(host_of(address)) for address in wrong):
            how = "which is the client's own machine"
        elif all(_is_elsewhere(address, host, broker) for address in wrong):
            how = "a private address that cannot be reached from elsewhere"
        else:
            how = "where the client never connects, though it goes on asking for its leaders or its coordinator"
        clients = [f"{name} {host}" for name in names]
        return _advertised("advertised_not_reached", case, broker, wrong, clients, {"how": how})

    def _left(self, host: str, broker: str, gone: dict[str, Case], advertised: list[str]) -> Observation:
        case, clients = self.context.case(gone.values()), [f"{name or NO_CLIENT_ID} {host}" for name in gone]
        numbers = {
            "silent_ns": self.context.end_ns - case.last_ns,
            # A capture made at one of several brokers does not have clients' connections to the others.
            "is_partial": len(advertised) > 1 and len({server for _, server in self._reached}) == 1,
        }
        return _advertised("left_bootstrap", case, broker, advertised, clients, numbers)

    def _failures(self, server: str, absence: list[tuple[str, Case]], is_broker: bool) -> Observation:
        case, hosts = self.context.case(one for _, one in absence), [host for host, _ in absence]
        unanswered = case.count - case.total
        back_ns = max((self._reached.get((host, server), 0) for host in hosts), default=0)
        numbers = {
            "address": server,
            "refused": case.total,
            "unanswered": unanswered,
            "hosts": hosts,
            "is_back": back_ns > case.last_ns,
            "is_starting": self.context.cluster.last_answer_ns.get(server, 0) == 0 and not unanswered,
            "is_broker": is_broker,
            "works": any(host in hosts for host, _ in self._reached),
            "other_family": self._of_other_family(server),
            "reached_by": self._reached_by(server, hosts, case.first_ns, case.last_ns),
        }
        about = [f"broker:{server}", *(f"host:{host}" for host in hosts)]
        return observation_of("connections_failed", case, about, numbers)

    def _of_other_family(self, server: str) -> list[str]:
        port, is_ipv6 = server.rpartition(":")[2], server.startswith("[")
        alike = sorted({reached for _, reached in self._reached if reached.rpartition(":")[2] == port})
        others = [reached for reached in alike if reached.startswith("[") != is_ipv6]
        return others[:MAX_NAMES] if len(others) == len(alike) else []

    def _reached_by(self, server: str, hosts: list[str], first_ns: int, last_ns: int) -> list[str]:
        """The other hosts with a connection to a server for most of a time, or of that connection's, while it
        answered."""
        answered_ns = self.context.cluster.last_answer_ns.get(server, 0)
        found = []
        for (host, reached), served in self._served.items():
            if reached == server and host not in hosts:
                both = [
                    (min(end_ns, last_ns, answered_ns) - max(begin_ns, first_ns), end_ns - begin_ns)
                    for begin_ns, end_ns in served
                ]
                if any(ns > max(SYN_NS, min(whole_ns, last_ns - first_ns) // 2) for ns, whole_ns in both):
                    found.append(host)
        return found[:MAX_NAMES]


def _advertised(
    kind: str, case: Case, broker: str, advertised: list[str], clients: list[str], numbers: dict[str, Any]
) -> Observation:
    about = [*(f"client:{one}" for one in clients), *(f"broker:{one}" for one in (broker, *advertised))]
    return observation_of(
        kind, case, about, {"dialled": broker, "advertised": advertised, **numbers, "clients": clients}
    )


def absences(
    failures: Iterable[tuple[str, Case]], served: Iterable[tuple[int, int]]
) -> Iterator[list[tuple[str, Case]]]:
    """Failures with their hosts, together where no connection in ``served`` (begin and end) lies between them."""
    absence: list[tuple[str, Case]] = []
    coming, over_ns, served_ns = sorted(served, reverse=True), 0, 0
    for host, case in sorted(failures, key=lambda one: one[1].first_ns):
        while coming and coming[-1][0] < case.first_ns:
            served_ns = max(served_ns, coming.pop()[1])
        if absence and served_ns > over_ns:
            yield absence
            absence = []
        absence.append((host, case))
        over_ns = max(over_ns, case.last_ns)
    if absence:
        yield absence


def _is_elsewhere(address: str, client: str, broker: str) -> bool:
    """Whether an advertised address cannot be that of the broker which the client has dialled: a loopback address
    handed to another machine, a private one handed out from a public one."""
    host, dialled = host_of(address), host_of(broker)
    if host == dialled or client == dialled:
        return False
    if _is_loopback(host):
        return not _is_loopback(client)
    advertised, dialled_to = numeric_address(host), numeric_address(dialled)
    return advertised is not None and advertised.is_private and dialled_to is not None and dialled_to.is_global


def _names_leaders(exchange: Exchange, body: Body) -> bool:
    """Whether topics were asked for by name or id, and all have leaders to go to."""
    asked = request_body(exchange)
    if not asked or not asked.get("topics"):
        return False
    return all(
        not topic.get("error_code")
        and all(not one.get("error_code") and one.get("leader_id", -1) >= 0 for one in topic.get("partitions") or ())
        for topic in body.get("topics") or ()
    )


def _is_loopback(host: str) -> bool:
    if host in ("localhost", "0.0.0.0", "[::]"):
        return True
    address = numeric_address(host)
    return address is not None and address.is_loopback


def numeric_address(host: str) -> IPv4Address | IPv6Address | None:
    """The address that a host is given by, None for one that is given by its name."""
    try:
        return ip_address(host.strip("[]"))
    except ValueError:
        return None
