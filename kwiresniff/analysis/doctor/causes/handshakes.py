"""TLS and plaintext mixed up, certificates that are not trusted, and other refusals of a handshake."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.handshakes import ENCRYPTED, SILENT
from kwiresniff.analysis.doctor.observers.opened_connections import CONNECTIONS_PER_MINUTE, ENOUGH_CONNECTIONS
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.base.flows import host_of
from kwiresniff.results.findings import scope_of

#: So often a client closes without an alert before that is more than somebody who ended it.
OFTEN: Final = 2
#: So many connections that end soon after their handshake are no chance.
SOON_OFTEN: Final = 3


class PlaintextToTls(Cause):
    """`plaintext_to_tls` (error): a plaintext client on a TLS port, answered with an alert."""

    codes = ("plaintext_to_tls",)
    explains = ("plaintext_to_tls",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        broker = one.name("broker")
        symptoms = ("unanswered", "metadata_storm", "closed_by_broker")
        return self.told(
            one,
            f"speaks plaintext to {self.context.cluster.broker_text(broker)}, which wants TLS: each request is "
            f"answered with a TLS alert, {times(one.count)}",
            "Set security.protocol of the client to SSL (or SASL_SSL), or use the port of a plaintext listener.",
            severity="error",
            numbers={"broker": broker, "requests": one.noted("requests")},
            explains={
                **dict.fromkeys(symptoms, scope_of("client", one.named("client"))),
                "connection_churn": scope_of("broker", [broker]),
            },
        )


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
        """By the client's host and broker, and by how it failed."""
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
                    title = (
                        f"{name} ends the handshake once the client has done its part, by an encrypted alert, {count}"
                    )
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
            yield self.told(
                one,
                title,
                remedy,
                code=code,
                subject=one.numbers["path"],
                severity="info" if alert == SILENT and one.count < OFTEN else "error",
                numbers=numbers,
                explains={"connection_churn": scope_of("broker", [broker])},
            )


class ClosedAfterHandshake(Cause):
    """`tls_closed` (warning where it is more than 30 a minute, else info): connections end soon after their TLS
    handshake, 3 times or more, and none of the client's host lasts: mostly an authentication that fails or is missing,
    which TLS hides; commands that are run again and again look alike. Where a host closes all of them itself, with
    several brokers, it is told once: a client for each message or command, most likely, since it has to get to work to
    learn the addresses of the others.
    """

    codes = ("tls_closed",)
    explains = ("closed_after_handshake",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By client's host where it closes those to several brokers itself, else by host and broker."""
        short = observed.of("closed_after_handshake")
        by_host: dict[str, list[Observation]] = {}
        for one in short:
            if one.count >= SOON_OFTEN and one.numbers["by_client"] == one.count:
                by_host.setdefault(listed(one.noted("hosts")), []).append(one)
        for host, paths in by_host.items():
            if len(paths) > 1:
                short = [one for one in short if one not in paths]
                yield self._by_host(host, paths)
        for one in short:
            if (found := self.explain(one, observed)) is not None:
                yield found

    def _by_host(self, host: str, paths: list[Observation]) -> Explanation:
        brokers = sorted(one.name("broker") for one in paths)
        first_ns, last_ns = min(one.first_ns for one in paths), max(one.last_ns for one in paths)
        count = sum(one.count for one in paths)
        per_minute = count * 60e9 / max(last_ns - first_ns, 1_000_000)
        return self.told(
            paths[0],
            f"makes {per_minute:,.0f} TLS connections a minute ({count:,}), to {listed(brokers)}, and closes each soon "
            "after its handshake: a client for each message or command, or one that is refused inside of TLS",
            "It goes on to several brokers, which it learns from Metadata when it has got to work; unless it is given "
            "all of them to begin with. Let it keep one client for as long as it runs: each connection costs broker "
            f"and client a TLS handshake. {_HIDDEN}",
            subject=host,
            explained=tuple(paths),
            severity="warning" if per_minute > CONNECTIONS_PER_MINUTE and count >= ENOUGH_CONNECTIONS else "info",
            numbers={"brokers": brokers, "connections": count, "per_minute": round(per_minute)},
            scope=scope_of("host", [host]),
            explains={"connection_churn": scope_of("broker", brokers)},
        )

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        broker, seconds = one.name("broker"), max((one.last_ns - one.first_ns) / 1e9, 1e-3)
        if one.count < SOON_OFTEN:
            return None
        churns = one.count >= ENOUGH_CONNECTIONS and one.count > CONNECTIONS_PER_MINUTE * seconds / 60
        return self.told(
            one,
            f"connections to {self.context.cluster.broker_text(broker)} end soon after their TLS handshake, "
            f"{times(one.count)}, and none lasts: the broker does not take what is sent on them, or they have done",
            _HIDDEN,
            subject=one.name("path"),
            severity="warning" if churns else "info",
            numbers={"broker": broker},
            scope=scope_of("host", one.noted("hosts")),
            explains={"connection_churn": scope_of("broker", [broker])} if churns else {},
        )


def _refused_broker(one: Observation, name: str) -> tuple[str, str]:
    """What is said of a client that does not take the certificate of a broker, and the remedy."""
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
    """The day on which the broker's certificate expired, if that was before the handshake; else an empty text."""
    handshake = f"{datetime.fromtimestamp(one.first_ns // 1_000_000_000, UTC):%Y-%m-%dT%H:%M:%S}Z"
    return next((until[:10] for until in one.noted("not after") if until < handshake), "")


def _other_host(one: Observation, names: list[str]) -> str:
    """What the client dials, by the name that it asks for or the address, where the certificate has other names."""
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
_HIDDEN: Final = (
    "Clients that stay do not get to work: mostly an authentication that fails or is missing (security.protocol SSL on "
    "a SASL_SSL listener, a wrong password), else a version that the broker does not take. TLS hides which: the logs "
    "of client and broker say it, and so does this with the keys (--keylog). Commands that are run again and again, "
    "and clients made for each message, look alike."
)
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
