"""SASL that fails or is missing: the user, the mechanism, and what the broker says of it (KIP-43, KIP-152).

The reason is often in the capture: an expired token, credentials that somebody has removed or changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.bodies import request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, Case, client_of, client_text, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import broker_says, clock, duration, listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import ALTER_USER_SCRAM_CREDENTIALS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Connection, Exchange, Problem

#: Connections remembered whose authentication a response has refused.
MAX_REFUSED = 10_000
#: Users remembered whose authentication worked, or whose credentials somebody altered.
MAX_USERS = 2_000
#: Reasons given of each refusal.
MAX_REASONS = 3
FAILED, MECHANISM, STATE = "SASL_AUTHENTICATION_FAILED", "UNSUPPORTED_SASL_MECHANISM", "ILLEGAL_SASL_STATE"
#: The last of them from a listener without SASL, and on a connection that is authenticated (KIP-368).
PLAINTEXT: Final = "ILLEGAL_SASL_STATE of a listener without SASL"
AGAIN: Final = "ILLEGAL_SASL_STATE of a session that is renewed"
#: A token without the request that has to come before or around it.
STRAY: Final = "stray_sasl_token"


class UnauthenticatedClients(CountingObserver):
    """``closed_without_sasl``: a broker closed the connection of a client that did not authenticate, as it does where
    it wants SASL first.

    Notes: ``requests`` after which it closed, and ``answered`` where it took ApiVersions.
    """

    kinds = ("closed_without_sasl",)

    def ending(self, ending: Ending) -> None:
        if ending.reason == "SASL wanted":
            case = self.cases.case(client_in(ending), ending.connection.broker)
            case.add(ending.first.packet, ending.first.first_ns, until_ns=ending.connection.closed_ns)
            case.note("requests", [f"{ending.first.api} v{ending.first.version}"])
            if ending.connection.exchanges.keys() > {"unanswered"}:
                case.note("answered", ["ApiVersions"])


class RefusedAuthentications(CountingObserver):
    """``authentication_refused``: a client could not authenticate by SASL, and ``how`` that shows.

    Notes: ``users``, ``mechanisms``, ``brokers``, ``apis``, ``messages``, ``offered`` mechanisms, ``expiries`` of
    tokens, the requests ``wanted`` in place of a token, and whether the broker ``closed``. Numbers: ``reasons``.
    """

    kinds = ("authentication_refused",)
    entities = ("client", "how")
    apis = frozenset({SASL_AUTHENTICATE, ALTER_USER_SCRAM_CREDENTIALS})
    judges = frozenset({FAILED, MECHANISM, STATE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._refused: set[int] = set()
        self._stray: dict[int, tuple[str, int, int]] = {}  # by connection: the request wanted, packet and time
        self._worked: dict[tuple[str, str], int] = {}
        self._altered: dict[str, tuple[str, int]] = {}

    def exchange(self, exchange: Exchange) -> None:
        if exchange.errors or exchange.response is None:
            return
        ns, client = place_of(exchange)[1], client_of(exchange)
        if exchange.api_key == SASL_AUTHENTICATE:
            sasl = exchange.connection.sasl or {}
            if sasl.get("outcome") == "ok" and sasl.get("principal"):
                key = client, clipped(str(sasl["principal"]))
                if key in self._worked or self.context.has_room(self._worked, MAX_USERS, *key, entries=2):
                    self._worked[key] = ns
            return
        # The names in the request are withheld with the credentials where it does not decode to its last byte.
        verb = "changed" if request_body(exchange).get("upsertions") else "removed"
        for one in response_body(exchange).get("results") or ():
            user = clipped(field_text(one.get("user")))
            text = f"{client} {verb} the SCRAM credentials of user {user}"
            if self.context.has_room(self._altered, MAX_USERS, user, text, entries=2):
                self._altered[user] = text, ns

    def failure(self, exchange: Exchange) -> None:
        names = [name for _, _, name, _ in exchange.errors if name in self.judges]
        if not names:
            return
        connection = exchange.connection
        sasl = connection.sasl or {}
        # A listener without SASL refuses the handshake with this code.
        plain = names[0] == STATE and exchange.api_key == SASL_HANDSHAKE and sasl.get("outcome") != "ok"
        again = plain and (sasl.get("authentication_count") or 1) > 1
        case = self.cases.case(client_of(exchange), AGAIN if again else PLAINTEXT if plain else names[0])
        case.add(*place_of(exchange))
        case.note("apis", [exchange.api])
        _note_user(case, connection)
        expiry_ns = sasl.get("token_expiry_ns")
        if isinstance(expiry_ns, int) and expiry_ns <= case.last_ns:
            case.note("expiries", [str(expiry_ns)])
        case.note("messages", [one.message for one in error_places(exchange, self.context) if one.message])
        if names[0] == MECHANISM:
            case.note("offered", [field_text(one) for one in response_body(exchange).get("mechanisms") or ()])
        if len(self._refused) < MAX_REFUSED:
            self._refused.add(connection.id)

    def problem(self, problem: Problem) -> None:
        details = problem.details or {}
        if problem.code == STRAY and len(self._stray) < MAX_REFUSED:
            wanted = str(details.get("wanted") or "")
            self._stray[int(details.get("connection") or 0)] = wanted, problem.packet or 0, problem.timestamp_ns or 0

    def connection(self, connection: Connection) -> None:
        """Counts a connection that was closed after its tokens, which is a refusal before KIP-152, or that had a token
        in place of a request."""
        sasl = connection.sasl
        wanted, packet, ns = self._stray.pop(connection.id, ("", 0, 0))
        if sasl is None or not (wanted or sasl.get("outcome") == "failed") or connection.id in self._refused:
            self._refused.discard(connection.id)
            return
        case = self.cases.case(client_text(connection.client_id, connection.client), STRAY if wanted else FAILED)
        if wanted:
            case.add(packet, ns, until_ns=connection.closed_ns)
            case.note("wanted", [wanted])
            case.note("closed", ["the broker closes the connection"] if connection.closed_by == "broker" else [])
        else:
            case.add(connection.closed_packet or connection.first_packet, connection.closed_ns or connection.last_ns)
        _note_user(case, connection)

    def observations(self) -> Iterator[Observation]:
        for client, how, case in self.cases:
            yield self.observed(client, how, case, reasons=self._reasons(client, case))

    def _reasons(self, client: str, case: Case) -> list[str]:
        """Expired tokens, since when it fails, who altered credentials."""
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


def _note_user(case: Case, connection: Connection) -> None:
    case.note("brokers", [connection.broker])
    for kind, field in (("users", "principal"), ("mechanisms", "mechanism")):
        if name := (connection.sasl or {}).get(field):
            case.note(kind, [str(name)])


@cause("sasl_wanted", explains=("closed_without_sasl",))
def missing_sasl(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`sasl_wanted` (error): a client that does not authenticate on a listener that wants SASL: closed after the first
    request that is not ApiVersions. Must not be seen: that another client got answers there without SASL.
    """
    client, broker, requests = one.name("client"), one.name("broker"), one.noted("requests")
    if broker in context.cluster.unauthenticated:
        return None
    answers = "answers ApiVersions and " if one.noted("answered") else ""
    return told(
        one,
        f"does not authenticate, and {context.cluster.broker_text(broker)} wants SASL: it {answers}closes the "
        f"connection after {listed(requests)}, {times(one.count)}",
        "Set security.protocol (SASL_PLAINTEXT or SASL_SSL), sasl.mechanism and credentials of the client as the "
        "listener has them, or use the port of a listener without SASL.",
        severity="error",
        numbers={"broker": broker, "requests": requests},
        explains=symptoms("client", [client], "unanswered", "metadata_storm", "closed_by_broker")
        | symptoms("broker", [broker], "connection_churn"),
    )


@cause(
    *("sasl_authentication_failed", "unsupported_sasl_mechanism", "illegal_sasl_state", STRAY),
    explains=("authentication_refused",),
)
def refused_authentication(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`sasl_authentication_failed` (error): an authentication was refused; with the user, the mechanism, what the
    broker says, and the reason where it is in the capture: a token that had expired, until when it worked, who altered
    the user's SCRAM credentials.

    `unsupported_sasl_mechanism` (error): the listener does not have the mechanism; with those it has.

    `illegal_sasl_state` (error): SASL to a listener without it, or at the wrong time, as by a client that renews its
    session all the time.

    `stray_sasl_token` (error): a client sends a SASL token without a header, of GSSAPI or another mechanism, where a
    SaslHandshake request has to come, or SaslAuthenticate after that.
    """
    name = one.name("how").partition(" ")[0]
    title, remedy = _title(context, one)
    messages = [clipped(text, MAX_MESSAGE_CHARS) for text in one.noted("messages")]
    return told(
        one,
        title,
        remedy,
        code=name.lower(),
        severity="error",
        numbers={
            "error": name,
            "users": one.noted("users"),
            "mechanisms": one.noted("mechanisms"),
            "error_messages": messages,
            "concerns": one.noted("apis"),
        },
        details=tuple(broker_says(messages)),
        explains=symptoms("client", one.named("client"), "unanswered", "closed_by_broker")
        | symptoms("broker", one.noted("brokers"), "connection_churn"),
    )


def _title(context: Context, one: Observation) -> tuple[str, str]:
    how, count, users = one.name("how"), times(one.count), one.noted("users")
    mechanisms = listed(one.noted("mechanisms"))
    by = f" by {mechanisms}" if mechanisms else ""
    at = listed([context.cluster.broker_text(broker) for broker in one.noted("brokers")])
    if how == FAILED:
        who = f"user {listed(users)}" if users else "its user"
        title = "; ".join([f"{how}: {who} cannot authenticate{by}, {count}", *one.numbers["reasons"]])
        return title, _EXPIRED if one.noted("expiries") else _REMEDY
    if how == MECHANISM:
        title = f"{how}: asks for {mechanisms or 'a mechanism'} that the listener does not have"
        offered = one.noted("offered")
        return f"{title}; it has {listed(offered)}" if offered else title, _MECHANISM
    if how == PLAINTEXT:
        return f"{STATE}: speaks SASL{by} to {at}, a listener without it, {count}", _PLAINTEXT
    if how == STRAY:
        of = f" of {mechanisms}" if mechanisms else ""
        then = f": {listed(one.noted('closed'))}" if one.noted("closed") else ""
        where = f"where a {listed(one.noted('wanted'))} request has to come{then}"
        return f"sends {at} a token{of} without a header {where}, {count}", _STRAY
    if how == AGAIN:
        return f"{STATE}: authenticates again{by} on a connection where it has just done so, {count}", _TOO_SOON
    return f"{how}: speaks SASL at the wrong time", "Compare security.protocol of the client with the listener's."


_REMEDY: Final = (
    "Check user, password or token, and that the broker knows the user under this mechanism; the same answer is given "
    "to a wrong password and to an unknown user."
)

_EXPIRED: Final = (
    "The client has to get a new token before it needs one: look at what it gets its tokens from, how long they last, "
    "and whether the clocks of both sides agree."
)

_MECHANISM: Final = "Compare sasl.mechanism of the client with sasl.enabled.mechanisms of the listener."

_PLAINTEXT: Final = "Set security.protocol of the client to PLAINTEXT (or SSL), or use a port with SASL."

_TOO_SOON: Final = (
    "Brokers take that once a second. A client that renews its session so long ahead of its end "
    "(reauthenticationThreshold of KafkaJS: 10 s) does so all the time where connections.max.reauth.ms is below that: "
    "raise the one, or lower the other."
)

_STRAY: Final = (
    "Correct or update the SASL code of the client: SaslHandshake names the mechanism, and after its v1 each token "
    "goes into a SaslAuthenticate request. Brokers take bare tokens after SaslHandshake v0, and of GSSAPI as the "
    "first bytes of a connection, where no ApiVersions comes before."
)
