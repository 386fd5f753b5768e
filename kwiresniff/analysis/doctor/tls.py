"""TLS that is not established: spoken to a plaintext port or missing on a TLS port, certificates not trusted, other
refusals.

Sources: RFC 8446, section 6.2 (alerts). A plaintext listener takes a hello for a request of a length that it refuses,
and closes; a TLS listener answers a request with an alert.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_text
from kwiresniff.analysis.doctor.observers.opened_connections import CONNECTIONS_PER_MINUTE, ENOUGH_CONNECTIONS
from kwiresniff.analysis.doctor.rule import Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection, Problem
from kwiresniff.results.findings import Explains, Finding, scope_of

#: Alerts by which a peer says that it does not take the other's certificate.
_CERTIFICATE_ALERTS = frozenset({
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired", "certificate_unknown",
    "unknown_ca", "certificate_required", "access_denied",
})  # fmt: skip
_EXPIRED, _UNKNOWN_CA = "certificate_expired", "unknown_ca"
#: An alert of TLS 1.3 that cannot be read. A client sends one before its Finished when it does not like what the server
#: has shown, a server after it when it does not like the client's: each time that is a certificate.
_ENCRYPTED = "encrypted"
#: No alert at all: clients of some languages just close when they do not like what the server has shown. One that is
#: ended by somebody does so as well, but not time and again.
_SILENT = "no alert"
OFTEN = 2

#: A connection that ends so soon, after so little, did not come to work, or was done at once; so many of them, and none
#: that lasted. Which end closes first tells nothing: a broker answers the close_notify of a client that leaves in order
#: by closing, too.
SOON_NS = 5_000_000_000
SOON_BYTES = 10_000
SOON_OFTEN = 3

PLAIN_BROKER, UNTRUSTED_BROKER, UNTRUSTED_CLIENT, REFUSED = "plain", "untrusted", "untrusted client", "refused"
#: Refused, and the capture has nothing of what was.
UNSEEN = "unseen"


class TlsRule(Rule):
    """TLS and plaintext mixed up, certificates that are not trusted, and other refusals of a handshake.

    `tls_to_plaintext` (error): a TLS client on a plaintext port.

    `plaintext_to_tls` (error): a plaintext client on a TLS port, answered with an alert.

    `untrusted_certificate` (error): client or broker refuses the other's certificate, by the alert's name, with the
    certificate's names where they are in the clear, and whether it had expired or has other names than the host that is
    dialled. In TLS 1.3 alert and certificate are encrypted, and the alert is recognised by its size. Clients of some
    languages send none: that one closes twice and more when it has the certificate is as good (info once).

    `tls_refused` (error): a handshake ended in another alert.

    `tls_closed` (warning where it is more than 30 a minute, else info): connections end soon after their TLS handshake,
    3 times or more, and none of the client's host lasts: mostly an authentication that fails or is missing, which TLS
    hides; commands that are run again and again look alike.
    """

    codes = ("tls_to_plaintext", "plaintext_to_tls", "untrusted_certificate", "tls_refused", "tls_closed")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._handshakes = context.tally()
        self._plain = context.tally()
        self._answers = context.tally()
        self._plaintext_brokers: set[str] = set()
        self._soon = context.tally()
        self._lasting: set[str] = set()

    def connection(self, connection: Connection) -> None:
        """A TLS connection whose handshake came to nothing."""
        tls = connection.tls
        if tls is None or connection.protocol != "tls":
            return
        self._note_life(connection)
        alert = tls.get("alert") or {}
        description, sender = str(alert.get("description") or ""), str(alert.get("sender") or "")
        if tls.get("abandoned"):
            self._count(connection, f"{UNTRUSTED_BROKER}\0{_SILENT}")
        elif not alert:
            silent = tls.get("version") is None and connection.bytes[1] == 0 and connection.closed_by == "broker"
            if silent and connection.handshake_seen:  # without its beginning, the handshake may have been done before
                self._count(connection, PLAIN_BROKER)
        elif description in _CERTIFICATE_ALERTS or description == _ENCRYPTED:
            kind = UNTRUSTED_BROKER if sender == "client" else UNTRUSTED_CLIENT
            self._count(connection, f"{kind}\0{description}")
        elif description != "close_notify":
            kind = UNSEEN if sender == "broker" and connection.packets[1] and not connection.packets[0] else REFUSED
            self._count(connection, f"{kind}\0{description}\0{sender}")

    def _note_life(self, connection: Connection) -> None:
        """Whether a connection with nothing to be read of it lasted, or was closed soon after its handshake: one that
        is idle a broker closes later, and on one that works there is more to be said."""
        tls = connection.tls or {}
        if tls.get("decrypted") or not connection.handshake_seen or tls.get("version") is None or tls.get("alert"):
            return
        lasted_ns = (connection.closed_ns or connection.last_ns) - connection.first_ns
        small = max(connection.bytes) <= SOON_BYTES
        key = f"{host_of(connection.client)} → {connection.broker}"
        if connection.closed_by and lasted_ns <= SOON_NS and small:
            case = self._soon.case(key)
            case.add(connection.closed_packet or connection.first_packet, connection.closed_ns)
            case.note("brokers", [connection.broker])
            case.note("hosts", [host_of(connection.client)])
        elif (lasted_ns > SOON_NS or not small) and len(self._lasting) < MAX_SUBJECTS:
            self._lasting.add(key)

    def _count(self, connection: Connection, what: str) -> None:
        key = f"{host_of(connection.client)} → {connection.broker}"
        case = self._handshakes.case(key, what)
        case.add(
            connection.closed_packet or connection.first_packet, connection.first_ns, until_ns=connection.closed_ns
        )
        case.note("brokers", [connection.broker])
        case.note("hosts", [host_of(connection.client)])
        tls = connection.tls or {}
        if tls.get("server_name"):
            case.note("server names", [str(tls["server_name"])])
        for who in ("server_certificate_names", "client_certificate_names"):
            case.note(who, [str(name) for name in tls.get(who) or ()])
        if tls.get("server_certificate_not_after"):
            case.note("not after", [str(tls["server_certificate_not_after"])])

    def ending(self, ending: Ending) -> None:
        """A client that speaks plaintext is answered with an alert."""
        if ending.reason == "TLS wanted":
            connection = ending.connection
            client = client_text(connection.client_id, connection.client)
            case = self._plain.case(client, connection.broker)
            case.add(ending.first.packet, ending.first.first_ns, until_ns=connection.closed_ns)
            case.note("requests", [f"{ending.first.api} v{ending.first.version}"])

    def problem(self, problem: Problem) -> None:
        """What servers answered to plaintext with TLS, and to a hello with silence, over all their connections."""
        details = problem.details or {}
        server = str(details.get("server") or "")
        if (
            problem.code == "tls_not_answered"
            and details.get("speaks_kafka")
            and len(self._plaintext_brokers) < MAX_SUBJECTS
        ):
            self._plaintext_brokers.add(server)
        elif problem.code == "not_kafka_answer" and details.get("protocol") == "tls":
            case = self._answers.case(host_of(str(details.get("client") or "")), server)
            case.add(problem.packet or 0, problem.timestamp_ns or 0)
            case.count += max(int(details.get("connections") or 1) - 1, 0)

    def findings(self) -> Iterator[Finding]:
        """By client and broker; a server's answer is listed where none of its clients has a finding."""
        found_at = {broker for _, broker, _ in self._plain}
        answers = [one for one in self._answers if one[1] not in found_at]
        for client, broker, case in [*self._plain, *answers]:
            yield found(
                "plaintext_to_tls",
                "error",
                client,
                f"speaks plaintext to {self.context.cluster.broker_text(broker)}, which wants TLS: each request is "
                f"answered with a TLS alert, {times(case.count)}",
                "Set security.protocol of the client to SSL (or SASL_SSL), or use the port of a plaintext listener.",
                case,
                {"broker": broker, "requests": case.noted("requests")},
                clients=[client],
                brokers=[broker],
                explains=_explains([client], broker),
                rank=INCIDENT,
            )
        for subject, what, case in self._handshakes:
            yield self._handshake(subject, what.split("\0"), case)
        for subject, _, case in self._soon:
            if case.count >= SOON_OFTEN and subject not in self._lasting:
                yield self._closed_soon(subject, case)

    def _closed_soon(self, subject: str, case: Case) -> Finding:
        broker = next(iter(case.noted("brokers")), "")
        churns = case.count >= ENOUGH_CONNECTIONS and case.count > CONNECTIONS_PER_MINUTE * case.seconds / 60
        return found(
            "tls_closed",
            "warning" if churns else "info",
            subject,
            f"connections to {self.context.cluster.broker_text(broker)} end soon after their TLS handshake, "
            f"{times(case.count)}, and none lasts: the broker does not take what is sent on them, or they have done",
            "Clients that stay do not get to work: mostly an authentication that fails or is missing "
            "(security.protocol SSL on a SASL_SSL listener, a wrong password), else a version that the broker does not "
            "take. TLS hides which: the logs of client and broker say it, and so does this with the keys (--keylog). "
            "Commands that are run again and again, and clients made for each message, look alike.",
            case,
            {"broker": broker},
            scope=scope_of("host", case.noted("hosts")),
            brokers=[broker],
            explains=_explains([], broker) if churns else {},
            rank=INCIDENT,
        )

    def _handshake(self, subject: str, what: list[str], case: Case) -> Finding:
        broker = next(iter(case.noted("brokers")), "")
        name = self.context.cluster.broker_text(broker)
        count = times(case.count)
        numbers = {"broker": broker, "server_names": case.noted("server names")}
        code = "untrusted_certificate"
        if what[0] == PLAIN_BROKER:
            code = "tls_to_plaintext"
            title = f"speaks TLS to {name}, which does not: it closes the connection at the hello, {count}"
            if broker in self.context.cluster.unauthenticated or broker in self._plaintext_brokers:
                title = f"speaks TLS to {name}, a plaintext listener: it closes the connection at the hello, {count}"
            remedy = (
                "Set security.protocol of the client to PLAINTEXT (or SASL_PLAINTEXT), or use the port of one with TLS."
            )
        elif what[0] == UNTRUSTED_BROKER:
            names = case.noted("server_certificate_names")
            numbers |= {"alert": what[1], "certificate_names": names, "not_after": case.noted("not after")}
            title, remedy = _refused_broker(case, what[1], broker, name)
            title += f", {count}"
        elif what[0] == UNTRUSTED_CLIENT:
            names = case.noted("client_certificate_names")
            numbers |= {"alert": what[1], "certificate_names": names}
            whose = f" ({', '.join(names)})" if names else ""
            title = f"its certificate{whose} is not taken by {name}: {what[1]}, {count}"
            if what[1] == _ENCRYPTED:
                title = f"{name} ends the handshake once the client has done its part, by an encrypted alert, {count}"
            remedy = (
                "The listener wants client certificates (ssl.client.auth): give the client a keystore whose "
                "certificate the broker's truststore trusts, and that has not expired."
            )
        else:
            code = "tls_refused"
            numbers |= {"alert": what[1], "sender": what[-1]}
            title = f"TLS handshake with {name} refused by the {what[-1] or 'peer'}: {what[1]}, {count}"
            remedy = "Compare protocol versions, ciphers and server names of both sides."
            if what[0] == UNSEEN:
                title = (
                    f"{name} answers with a TLS alert ({what[1]}), {count}, to what the capture does not have: "
                    "plaintext, or a handshake that it refuses"
                )
                remedy = f"Capture what clients send, too. {remedy}"
        hosts = case.noted("hosts")
        return found(
            code,
            "info" if what[-1] == _SILENT and case.count < OFTEN else "error",
            subject,
            title,
            remedy,
            case,
            numbers,
            scope=scope_of("host", hosts),
            brokers=[broker],
            explains=_explains([], broker),
            rank=INCIDENT,
        )


def _refused_broker(case: Case, alert: str, broker: str, name: str) -> tuple[str, str]:
    """What is said of a client that does not take the certificate of a broker, and the remedy."""
    names = case.noted("server_certificate_names")
    certificate = f"the certificate of {name}" + (f" ({', '.join(names)})" if names else "")
    refuses = (
        "it closes the connection without an alert" if alert == _SILENT else f"it refuses the handshake with {alert}"
    )
    expired, other = _expired(case), _other_host(case, names, broker)
    if alert == _ENCRYPTED:
        title = f"refuses the handshake with {name} when it has its certificate, by an encrypted alert"
        return title, _UNTOLD.format(broker=broker)
    if alert == _SILENT and not names:
        return f"closes the connection when it has {certificate}, without an alert", _UNTOLD.format(broker=broker)
    if alert == _EXPIRED or expired:
        until = f" on {expired}" if expired else ""
        return f"does not take {certificate}, which expired{until}: {refuses}", _RENEW
    if other and alert != _UNKNOWN_CA:
        title = f"does not take {certificate}, which does not name the host that it dials ({other}): {refuses}"
        return title, _OTHER_HOST
    return f"does not trust {certificate}: {refuses}", _UNTRUSTED


def _expired(case: Case) -> str:
    """The day on which the broker's certificate expired, if that was before the handshake; else an empty text."""
    handshake = f"{datetime.fromtimestamp(case.first_ns // 1_000_000_000, UTC):%Y-%m-%dT%H:%M:%S}Z"
    return next((until[:10] for until in case.noted("not after") if until < handshake), "")


def _other_host(case: Case, names: list[str], broker: str) -> str:
    """What the client dials, by the name that it asks for or the address, where the certificate has other names."""
    dialled = case.noted("server names") or [host_of(broker)]
    own = {name.lower() for name in names}
    for host in dialled:
        name = host.lower()
        if own and name not in own and f"*.{name.partition('.')[2]}" not in own:
            return host
    return ""


_RENEW = "The broker's certificate has expired: renew it. Every client that checks it is refused."
_UNTRUSTED = (
    "Give the client the CA that signed the broker's certificate (ssl.truststore.location, ssl.ca.location), and see "
    "that the certificate names the host that is dialled."
)
_UNTOLD = (
    "TLS 1.3 encrypts the alert and the certificate, so the client's log has the reason: it does not trust the CA that "
    "signed it (ssl.truststore.location, ssl.ca.location), the certificate has expired, or it does not name the host "
    "that is dialled. openssl s_client -connect {broker} | openssl x509 -noout -issuer -dates -ext subjectAltName "
    "shows all three."
)
_OTHER_HOST = (
    "Clients compare the host that they dial with the names in the certificate "
    "(ssl.endpoint.identification.algorithm): give the broker a certificate whose subjectAltName has the host of "
    "advertised.listeners, and dial that one. Else the client does not trust the CA (ssl.truststore.location, "
    "ssl.ca.location)."
)


def _explains(clients: list[str], broker: str) -> Explains:
    return {
        "unanswered": as_clients(*clients),
        "connection_churn": as_brokers(broker),
        "metadata_storm": as_clients(*clients),
        "closed_by_broker": as_clients(*clients),
    }
