"""SASL that fails: which user, by which mechanism, and what the broker says of it (KIP-43, KIP-152)."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, client_of, client_text, clipped
from kwiresniff.analysis.doctor.rule import INCIDENT, Context, Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import SASL_HANDSHAKE
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Connection, Exchange
from kwiresniff.results.findings import Finding

FAILED, MECHANISM, STATE = "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"
#: What is counted as the last of them where the listener has no SASL.
PLAINTEXT = "ILLEGAL_SASL_STATE of a listener without SASL"


class AuthenticationRule(Rule):
    """Authentications that a broker refuses."""

    codes = ("sasl_authentication_failed", "unsupported_sasl_mechanism", "illegal_sasl_state")
    judges = frozenset({FAILED, MECHANISM, STATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._refused: set[int] = set()

    def failure(self, exchange: Exchange) -> None:
        """Counts a refusal, by the user that the connection has shown so far."""
        names = [name for _, _, name, _ in exchange.errors if name in self.judges]
        if not names:
            return
        connection = exchange.connection
        sasl = connection.sasl or {}
        # A listener without SASL takes a handshake for a request at the wrong time, and says nothing else of itself.
        plain = names[0] == STATE and exchange.api_key == SASL_HANDSHAKE and sasl.get("outcome") != "ok"
        case = self._cases.case(client_of(exchange), PLAINTEXT if plain else names[0])
        case.add(*place_of(exchange))
        case.note("apis", [exchange.api])
        case.note("brokers", [connection.broker])
        for kind, field in (("users", "principal"), ("mechanisms", "mechanism")):
            if sasl.get(field):
                case.note(kind, [str(sasl[field])])
        for place in error_places(exchange, self.context):
            if place.message:
                case.note("messages", [place.message])
        body = exchange.response.body if exchange.response is not None else None
        if body and names[0] == MECHANISM:
            case.note("offered", [field_text(one) for one in body.get("mechanisms") or ()])
        if len(self._refused) < MAX_REFUSED:
            self._refused.add(connection.id)

    def connection(self, connection: Connection) -> None:
        """Counts a connection closed after its tokens: before KIP-152 that is how a broker refuses."""
        sasl = connection.sasl
        if sasl is None or sasl.get("outcome") != "failed" or connection.id in self._refused:
            self._refused.discard(connection.id)
            return
        case = self._cases.case(client_text(connection.client_id, connection.client), FAILED)
        case.add(connection.closed_packet or connection.first_packet, connection.closed_ns or connection.last_ns)
        case.note("brokers", [connection.broker])
        for kind, field in (("users", "principal"), ("mechanisms", "mechanism")):
            if sasl.get(field):
                case.note(kind, [str(sasl[field])])

    def findings(self) -> Iterator[Finding]:
        """By client and by how it fails."""
        for client, name, case in self._cases:
            users, mechanisms, brokers = case.noted("users"), case.noted("mechanisms"), case.noted("brokers")
            who = f"user {listed(users)}" if users else "its user"
            by = f" by {listed(mechanisms)}" if mechanisms else ""
            if name == FAILED:
                title = f"{name}: {who} cannot authenticate{by}, {times(case.count)}"
                remedy = (
                    "Check user, password or token, and that the broker knows the user under this mechanism; the same "
                    "answer is given to a wrong password and to an unknown user."
                )
            elif name == MECHANISM:
                offered = listed(case.noted("offered"))
                title = f"{name}: asks for {listed(mechanisms) or 'a mechanism'} that the listener does not have"
                title += f"; it has {offered}" if offered else ""
                remedy = "Compare sasl.mechanism of the client with sasl.enabled.mechanisms of the listener."
            elif name == PLAINTEXT:
                name = STATE
                at = listed([self.context.cluster.broker_text(broker) for broker in brokers])
                title = f"{name}: speaks SASL{by} to {at}, a listener without it, {times(case.count)}"
                remedy = "Set security.protocol of the client to PLAINTEXT (or SSL), or use a port with SASL."
            else:
                title = f"{name}: speaks SASL at the wrong time"
                remedy = "Compare security.protocol of the client with the listener's."
            messages = [clipped(one, MAX_MESSAGE_CHARS) for one in case.noted("messages")]
            yield found(
                name.lower(),
                "error",
                client,
                title,
                remedy,
                case,
                {
                    "error": name,
                    "users": users,
                    "mechanisms": mechanisms,
                    "error_messages": messages,
                    "concerns": case.noted("apis"),
                },
                details=[f"the broker says: {message}" for message in messages[:3]],
                clients=[client],
                brokers=brokers,
                explains={
                    "unanswered": as_clients(client),
                    "connection_churn": as_brokers(*brokers),
                    "closed_by_broker": as_clients(client),
                    "sasl_authentication_failed": frozenset(),
                },
                rank=INCIDENT,
            )


#: Connections remembered that a response has refused.
MAX_REFUSED = 10_000
