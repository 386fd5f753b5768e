"""Waits of clients for themselves, and for brokers where no other cause explains them."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import SYMPTOM, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.troubles.queues import LINGER_NS
from kwiresniff.analysis.doctor.troubles.slow_answers import SLOW_NS
from kwiresniff.analysis.doctor.wording import duration

#: Once or twice, and not for so long, is what happens when brokers start or make an internal topic.
FEW: Final = 3
VERY_SLOW_NS: Final = 5_000_000_000
#: Requests of an API that must be seen before a percentile says anything.
ENOUGH: Final = 20
_COMPARE = (
    "Compare with other brokers (kwiresniff stats --by broker): one that is slow has a disk, CPU or request-queue "
    "problem; all that are slow share a network or a controller."
)
_REPLICAS = (
    "With acks=all it waits for the slowest replica in sync: look at disks and network of the brokers, and at their "
    "RemoteTimeMs and LocalTimeMs metrics."
)
_LEADER = (
    "No other replica is waited for: look at the broker's disks and CPU, at its LocalTimeMs and RequestQueueTimeMs "
    "metrics, and whether it compresses again what producers send (compression.type of the topic)."
)


@cause("own_queue", explains=("queued",))
def own_queue(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`own_queue` (info): a producer's requests wait behind its own on the same connection, longer than for the broker
    and longer than ``linger.ms`` is by default (5 ms), 20 of them or more. A broker serves one request of a connection
    at a time; where it does that in 5 ms, nothing is slow. What a quota mutes is `throttled`; what waits behind one
    slow request is `slow` with it.
    """
    queued_ns, broker_ns = one.numbers["mean_queued_ns"], one.numbers["mean_broker_ns"]
    return told(
        one,
        f"{'nothing is slow: ' * (broker_ns <= LINGER_NS)}Produce waits {duration(queued_ns)} on average "
        f"behind the client's own requests, of which a broker serves one at a time on a connection, in "
        f"{duration(broker_ns)}",
        "Nothing is to be mended at the brokers. For less delay send fewer and larger requests "
        "(linger.ms, batch.size), or have fewer in flight (max.in.flight.requests.per.connection).",
        severity="info",
    )


@cause("slow", explains=("slow_answer",))
def slow_answer(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`slow` (error when p99 is above a second and 3 were slow, or when p50 is; warning from 3 on or 5 s, else info):
    the broker itself took more than a second, and nothing shows why; with the median and the 99th percentile. What a
    path, a queue, a quota, a stalled broker, a slow disk or replica makes late is a symptom of that.
    """
    numbers = one.numbers
    title = f"{numbers['api']} takes the broker more than a second"
    if numbers["is_cut"]:
        title += ", unless it throttled the client: its responses are cut off in the capture"
    remedy = _COMPARE
    if numbers["api"] == "Produce":
        remedy = _REPLICAS if numbers["is_replicated"] else _LEADER
    shown = ("api", "worst_ns", "of", "p50_ns", "p99_ns")
    return told(
        one,
        title,
        remedy,
        subject=one.name("broker"),
        severity=_severity(one),
        numbers={
            **{name: numbers[name] for name in shown if name in numbers},
            "clients": one.named("client"),
        },
        rank=SYMPTOM,
    )


def _severity(one: Observation) -> str:
    numbers = one.numbers
    if numbers["is_cut"]:
        return "info"
    p50_ns, p99_ns = numbers.get("p50_ns", 0), numbers.get("p99_ns", 0)
    # Of fewer than 100 requests a single one is the 99th percentile.
    often = one.count >= FEW or p50_ns >= SLOW_NS
    if numbers.get("of", 0) >= ENOUGH and p99_ns >= SLOW_NS and often:
        return "error"
    return "warning" if one.count >= FEW or numbers["worst_ns"] >= VERY_SLOW_NS else "info"
