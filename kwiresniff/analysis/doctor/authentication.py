"""SASL that fails: which user, by which mechanism, and what the broker says of it (KIP-43, KIP-152).

Why is often in the capture, too: a token that had expired, credentials that somebody has removed or changed.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_meanings import MEANINGS
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, Case, client_of, client_text, clipped
from kwiresniff.analysis.doctor.rule import Rule, as_brokers, as_clients, found
from kwiresniff.analysis.doctor.wording import broker_says, clock, duration, listed, times
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import ALTER_USER_SCRAM_CREDENTIALS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Connection, Exchange, Problem
from kwiresniff.results.findings import Finding

FAILED, MECHANISM, STATE = "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"
#: What is counted as the last of them where the listener has no SASL.
PLAINTEXT = "ILLEGAL_SASL_STATE of a listener without SASL"
#: What is counted where the connection had authenticated before (KIP-368).
AGAIN = "ILLEGAL_SASL_STATE of a session that is renewed"
#: What is counted where a token came without the request that has to come before or around it.
STRAY = "stray_sasl_token"


class AuthenticationRule(Rule):
    """Authentications that a broker refuses.

    `sasl_authentication_failed` (error): an authentication was refused; with the user, the mechanism, what the broker
    says, and the reason where it is in the capture: a token that had expired, until when it worked, who altered the
    user's SCRAM credentials.

    `unsupported_sasl_mechanism` (error): the listener does not have the mechanism; with those it has.

    `illegal_sasl_state` (error): SASL to a listener without it, or at the wrong time, as by a client that renews its
    session all the time.

    `stray_sasl_token` (error): a client sends a SASL token without a header, of GSSAPI or another mechanism, where a
    SaslHandshake request has to come, or SaslAuthenticate after that.
    """

    codes = ("sasl_authentication_failed", "unsupported_sasl_mechanism", "illegal_sasl_state", STRAY)
    apis = frozenset({SASL_AUTHENTICATE, ALTER_USER_SCRAM_CREDENTIALS})
    judges = frozenset({FAILED, MECHANISM, STATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()
        self._refused: set[int] = set()
        self._stray: dict[int, tuple[str, int, int]] = {}  # by connection: the request wanted, packet and time
        self._worked: dict[tuple[str, str], int] = {}
        self._altered: dict[str, tuple[str, int]] = {}

    def exchange(self, exchange: Exchange) -> None:
        """An authentication that works, or somebody who alters what users authenticate with."""
        if exchange.errors or exchange.response is None:
            return
        ns = place_of(exchange)[1]
        if exchange.api_key == SASL_AUTHENTICATE:
            sasl = exchange.connection.sasl or {}
            if sasl.get("outcome") == "ok" and sasl.get("principal"):
                key = client_of(exchange), clipped(str(sasl["principal"]))
                if key in self._worked or (
                    len(self._worked) < MAX_USERS and self.context.budget.admit(2 * ENTRY_BYTES + text_bytes(*key))
                ):
                    self._worked[key] = ns
            return
        request = (exchange.request.body if exchange.request is not None else None) or {}
        for field, verb in (("deletions", "removed"), ("upsertions", "changed")):
            for one in request.get(field) or ():
                user = clipped(field_text(one.get("name")))
                text = f"{client_of(exchange)} {verb} the SCRAM credentials of user {user}"
                if len(self._altered) < MAX_USERS and self.context.budget.admit(ENTRY_BYTES + text_bytes(user, text)):
                    self._altered[user] = text, ns

    def failure(self, exchange: Exchange) -> None:
        """Counts a refusal, by the user that the connection has shown so far."""
        names = [name for _, _, name, _ in exchange.errors if name in self.judges]
        if not names:
            return
        connection = exchange.connection
        sasl = connection.sasl or {}
        # A listener without SASL takes a handshake for a request at the wrong time, and says nothing else of itself.
        plain = names[0] == STATE and exchange.api_key == SASL_HANDSHAKE and sasl.get("outcome") != "ok"
        again = plain and (sasl.get("authentication_count") or 1) > 1
        case = self._cases.case(client_of(exchange), AGAIN if again else PLAINTEXT if plain else names[0])
        case.add(*place_of(exchange))
        case.note("apis", [exchange.api])
        case.note("brokers", [connection.broker])
        for kind, field in (("users", "principal"), ("mechanisms", "mechanism")):
            if sasl.get(field):
                case.note(kind, [str(sasl[field])])
        expiry_ns = sasl.get("token_expiry_ns")
        if isinstance(expiry_ns, int) and expiry_ns <= case.last_ns:
            case.note("expiries", [str(expiry_ns)])
        for place in error_places(exchange, self.context):
            if place.message:
                case.note("messages", [place.message])
        body = exchange.response.body if exchange.response is not None else None
        if body and names[0] == MECHANISM:
            case.note("offered", [field_text(one) for one in body.get("mechanisms") or ()])
        if len(self._refused) < MAX_REFUSED:
            self._refused.add(connection.id)

    def problem(self, problem: Problem) -> None:
        """Remembers a token where a request has to come until its connection ends."""
        details = problem.details or {}
        if problem.code == STRAY and len(self._stray) < MAX_REFUSED:
            wanted = str(details.get("wanted") or "")
            self._stray[int(details.get("connection") or 0)] = wanted, problem.packet or 0, problem.timestamp_ns or 0

    def connection(self, connection: Connection) -> None:
        """Counts a connection closed after its tokens, which before KIP-152 is how a broker refuses them, and one with
        a token where a request has to come.
        """
        sasl = connection.sasl
        wanted, packet, ns = self._stray.pop(connection.id, ("", 0, 0))
        if sasl is None or not (wanted or sasl.get("outcome") == "failed") or connection.id in self._refused:
            self._refused.discard(connection.id)
            return
        case = self._cases.case(client_text(connection.client_id, connection.client), STRAY if wanted else FAILED)
        if wanted:
            case.add(packet, ns, until_ns=connection.closed_ns)
            case.note("wanted", [wanted])
            case.note("how", ["the broker closes the connection"] if connection.closed_by == "broker" else [])
        else:
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
                reasons = self._reasons(client, case)
                title += f"; {'; '.join(reasons)}" if reasons else ""
                remedy = _REMEDY if not case.noted("expiries") else _EXPIRED
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
            elif name == STRAY:
                wanted = listed(case.noted("wanted"))
                how = f": {listed(case.noted('how'))}" if case.noted("how") else ""
                at = listed([self.context.cluster.broker_text(broker) for broker in brokers])
                of = f" of {listed(mechanisms)}" if mechanisms else ""
                title = (
                    f"sends {at} a token{of} without a header where a {wanted} request has to come{how}, "
                    f"{times(case.count)}"
                )
                remedy = _STRAY
            elif name == AGAIN:
                name = STATE
                title = (
                    f"{name}: authenticates again{by} on a connection where it has just done so, {times(case.count)}"
                )
                remedy = _TOO_SOON
            else:
                title = f"{name}: speaks SASL at the wrong time"
                remedy = MEANINGS[STATE].remedy
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
                details=broker_says(messages),
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

    def _reasons(self, client: str, case: Case) -> list[str]:
        """What the capture has of the reason: tokens that had expired, since when it fails, who altered credentials."""
        reasons = []
        for expiry in case.noted("expiries")[:1]:
            before = duration(case.first_ns - int(expiry))
            reasons.append(f"its token had expired at {clock(int(expiry))}, {before} before")
        for user in case.noted("users"):
            worked = self._worked.get((client, user), 0)
            if 0 < worked < case.first_ns:
                reasons.append(f"until {clock(worked)} it could")
            text, ns = self._altered.get(user, ("", 0))
            if text and ns <= case.last_ns:
                reasons.append(f"{text} at {clock(ns)}")
        return reasons[:MAX_REASONS]


#: Connections remembered that a response has refused.
MAX_REFUSED = 10_000
#: Users remembered whose authentication worked, or whose credentials somebody altered.
MAX_USERS = 2_000
#: Reasons told in a title.
MAX_REASONS = 3
_REMEDY = (
    "Check user, password or token, and that the broker knows the user under this mechanism; the same answer is given "
    "to a wrong password and to an unknown user."
)
_TOO_SOON = (
    "Brokers take that once a second. A client that renews its session so long ahead of its end "
    "(reauthenticationThreshold of KafkaJS: 10 s) does so all the time where connections.max.reauth.ms is below that: "
    "raise the one, or lower the other."
)
_STRAY = (
    "Correct or update the SASL code of the client: SaslHandshake names the mechanism, and after its v1 each token "
    "goes into a SaslAuthenticate request. Brokers take bare tokens after SaslHandshake v0, and of GSSAPI as the "
    "first bytes of a connection, where no ApiVersions comes before."
)
_EXPIRED = (
    "The client has to get a new token before it needs one: look at what it gets its tokens from, how long they last, "
    "and whether the clocks of both sides agree."
)
