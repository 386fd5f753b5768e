"""Plaintext on TLS listeners, which answer it with an alert (RFC 8446, section 6.2), and short TLS connections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, client_text
from kwiresniff.analysis.doctor.observation import Observation, Observed, grouped
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.troubles.failed_handshakes import note_ends, path_of
from kwiresniff.analysis.doctor.troubles.opened_connections import CONNECTIONS_PER_MINUTE, ENOUGH_CONNECTIONS
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection, Problem
from kwiresniff.results.findings import scope_of

#: A connection that ends so soon, after so few bytes, did no work, or was done at once. Which end closes first shows
#: nothing: a broker answers close_notify by closing.
SOON_NS = 5_000_000_000
SOON_BYTES = 10_000
#: Connections that end soon after their handshake from which on it is no coincidence.
SOON_OFTEN: Final = 3


class PlaintextClients(CountingObserver):
    """``plaintext_to_tls``: a client, known by its host alone where it has no other, spoke plaintext and was answered
    with a TLS alert.

    Notes: ``requests``.
    """

    kinds = ("plaintext_to_tls",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._answers = context.tally()

    def ending(self, ending: Ending) -> None:
        if ending.reason == "TLS wanted":
            connection = ending.connection
            case = self.cases.case(client_text(connection.client_id, connection.client), connection.broker)
            case.add(ending.first.packet, ending.first.first_ns, until_ns=connection.closed_ns)
            case.note("requests", [f"{ending.first.api} v{ending.first.version}"])

    def problem(self, problem: Problem) -> None:
        details = problem.details or {}
        if problem.code == "not_kafka_answer" and details.get("protocol") == "tls":
            server = str(details.get("server") or "")
            case = self._answers.case(host_of(str(details.get("client") or "")), server)
            case.add(problem.packet or 0, problem.timestamp_ns or 0)
            case.count += max(int(details.get("connections") or 1) - 1, 0)

    def observations(self) -> Iterator[Observation]:
        """By client and broker, or by host where the capture has only a server's answer."""
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

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._lasting: set[str] = set()

    def connection(self, connection: Connection) -> None:
        """Counts a TLS connection that is not decrypted and ended soon after its handshake, or notes that it
        lasted."""
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


@cause("plaintext_to_tls", explains=("plaintext_to_tls",))
def plaintext_to_tls(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`plaintext_to_tls` (error): a plaintext client on a TLS port, answered with an alert."""
    broker = one.name("broker")
    follows = ("unanswered", "metadata_storm", "closed_by_broker")
    return told(
        one,
        f"speaks plaintext to {context.cluster.broker_text(broker)}, which wants TLS: each request is "
        f"answered with a TLS alert, {times(one.count)}",
        "Set security.protocol of the client to SSL (or SASL_SSL), or use the port of a plaintext listener.",
        severity="error",
        numbers={"broker": broker, "requests": one.noted("requests")},
        explains=symptoms("client", one.named("client"), *follows) | symptoms("broker", [broker], "connection_churn"),
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
        """By the client's host where it closes those to several brokers itself, else by host and broker."""
        short = [one for one in observed.of("closed_after_handshake") if one.count >= SOON_OFTEN]
        closed = [one for one in short if one.numbers["by_client"] == one.count]
        by_host = grouped(closed, lambda one: listed(one.noted("hosts")))
        for host, paths in by_host.items():
            if len(paths) > 1:
                short = [one for one in short if one not in paths]
                yield self._by_host(host, paths)
        for one in short:
            yield self._by_broker(one)

    def _by_host(self, host: str, paths: list[Observation]) -> Explanation:
        brokers, count = sorted(one.name("broker") for one in paths), sum(one.count for one in paths)
        first_ns, last_ns = min(one.first_ns for one in paths), max(one.last_ns for one in paths)
        per_minute = count * 60e9 / max(last_ns - first_ns, 1_000_000)
        return told(
            paths[0],
            f"makes {per_minute:,.0f} TLS connections a minute ({count:,}), to {listed(brokers)}, and closes each soon "
            "after its handshake: a client for each message or command, or one that is refused inside of TLS",
            "It goes on to several brokers, which it learns from Metadata when it has got to work; unless it is given "
            "all of them to begin with. Let it keep one client for as long as it runs: each connection costs broker "
            f"and client a TLS handshake. {_HIDDEN}",
            code="tls_closed",
            subject=host,
            explained=tuple(paths),
            severity="warning" if per_minute > CONNECTIONS_PER_MINUTE and count >= ENOUGH_CONNECTIONS else "info",
            numbers={"brokers": brokers, "connections": count, "per_minute": round(per_minute)},
            scope=scope_of("host", [host]),
            explains=symptoms("broker", brokers, "connection_churn"),
        )

    def _by_broker(self, one: Observation) -> Explanation:
        broker, seconds = one.name("broker"), max((one.last_ns - one.first_ns) / 1e9, 1e-3)
        churns = one.count >= ENOUGH_CONNECTIONS and one.count > CONNECTIONS_PER_MINUTE * seconds / 60
        return told(
            one,
            f"connections to {self.context.cluster.broker_text(broker)} end soon after their TLS handshake, "
            f"{times(one.count)}, and none lasts: the broker does not take what is sent on them, or they have done",
            _HIDDEN,
            code="tls_closed",
            subject=one.name("path"),
            severity="warning" if churns else "info",
            numbers={"broker": broker},
            scope=scope_of("host", one.noted("hosts")),
            explains={"connection_churn": scope_of("broker", [broker])} if churns else {},
        )


_HIDDEN: Final = (
    "Clients that stay do not get to work: mostly an authentication that fails or is missing (security.protocol SSL on "
    "a SASL_SSL listener, a wrong password), else a version that the broker does not take. TLS hides which: the logs "
    "of client and broker say it, and so does this with the keys (--keylog). Commands that are run again and again, "
    "and clients made for each message, look alike."
)
