"""TLS that is not established: spoken to a plaintext port or missing on a TLS port, certificates not trusted, other
refusals.

Sources: RFC 8446, section 6.2 (alerts). A plaintext listener takes a hello for a request of a length that it refuses,
and closes; a TLS listener answers a request with an alert.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_text
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection, Problem

#: Alerts by which a peer says that it does not take the other's certificate.
_CERTIFICATE_ALERTS = frozenset({
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired", "certificate_unknown",
    "unknown_ca", "certificate_required", "access_denied",
})  # fmt: skip
#: An alert of TLS 1.3 that cannot be read. A client sends one before its Finished when it does not like what the server
#: has shown, a server after it when it does not like the client's: each time that is a certificate.
ENCRYPTED: Final = "encrypted"
#: No alert at all: clients of some languages just close when they do not like what the server has shown. One that is
#: ended by somebody does so as well, but not time and again.
SILENT: Final = "no alert"

#: A connection that ends so soon, after so little, did not come to work, or was done at once. Which end closes first
#: tells nothing: a broker answers the close_notify of a client that leaves in order by closing, too.
SOON_NS = 5_000_000_000
SOON_BYTES = 10_000


class FailedHandshakes(CountingObserver):
    """``hello_refused``: a broker closed at the hello; ``broker_not_trusted``, ``client_not_trusted``: one did not take
    the other's certificate; ``handshake_refused``: another alert; ``alert_alone``: one from a broker of which the
    capture has nothing else.

    Numbers: ``alert``, ``sender``, ``broker``, ``path`` (the client's host and the broker), and whether the broker
    ``speaks_plaintext``. Notes: ``hosts``, ``brokers``, ``server names``, ``not after``, ``server_certificate_names``,
    ``client_certificate_names``.
    """

    kinds = ("hello_refused", "broker_not_trusted", "client_not_trusted", "handshake_refused", "alert_alone")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._plaintext_brokers: set[str] = set()

    def connection(self, connection: Connection) -> None:
        """A TLS connection whose handshake came to nothing."""
        tls = connection.tls
        if tls is None or connection.protocol != "tls":
            return
        alert = tls.get("alert") or {}
        description, sender = str(alert.get("description") or ""), str(alert.get("sender") or "")
        if tls.get("abandoned"):
            self._count(connection, "broker_not_trusted", SILENT)
        elif not alert:
            silent = tls.get("version") is None and connection.bytes[1] == 0 and connection.closed_by == "broker"
            if silent and connection.handshake_seen:  # without its beginning, the handshake may have been done before
                self._count(connection, "hello_refused")
        elif description in _CERTIFICATE_ALERTS or description == ENCRYPTED:
            kind = "broker_not_trusted" if sender == "client" else "client_not_trusted"
            self._count(connection, kind, description)
        elif description != "close_notify":
            alone = sender == "broker" and connection.packets[1] and not connection.packets[0]
            self._count(connection, "alert_alone" if alone else "handshake_refused", description, sender)

    def _count(self, connection: Connection, kind: str, alert: str = "", sender: str = "") -> None:
        case = self.cases.case(path_of(connection), f"{kind}\0{alert}\0{sender}")
        packet = connection.closed_packet or connection.first_packet
        case.add(packet, connection.first_ns, until_ns=connection.closed_ns)
        note_ends(case, connection)
        tls = connection.tls or {}
        for note, field in (("server names", "server_name"), ("not after", "server_certificate_not_after")):
            case.note(note, [str(tls[field])] if tls.get(field) else [])
        for who in ("server_certificate_names", "client_certificate_names"):
            case.note(who, [str(name) for name in tls.get(who) or ()])

    def problem(self, problem: Problem) -> None:
        """A server that met a hello with silence, and speaks Kafka."""
        details = problem.details or {}
        room = len(self._plaintext_brokers) < MAX_SUBJECTS
        if problem.code == "tls_not_answered" and details.get("speaks_kafka") and room:
            self._plaintext_brokers.add(str(details.get("server") or ""))

    def observations(self) -> Iterator[Observation]:
        """By the client's host and broker, and by how it failed."""
        for path, how, case in self.cases:
            kind, alert, sender = [*how.split("\0"), "", ""][:3]
            broker = next(iter(case.noted("brokers")), "")
            plain = broker in self.context.cluster.unauthenticated or broker in self._plaintext_brokers
            numbers = {"alert": alert, "sender": sender, "broker": broker, "path": path, "speaks_plaintext": plain}
            by = f" by {alert} of the {sender or 'peer'}" if alert else ""
            text = f"{path}: TLS handshake ended{by}, {times(case.count)}"
            yield observation_of(kind, text, case, {f"host:{host}" for host in case.noted("hosts")}, numbers)


class PlaintextClients(CountingObserver):
    """``plaintext_to_tls``: a client, known by its host alone where it has no other, spoke plaintext and was answered
    with a TLS alert.

    Notes: ``requests``.
    """

    kinds = ("plaintext_to_tls",)
    sentence = "{client} spoke plaintext to {broker} and was answered with a TLS alert, {times}"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._answers = context.tally()

    def ending(self, ending: Ending) -> None:
        """A client that speaks plaintext is answered with an alert."""
        if ending.reason == "TLS wanted":
            connection = ending.connection
            case = self.cases.case(client_text(connection.client_id, connection.client), connection.broker)
            case.add(ending.first.packet, ending.first.first_ns, until_ns=connection.closed_ns)
            case.note("requests", [f"{ending.first.api} v{ending.first.version}"])

    def problem(self, problem: Problem) -> None:
        """What servers answered to plaintext with TLS, over all their connections."""
        details = problem.details or {}
        if problem.code == "not_kafka_answer" and details.get("protocol") == "tls":
            server = str(details.get("server") or "")
            case = self._answers.case(host_of(str(details.get("client") or "")), server)
            case.add(problem.packet or 0, problem.timestamp_ns or 0)
            case.count += max(int(details.get("connections") or 1) - 1, 0)

    def observations(self) -> Iterator[Observation]:
        """By client and broker; a server's answer where none of its clients is observed."""
        found_at = {broker for _, broker, _ in self.cases}
        for client, broker, case in [*self.cases, *(one for one in self._answers if one[1] not in found_at)]:
            yield self.observed(client, broker, case)


class ShortConnections(CountingObserver):
    """``closed_after_handshake``: connections of a host to a broker ended soon after their TLS handshake, and none
    lasted.

    Notes: ``hosts``, ``brokers``. Numbers: how many of them the client closed (``by_client``).
    """

    kinds = ("closed_after_handshake",)
    entities = ("path", "")
    sentence = "{path}: connections ended soon after their TLS handshake, {times}"

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._lasting: set[str] = set()

    def connection(self, connection: Connection) -> None:
        """Whether a connection with nothing to be read of it lasted, or was closed soon after its handshake: one that
        is idle a broker closes later, and on one that works there is more to be said."""
        tls = connection.tls or {}
        if connection.protocol != "tls" or tls.get("decrypted") or tls.get("version") is None or tls.get("alert"):
            return
        if not connection.handshake_seen:
            return
        lasted_ns = (connection.closed_ns or connection.last_ns) - connection.first_ns
        if lasted_ns > SOON_NS or max(connection.bytes) > SOON_BYTES:
            if len(self._lasting) < MAX_SUBJECTS:
                self._lasting.add(path_of(connection))
        elif connection.closed_by:
            case = self.cases.case(path_of(connection))
            by_client = connection.closed_by == "client"
            case.add(connection.closed_packet or connection.first_packet, connection.closed_ns, int(by_client))
            note_ends(case, connection)

    def observations(self) -> Iterator[Observation]:
        for path, _, case in self.cases:
            if path not in self._lasting:
                yield self.observed(path, "", case, by_client=case.total)


def path_of(connection: Connection) -> str:
    """The client's host and the broker of a connection."""
    return f"{host_of(connection.client)} → {connection.broker}"


def note_ends(case: Case, connection: Connection) -> None:
    """Adds the client's host and the broker of a connection to a case."""
    case.note("brokers", [connection.broker])
    case.note("hosts", [host_of(connection.client)])
