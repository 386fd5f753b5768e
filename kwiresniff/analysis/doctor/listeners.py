"""Addresses: brokers that advertise what a client cannot reach, and brokers that are not there.

A client dials a bootstrap address and then the addresses that Metadata names (``advertised.listeners``). Where those
are wrong, everything but what any broker answers fails, and nothing on the wire but the SYNs says why. A name that does
not resolve leaves not even a SYN, nor does an address in its network that nobody has: the client asks for leaders and
its coordinator again and again, and never gets to work. Those that ask once and are silent then are in ``bootstraps``.
"""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address
from typing import TYPE_CHECKING

from kwiresniff.analysis.doctor.absences import Failures, absences, episode_of
from kwiresniff.analysis.doctor.bootstraps import LEARNT_NS, Bootstraps
from kwiresniff.analysis.doctor.cause import INCIDENT, SYMPTOM
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_one_way
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, clipped
from kwiresniff.analysis.doctor.rule import Rule, as_brokers, found
from kwiresniff.analysis.doctor.wording import duration, listed, span
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FIND_COORDINATOR, METADATA
from kwiresniff.base.flows import host_of
from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.model import Body, Connection, ConnectionAttempt, Exchange
from kwiresniff.results.findings import Finding, scope_of

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv6Address

#: Addresses that a Metadata answer advertises, as many as are remembered of each dialled one.
MAX_ADVERTISED = 100
#: Attempts to connect remembered by client host and address.
MAX_ATTEMPTS = 10_000
#: A SYN that is not answered for so long is not just slow.
SYN_NS = 1_000_000_000
#: A client that asks so often for the leaders of its topics or its coordinator, which it got each time, and so soon
#: again, and does nothing else, cannot reach them. One that only wants to know dials a leader, too, and asks there.
#: Fewer times are enough where they take longer.
ASKED_AGAIN = 4
ASKED_NS = 2_000_000_000
ASKED_SLOWLY = 3
ASKED_SLOWLY_NS = 5_000_000_000
ASKED_EVERY_NS = 5_000_000_000
#: Connections of a broker of which is remembered from when to when they served.
MAX_SERVED = 1_000
#: A broker that is away for longer is more than one that restarts.
AWAY_NS = 30_000_000_000
#: The last digits of ports that brokers listen on by habit: 9092 to 9099, 19092, 29092. Where nobody answers there, it
#: is worth telling, though nothing says that it is a broker.
USUAL_PORTS = range(9092, 9100)
#: Attempts from which on a server that nobody knows is more than a bootstrap address of before.
FEW_ATTEMPTS = 3


class _Dialled:
    """The addresses that a client's host got by Metadata from one address."""

    __slots__ = ("advertised", "case")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.advertised: dict[str, None] = {}


class ListenerRule(Rule):
    """Wrong ``advertised.listeners``, and brokers that refuse connections or do not answer.

    `advertised_listener` (error): Metadata names addresses that the client cannot reach, or that cannot be right where
    it is: wrong `advertised.listeners`. With the address dialled and those advertised. A name that does not resolve, or
    an address in its network that nobody has, shows in a client that asks for the leaders of its topics or its
    coordinator again and again, and never asks these for anything. One that asks for the brokers, leaves, and is seen
    nowhere else is told with the doubt: warning when it does so 3 times or is silent for 10 s, else info, as where the
    capture has one of several brokers.

    `broker_unreachable` (error when it lasts 30 s, else warning; info when it starts or is soon back): a broker refuses
    connections, or does not answer SYNs; a server on a usual port (9092 to 9099, 19092, 29092) of which nothing shows
    that it is a broker is told with that doubt, and as info where its clients work with others.
    """

    codes = ("advertised_listener", "broker_unreachable")
    apis = frozenset({METADATA, FIND_COORDINATOR})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._dialled: dict[tuple[str, str], _Dialled] = {}
        self._failed: dict[tuple[str, str], list[Failures]] = {}
        self._reached: dict[tuple[str, str], int] = {}
        self._served: dict[tuple[str, str], list[tuple[int, int]]] = {}
        self._asking = context.tally()
        self._midway: set[tuple[str, str, str]] = set()
        self._bootstraps = Bootstraps(context)
        self._one_way = self._two_way = 0

    def exchange(self, exchange: Exchange) -> None:
        """Notes the addresses that a Metadata response advertises, and who is told where to go."""
        body = exchange.response.body if exchange.response is not None else None
        if not body:
            return
        host, broker = host_of(exchange.connection.client), exchange.connection.broker
        if exchange.api_key == FIND_COORDINATOR:
            if not exchange.errors:
                self._asks(exchange, host, broker)
            return
        self._bootstraps.exchange(exchange)
        known = self._dialled.get((host, broker))
        if known is None:
            size = 20 * ENTRY_BYTES + text_bytes(host, broker)
            if len(self._dialled) >= MAX_SUBJECTS or not self.context.budget.admit(size):
                return
            known = self._dialled[host, broker] = _Dialled(self.context.case())
        known.case.add(*place_of(exchange))
        if exchange.client_id:
            known.case.note("names", [exchange.client_id])
        if _names_leaders(exchange, body):
            self._asks(exchange, host, broker)
        for node in body.get("brokers") or ():
            address = clipped(address_text(node))
            new = address and address not in known.advertised and len(known.advertised) < MAX_ADVERTISED
            if new and self.context.budget.admit(ENTRY_BYTES + text_bytes(address)):
                known.advertised[address] = None

    def _asks(self, exchange: Exchange, host: str, broker: str) -> None:
        case = self._asking.case(f"{exchange.client_id or ''}\0{host}", broker)
        case.add(*place_of(exchange))
        case.note("asked", [f"{exchange.connection.id} {exchange.api}"])

    def connection(self, connection: Connection) -> None:
        """Notes an address that could be reached."""
        if is_one_way(connection):
            self._one_way += 1
        else:
            self._two_way += 1
        key = host_of(connection.client), connection.broker
        self._bootstraps.connection(connection, key[0])
        if connection.bytes[1] and (key in self._reached or len(self._reached) < MAX_ATTEMPTS):
            self._reached[key] = connection.first_ns
            served = self._served.setdefault(key, [])
            if len(served) < MAX_SERVED:
                served.append((connection.first_ns, connection.last_ns))
        if not connection.handshake_seen and len(self._midway) < MAX_ATTEMPTS:
            self._midway.add((connection.client_id or "", *key))

    def attempt(self, attempt: ConnectionAttempt) -> None:
        """Notes a SYN that was refused or not answered."""
        if not attempt.refused and self.context.end_ns - attempt.first_ns < SYN_NS and attempt.syns < 2:
            return
        key = host_of(attempt.client), attempt.server
        episodes = self._failed.get(key)
        if episodes is None:
            if len(self._failed) >= MAX_ATTEMPTS:
                return
            episodes = self._failed[key] = []
        failures = episode_of(attempt, episodes)
        failures.refused += attempt.refused
        failures.unanswered += not attempt.refused
        failures.first_ns = min(failures.first_ns, attempt.first_ns)
        failures.last_ns = max(failures.last_ns, attempt.last_ns)
        if len(failures.places) < 5:
            failures.places.append((attempt.packet, attempt.first_ns))

    def findings(self) -> Iterator[Finding]:
        """First what is advertised wrongly; of what else cannot be reached, what is known to be a broker's."""
        explained: set[tuple[str, str]] = set()
        for (host, broker), dialled in self._dialled.items():
            wrong = self._wrong(host, broker, dialled)
            if wrong:
                explained.update((host, address) for address in wrong)
                yield self._advertised(host, broker, dialled, wrong)
            elif gone := self._gone(host, broker, dialled):
                reached = {server for _, server in self._reached}
                yield self._bootstraps.finding(host, broker, gone, list(dialled.advertised), reached)
        by_server: dict[str, list[tuple[str, Failures]]] = {}
        for (host, server), episodes in self._failed.items():
            if (host, server) not in explained and not self._is_silent(episodes):
                by_server.setdefault(server, []).extend((host, one) for one in episodes)
        known = {broker for _, broker in self._dialled} | {server for _, server in self._reached}
        for server, attempts in by_server.items():
            if server in known or self.context.cluster.is_advertised(server):
                for absence in absences(attempts, self._times(server, attempts)):
                    yield self._unreachable(server, absence)
            elif _usual_port(server):
                for absence in absences(attempts, []):
                    yield self._unknown(self._unreachable(server, absence))

    def _is_silent(self, episodes: list[Failures]) -> bool:
        """Whether what would answer SYNs is not in the capture, which then does not show that nobody did."""
        return self._one_way > self._two_way and not any(one.refused for one in episodes)

    # -- what is advertised -------------------------------------------------------------------------------------

    def _wrong(self, host: str, broker: str, dialled: _Dialled) -> list[str]:
        """The advertised addresses that are wrong for this client: none of them can be reached."""
        advertised = list(dialled.advertised)
        if broker in dialled.advertised or any((host, address) in self._reached for address in advertised):
            return []
        failed = [address for address in advertised if (host, address) in self._failed]
        if failed:
            return failed
        if any(at in self.context.cluster.served for at in ((host, broker), *((host, one) for one in advertised))):
            return []  # what is advertised is translated on the way, as by a forwarded port
        elsewhere = [address for address in advertised if _is_elsewhere(address, host, broker)]
        if self.context.end_ns - dialled.case.first_ns < LEARNT_NS:
            # The capture ends before it shows whether they can be reached; but for what cannot be.
            return [address for address in elsewhere if _is_loopback(host_of(address))]
        return elsewhere or (advertised if self._waiting(host, broker) else [])

    def _waiting(self, host: str, broker: str) -> dict[str, Case]:
        """The clients at a host that go on asking for the leaders of their topics and never ask these for anything."""
        working = {
            name for (served, _), names in self.context.cluster.served.items() if served == host for name in names
        }
        found: dict[str, Case] = {}
        for subject, asked, case in self._asking:
            name, _, at = subject.partition("\0")
            lasted_ns = case.last_ns - case.first_ns
            # It dials the address that it was given again and again, and asks the same once on each, or keeps its
            # connection.
            questions = case.counts("asked")
            first = next(iter(questions), "").partition(" ")[0]
            again = any(count > 1 for one, count in questions.items() if one.partition(" ")[0] != first)
            often = (case.count >= ASKED_AGAIN and lasted_ns >= ASKED_NS) or (
                case.count >= ASKED_SLOWLY and lasted_ns >= ASKED_SLOWLY_NS
            )
            known = (at, asked) == (host, broker) and name not in working and (name, host, broker) not in self._midway
            if known and often and not again and lasted_ns <= case.count * ASKED_EVERY_NS:
                found[name] = case
        return found

    def _gone(self, host: str, broker: str, dialled: _Dialled) -> dict[str, Case]:
        """The clients at a host that were told by a broker where to go, left, and were seen nowhere."""
        here = [(host, broker), *((host, address) for address in dialled.advertised)]
        if not dialled.advertised or broker in dialled.advertised:
            return {}
        if any(one in self.context.cluster.served for one in here) or any(
            one in self._reached or one in self._failed for one in here[1:]
        ):
            return {}
        return self._bootstraps.left(host, broker)

    def _advertised(self, host: str, broker: str, dialled: _Dialled, wrong: list[str]) -> Finding:
        case = self.context.case()
        for address in wrong:
            for failures in self._failed.get((host, address), ()):
                for packet, ns in failures.places:
                    case.add(packet, ns)
                case.count += failures.refused + failures.unanswered - len(failures.places)
                case.last_ns = max(case.last_ns, failures.last_ns)
        how = self._how(host, broker, wrong)
        names = dialled.case.noted("names")
        if not case.count:
            waiting = self._waiting(host, broker)
            for one in waiting.values():
                case.merge(one)
            names = [name for name in waiting if name] or names
        if not case.count:
            case.merge(dialled.case)
        clients = [f"{name} {host}" for name in names] or [f"{NO_CLIENT_ID} {host}"]
        return found(
            "advertised_listener",
            "error",
            broker,
            f"Metadata from {broker} names {listed(wrong)}, {how}: wrong advertised.listeners for {listed(clients)}",
            "Set advertised.listeners of the listener that is dialled to an address that its clients can reach: a name "
            "or address of the broker in their network, not its loopback address or one behind a translation. A name "
            "must resolve where the client runs.",
            case,
            {"dialled": broker, "advertised": wrong, "clients": clients, "reached": False},
            clients=clients,
            brokers=[broker, *wrong],
            explains={
                "broker_unreachable": as_brokers(*wrong),
                "metadata_storm": scope_of("client", clients),
                "connection_churn": as_brokers(broker),
                "unanswered": as_brokers(broker),
                "closed_by_broker": as_brokers(broker),
            },
            rank=INCIDENT,
        )

    def _how(self, host: str, broker: str, wrong: list[str]) -> str:
        failures = [one for address in wrong for one in self._failed.get((host, address), ())]
        if any(one.unanswered for one in failures):
            return "where SYNs stay unanswered"
        if failures:
            return "where connections are refused"
        if any(_is_loopback(host_of(address)) for address in wrong):
            return "which is the client's own machine"
        if all(_is_elsewhere(address, host, broker) for address in wrong):
            return "a private address that cannot be reached from elsewhere"
        return "where the client never connects, though it goes on asking for its leaders or its coordinator"

    def _unknown(self, finding: Finding) -> Finding:
        """A finding on a server of which nothing says that it is a broker; its clients may work with others."""
        working = {host for host, _ in self._reached}
        calm = finding.count < FEW_ATTEMPTS or not working.isdisjoint(finding.named("host"))
        lasting = finding.last_ns - finding.first_ns >= AWAY_NS
        return finding._replace(
            severity="info" if calm else "error" if lasting else "warning",
            title=f"{finding.title}; whether it is a broker, the capture does not show",
        )

    # -- brokers that are away ----------------------------------------------------------------------------------

    def _times(self, server: str, attempts: list[tuple[str, Failures]]) -> list[tuple[int, int]]:
        """From when to when connections of these hosts to a broker lasted."""
        return [times for host in {host for host, _ in attempts} for times in self._served.get((host, server), ())]

    def _unreachable(self, server: str, attempts: list[tuple[str, Failures]]) -> Finding:
        case = self.context.case()
        refused = unanswered = 0
        for _, failures in attempts:
            for packet, ns in failures.places:
                case.add(packet, ns)
            case.count += failures.refused + failures.unanswered - len(failures.places)
            case.last_ns = max(case.last_ns, failures.last_ns)
            refused, unanswered = refused + failures.refused, unanswered + failures.unanswered
        hosts = [host for host, _ in attempts]
        back = max((self._reached.get((host, server), 0) for host in hosts), default=0)
        came_back = back > case.last_ns
        starting = self.context.cluster.last_answer_ns.get(server, 0) == 0 and not unanswered
        how = "refuses connections" if refused >= unanswered else "does not answer SYNs"
        lasted = case.last_ns - case.first_ns
        until = f", for {duration(lasted)} at least" if lasted >= 1_000_000 else ""
        return found(
            "broker_unreachable",
            "error" if lasted >= AWAY_NS else "info" if came_back or starting else "warning",
            self.context.cluster.broker_text(server),
            f"{how}{span(case.first_ns, case.last_ns)}" + (", then is back" if came_back else until),
            "Refused: no process listens there, the broker is down or starting. Not answered: the machine is down, or "
            "something drops packets on the way (firewall, security group, routing).",
            case,
            {"address": server, "refused": refused, "unanswered": unanswered, "hosts": hosts[:100]},
            brokers=[server],
            scope=scope_of("host", hosts),
            explains={"connection_churn": as_brokers(server)},
            rank=SYMPTOM,
        )


def _usual_port(server: str) -> bool:
    return int(server.rpartition(":")[2]) % 10_000 in USUAL_PORTS


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
    asked = exchange.request.body if exchange.request is not None else None
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
