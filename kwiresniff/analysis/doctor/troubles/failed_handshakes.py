"""TLS handshakes that fail: TLS on a plaintext port, certificates that are not trusted, other alerts.

Source: RFC 8446, section 6.2 (alerts). A plaintext listener takes a hello for a request whose length it refuses, and
closes the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection, Problem

#: Alerts that refuse the other's certificate.
_CERTIFICATE_ALERTS = frozenset({
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired", "certificate_unknown",
    "unknown_ca", "certificate_required", "access_denied",
})  # fmt: skip
#: An alert of TLS 1.3, which cannot be read: before its Finished a client refuses the server's certificate by it, a
#: server after that the client's.
ENCRYPTED: Final = "encrypted"
#: No alert: some clients just close when they refuse the certificate; a client that is stopped does so as well, once.
SILENT: Final = "no alert"
#: Handshakes closed without an alert from which on it is a refusal.
OFTEN: Final = 2


class FailedHandshakes(CountingObserver):
    """``hello_refused``: a broker closed at the hello; ``broker_not_trusted``, ``client_not_trusted``: one refused the
    other's certificate; ``handshake_refused``: another alert; ``alert_alone``: an alert of a broker of which the
    capture has nothing else.

    Numbers: ``alert``, ``sender``, ``broker``, ``path`` (client's host and broker), and whether the broker
    ``speaks_plaintext``. Notes: ``hosts``, ``brokers``, ``server names``, ``not after``, ``server_certificate_names``,
    ``client_certificate_names``.
    """

    kinds = ("hello_refused", "broker_not_trusted", "client_not_trusted", "handshake_refused", "alert_alone")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._plaintext_brokers: set[str] = set()

    def connection(self, connection: Connection) -> None:
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
        details = problem.details or {}
        room = len(self._plaintext_brokers) < MAX_SUBJECTS
        if problem.code == "tls_not_answered" and details.get("speaks_kafka") and room:
            self._plaintext_brokers.add(str(details.get("server") or ""))

    def observations(self) -> Iterator[Observation]:
        for path, how, case in self.cases:
            kind, alert, sender = [*how.split("\0"), "", ""][:3]
            broker = next(iter(case.noted("brokers")), "")
            plain = broker in self.context.cluster.unauthenticated or broker in self._plaintext_brokers
            numbers = {"alert": alert, "sender": sender, "broker": broker, "path": path, "speaks_plaintext": plain}
            yield observation_of(kind, case, {f"host:{host}" for host in case.noted("hosts")}, numbers)


def path_of(connection: Connection) -> str:
    """The client's host and the broker of a connection."""
    return f"{host_of(connection.client)} → {connection.broker}"


def note_ends(case: Case, connection: Connection) -> None:
    """Adds the client's host and the broker of a connection to a case."""
    case.note("brokers", [connection.broker])
    case.note("hosts", [host_of(connection.client)])


class FailedHandshake(Cause):
    """`tls_to_plaintext` (error): a TLS client on a plaintext port.

    `untrusted_certificate` (error): client or broker refuses the other's certificate, by the alert's name, with the
    certificate's names where they are in the clear, and whether it had expired or has other names than the host that is
    dialled. In TLS 1.3 alert and certificate are encrypted, and the alert is recognised by its size. Clients of some
    languages send none: that one closes twice and more when it has the certificate is as good (info once).

    `tls_refused` (error): a handshake ended in another alert.
    """

    codes = ("untrusted_certificate", "tls_to_plaintext", "tls_refused")
    explains = ("hello_refused", "broker_not_trusted", "client_not_trusted", "handshake_refused", "alert_alone")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for one in observed.of(*self.explains):
            broker, alert = one.numbers["broker"], one.numbers["alert"]
            name, count = self.context.cluster.broker_text(broker), times(one.count)
            numbers: dict[str, Any] = {"broker": broker, "server_names": one.noted("server names")}
            code = self.codes[0]
            if one.kind == "hello_refused":
                code, remedy = "tls_to_plaintext", _PLAINTEXT
                what = "a plaintext listener" if one.numbers["speaks_plaintext"] else "which does not"
                title = f"speaks TLS to {name}, {what}: it closes the connection at the hello, {count}"
            elif one.kind == "broker_not_trusted":
                names = one.noted("server_certificate_names")
                numbers |= {"alert": alert, "certificate_names": names, "not_after": one.noted("not after")}
                title, remedy = _refused_broker(one, name)
                title += f", {count}"
            elif one.kind == "client_not_trusted":
                names, remedy = one.noted("client_certificate_names"), _CLIENT_CERTIFICATE
                numbers |= {"alert": alert, "certificate_names": names}
                whose = f" ({', '.join(names)})" if names else ""
                title = f"its certificate{whose} is not taken by {name}: {alert}, {count}"
                if alert == ENCRYPTED:
                    title = f"{name} ends the handshake once the client has done its part, by an encrypted alert"
                    title += f", {count}"
            else:
                code, sender, remedy = "tls_refused", one.numbers["sender"], _COMPARE
                numbers |= {"alert": alert, "sender": sender}
                title = f"TLS handshake with {name} refused by the {sender or 'peer'}: {alert}, {count}"
                if one.kind == "alert_alone":
                    title = (
                        f"{name} answers with a TLS alert ({alert}), {count}, to what the capture does not have: "
                        "plaintext, or a handshake that it refuses"
                    )
                    remedy = f"Capture what clients send, too. {remedy}"
            yield told(
                one,
                title,
                remedy,
                code=code,
                subject=one.numbers["path"],
                severity="info" if alert == SILENT and one.count < OFTEN else "error",
                numbers=numbers,
                explains=symptoms("broker", [broker], "connection_churn"),
            )


def _refused_broker(one: Observation, name: str) -> tuple[str, str]:
    """The title and the remedy where a client refuses the certificate of a broker."""
    names, alert, broker = one.noted("server_certificate_names"), one.numbers["alert"], one.numbers["broker"]
    certificate = f"the certificate of {name}" + (f" ({', '.join(names)})" if names else "")
    refuses = f"it refuses the handshake with {alert}"
    if alert == SILENT:
        refuses = "it closes the connection without an alert"
    expired, other = _expired(one), _other_host(one, names)
    if alert == ENCRYPTED:
        title = f"refuses the handshake with {name} when it has its certificate, by an encrypted alert"
        return title, _UNTOLD.format(broker=broker)
    if alert == SILENT and not names:
        return f"closes the connection when it has {certificate}, without an alert", _UNTOLD.format(broker=broker)
    if alert == "certificate_expired" or expired:
        until = f" on {expired}" if expired else ""
        return f"does not take {certificate}, which expired{until}: {refuses}", _RENEW
    if other and alert != "unknown_ca":
        title = f"does not take {certificate}, which does not name the host that it dials ({other}): {refuses}"
        return title, _OTHER_HOST
    return f"does not trust {certificate}: {refuses}", _UNTRUSTED


def _expired(one: Observation) -> str:
    """The day on which the broker's certificate expired, empty where that was not before the handshake."""
    handshake = f"{datetime.fromtimestamp(one.first_ns // 1_000_000_000, UTC):%Y-%m-%dT%H:%M:%S}Z"
    return next((until[:10] for until in one.noted("not after") if until < handshake), "")


def _other_host(one: Observation, names: list[str]) -> str:
    """The name or address that the client dials where the certificate has others, else an empty text."""
    dialled = one.noted("server names") or [host_of(one.numbers["broker"])]
    own = {name.lower() for name in names}
    for host in dialled:
        name = host.lower()
        if own and name not in own and f"*.{name.partition('.')[2]}" not in own:
            return host
    return ""


_PLAINTEXT: Final = (
    "Set security.protocol of the client to PLAINTEXT (or SASL_PLAINTEXT), or use the port of one with TLS."
)

_CLIENT_CERTIFICATE: Final = (
    "The listener wants client certificates (ssl.client.auth): give the client a keystore whose certificate the "
    "broker's truststore trusts, and that has not expired."
)

_COMPARE: Final = "Compare protocol versions, ciphers and server names of both sides."

_RENEW: Final = "The broker's certificate has expired: renew it. Every client that checks it is refused."

_UNTRUSTED: Final = (
    "Give the client the CA that signed the broker's certificate (ssl.truststore.location, ssl.ca.location), and see "
    "that the certificate names the host that is dialled."
)

_UNTOLD: Final = (
    "TLS 1.3 encrypts the alert and the certificate, so the client's log has the reason: it does not trust the CA that "
    "signed it (ssl.truststore.location, ssl.ca.location), the certificate has expired, or it does not name the host "
    "that is dialled. openssl s_client -connect {broker} | openssl x509 -noout -issuer -dates -ext subjectAltName "
    "shows all three."
)

_OTHER_HOST: Final = (
    "Clients compare the host that they dial with the names in the certificate "
    "(ssl.endpoint.identification.algorithm): give the broker a certificate whose subjectAltName has the host of "
    "advertised.listeners, and dial that one. Else the client does not trust the CA (ssl.truststore.location, "
    "ssl.ca.location)."
)
