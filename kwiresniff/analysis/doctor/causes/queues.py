"""Waits that clients make for themselves."""

from __future__ import annotations

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.queues import LINGER_NS
from kwiresniff.analysis.doctor.wording import duration


class OwnQueue(Cause):
    """`own_queue` (info): a producer's requests wait behind its own on the same connection, longer than for the broker
    and longer than ``linger.ms`` is by default (5 ms), 20 of them or more. A broker serves one request of a connection
    at a time; where it does that in 5 ms, nothing is slow. What a quota mutes is `throttled`; what waits behind one
    slow request is `slow` with it.
    """

    codes = ("own_queue",)
    explains = ("queued",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        queued_ns, broker_ns = one.numbers["mean_queued_ns"], one.numbers["mean_broker_ns"]
        return self.told(
            one,
            f"{'nothing is slow: ' * (broker_ns <= LINGER_NS)}Produce waits {duration(queued_ns)} on average "
            f"behind the client's own requests, of which a broker serves one at a time on a connection, in "
            f"{duration(broker_ns)}",
            "Nothing is to be mended at the brokers. For less delay send fewer and larger requests "
            "(linger.ms, batch.size), or have fewer in flight (max.in.flight.requests.per.connection).",
            supports=(one.text,),
            severity="info",
        )
