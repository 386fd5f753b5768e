"""Clients that ask for versions which their broker does not take."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.cluster import NEW_RELEASE, taken_since
from kwiresniff.analysis.doctor.endings import release_of
from kwiresniff.analysis.doctor.evidence import MAX_MESSAGE_CHARS, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import broker_says, listed
from kwiresniff.errors import SchemaError
from kwiresniff.results.findings import scope_of
from kwiresniff.schema import versions_in

_NOT_ENABLED: Final = (
    "Enable it at the brokers (kafka-features upgrade, and group.coordinator.rebalance.protocols where that is set), "
    "or let the client use what is enabled (group.protocol=classic)."
)
_DOES_NOT_LISTEN: Final = (
    "; it asks for ApiVersions and does not go by the answer, so its versions are fixed in its code or its settings "
    "(api_version, broker.version.fallback)"
)
_DOES_NOT_ASK: Final = ", or let it ask for ApiVersions (no fixed api_version or broker.version.fallback)"


class UnsupportedVersion(Cause):
    """`unsupported_version` (error): the broker refuses a version, by closing the connection or by the error code; with
    the versions that its release takes, as `audit` would say, and whether the client had asked for them and does not go
    by the answer; of a broker that was not asked for its versions those since 4.0, unless it has answered older ones.
    """

    codes = ("unsupported_version",)
    explains = ("version_refused",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        broker, api_key, version = (one.numbers[name] for name in ("broker", "api_key", "api_version"))
        offer = self.context.cluster.offer(broker)
        release = release_of(offer)
        span = _versions(release, api_key) or offer.get(api_key)
        refuses, takes = "which it does not take", ""
        if not offer and (span := taken_since(NEW_RELEASE, api_key)) is not None:
            refuses = "which brokers do not take any more"
            takes = f"; from Kafka {NEW_RELEASE} on they take v{span[0]} and newer"
        elif span is not None:
            takes = f"; {f'Kafka {release}' if release else 'the broker'} takes v{span[0]} to v{span[1]}"
        software = f" ({listed(one.noted('software'))})" if one.noted("software") else ""
        remedy = (
            f"Update the client{software}{_DOES_NOT_LISTEN if one.noted('asked') == ['yes'] else _DOES_NOT_ASK}. All "
            f"that would break: kwiresniff audit --target {release or NEW_RELEASE}."
        )
        if span is not None and span[0] <= version <= span[1]:
            refuses, takes, remedy = "which it offers but has not enabled", "", _NOT_ENABLED
        messages = [clipped(text, MAX_MESSAGE_CHARS) for text in one.noted("messages")]
        symptoms = ("unanswered", "closed_by_broker", "old_message_format", "connection_churn")
        return self.told(
            one,
            f"asks {self.context.cluster.broker_text(broker)} for {listed(one.noted('request'))}, {refuses}: it "
            f"{listed(one.noted('how'))}{takes}",
            remedy,
            severity="error",
            numbers={
                "broker": broker,
                "api": one.numbers["api"],
                "api_version": version,
                "takes": list(span) if span is not None else None,
                "release": release or None,
                **({"error_messages": messages} if messages else {}),
            },
            details=tuple(broker_says(messages)),
            scope=scope_of("broker", [broker]),
            explains=dict.fromkeys(symptoms, scope_of("client", one.named("client"))),
        )


def _versions(release: str, api_key: int) -> tuple[int, int] | None:
    try:
        return versions_in(release).get(api_key) if release else None
    except SchemaError:
        return None
