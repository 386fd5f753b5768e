"""Quotas that hold clients back."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import duration, listed
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.results.findings import scope_of

#: A client that loses so much of its time to a quota cannot do its work.
MUCH: Final = 0.5
SEVERE_MS: Final = 1_000
#: A quota on the time that requests take (``request_percentage``) throttles for no longer than its window at a time.
WINDOW_MS: Final = 1_000
_MUTED: Final = "Its requests wait before the broker reads them"
_HELD: Final = "The broker, which is older than Kafka 2.0, holds its responses back"
#: What a client meets that is told to wait.
_SYMPTOMS: Final = (
    "unanswered", "broker_stalled", "request_timed_out", "closed_by_broker", "consumer_lag", "own_queue",
    "throttling_quota_exceeded",
)  # fmt: skip


class Throttled(Cause):
    """`throttled` (error when more than half of the time is lost, else warning): a quota delays a client; with user,
    kind of quota as far as the traffic shows it, and the time it cost.

    Seen must be ``throttle_time_ms`` in responses. Requests that wait in the muted channel (KIP-219) look like a slow
    broker; where the responses before are cut off, that is told with the slow requests.
    """

    codes = ("throttled",)
    explains = ("throttled",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        client, brokers, numbers = one.name("client"), one.named("broker"), one.numbers
        longest_ms, lost_ns = numbers["longest_ms"], numbers["lost_ns"]
        quotas = listed(numbers["quotas"])
        of_traffic = quotas in ("produce quota", "fetch quota") or len(numbers["quotas"]) > 1
        if longest_ms <= WINDOW_MS and of_traffic and "request" not in quotas:
            quotas = f"{quotas} or the request quota"
        severe = lost_ns / numbers["seen_ns"] >= MUCH and longest_ms >= SEVERE_MS
        on = "its connections" if len(brokers) > 1 else "its connection"
        return self.told(
            one,
            f"is throttled by the {quotas} of user {numbers['user']} or its client id: {one.count} answers tell "
            f"it to wait, {duration(longest_ms * MILLISECOND_NS)} at most; on {on} it lost {duration(lost_ns)}",
            "Raise the quota of the user or client id (kafka-configs --describe --entity-type users, clients), "
            f"or make the client send less. {_HELD if numbers['held_back'] else _MUTED}: brokers and disks are not "
            "slow.",
            supports=(one.text,),
            numbers={
                **{name: numbers[name] for name in ("user", "longest_ms", "total_ms", "lost_ns", "quotas")},
                "brokers": brokers,
            },
            severity="error" if severe else "warning",
            explains={
                "slow": scope_of("broker", brokers),
                **dict.fromkeys(_SYMPTOMS, scope_of("client", [client])),
            },
        )
