"""Clients that do not get past the authentication of a listener."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.authentication import AGAIN, FAILED, MECHANISM, PLAINTEXT, STATE, STRAY
from kwiresniff.analysis.doctor.wording import broker_says, listed, times
from kwiresniff.results.findings import scope_of


class MissingSasl(Cause):
    """`sasl_wanted` (error): a client that does not authenticate on a listener that wants SASL: closed after the first
    request that is not ApiVersions. Must not be seen: that another client got answers there without SASL.
    """

    codes = ("sasl_wanted",)
    explains = ("closed_without_sasl",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        client, broker, requests = one.name("client"), one.name("broker"), one.noted("requests")
        if broker in self.context.cluster.unauthenticated:
            return None
        answers = "answers ApiVersions and " if one.noted("answered") else ""
        return self.told(
            one,
            f"does not authenticate, and {self.context.cluster.broker_text(broker)} wants SASL: it {answers}closes the "
            f"connection after {listed(requests)}, {times(one.count)}",
            "Set security.protocol (SASL_PLAINTEXT or SASL_SSL), sasl.mechanism and credentials of the client as the "
            "listener has them, or use the port of a listener without SASL.",
            severity="error",
            numbers={"broker": broker, "requests": requests},
            explains={
                **dict.fromkeys(("unanswered", "metadata_storm", "closed_by_broker"), scope_of("client", [client])),
                "connection_churn": scope_of("broker", [broker]),
            },
        )


class RefusedAuthentication(Cause):
    """`sasl_authentication_failed` (error): an authentication was refused; with the user, the mechanism, what the
    broker says, and the reason where it is in the capture: a token that had expired, until when it worked, who altered
    the user's SCRAM credentials.

    `unsupported_sasl_mechanism` (error): the listener does not have the mechanism; with those it has.

    `illegal_sasl_state` (error): SASL to a listener without it, or at the wrong time, as by a client that renews its
    session all the time.

    `stray_sasl_token` (error): a client sends a SASL token without a header, of GSSAPI or another mechanism, where a
    SaslHandshake request has to come, or SaslAuthenticate after that.
    """

    codes = ("sasl_authentication_failed", "unsupported_sasl_mechanism", "illegal_sasl_state", STRAY)
    explains = ("authentication_refused",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        name = one.name("how").partition(" ")[0]
        title, remedy = self._title(one)
        messages = [clipped(text, MAX_MESSAGE_CHARS) for text in one.noted("messages")]
        client = scope_of("client", one.named("client"))
        return self.told(
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
            explains={
                "unanswered": client,
                "closed_by_broker": client,
                "connection_churn": scope_of("broker", one.noted("brokers")),
            },
        )

    def _title(self, one: Observation) -> tuple[str, str]:
        how, count, users = one.name("how"), times(one.count), one.noted("users")
        mechanisms = listed(one.noted("mechanisms"))
        by = f" by {mechanisms}" if mechanisms else ""
        at = listed([self.context.cluster.broker_text(broker) for broker in one.noted("brokers")])
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
            wanted = listed(one.noted("wanted"))
            return (
                f"sends {at} a token{of} without a header where a {wanted} request has to come{then}, {count}",
                _STRAY,
            )
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
