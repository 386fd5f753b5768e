"""Brokers that stand still."""

from __future__ import annotations

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.stalls import AFTER_NS, SEVERE_NS
from kwiresniff.analysis.doctor.wording import duration, listed, span
from kwiresniff.results.findings import scope_of


class StalledBroker(Cause):
    """`broker_stalled` (error from 2 s on, else warning; info where the capture lacks as much): a broker answered
    nothing for a second or more, not even what it can answer at once; of several brokers in one time the one that
    answered nothing itself.

    Seen must be requests that wait for nobody else (Metadata, Heartbeat, a Fetch beyond its wait, Produce with acks=1),
    and no answer of that broker to anybody meanwhile. A broker that closes its connections went, and did not stall; one
    that answers others is not this, whatever is late there. Answers that the path loses look the same where no other
    client of the broker is in the capture.
    """

    codes = ("broker_stalled",)
    explains = ("broker_silent", "late_writes")

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        return self._explanation(one, [late for late in observed.of("late_writes") if _is_in(late, one)])

    def _explanation(self, one: Observation, waits: list[Observation]) -> Explanation:
        cluster, numbers = self.context.cluster, one.numbers
        silent, waiting, lossy = numbers["silent"], numbers["waiting"], numbers["lossy"]
        texts = [cluster.broker_text(broker) for broker in silent]
        took, when = f" for {duration(numbers['lasted_ns'])}", span(one.first_ns, one.last_ns)
        ended = "" if numbers["over"] else ", and no answer came any more"
        if waiting:
            title = (
                f"{len(silent) + len(waiting)} brokers stalled{when}; {listed(texts)} answered nothing itself{ended}"
            )
        elif len(silent) > 1:
            title = f"{len(silent)} brokers answered nothing{took},{when}{ended}"
        else:
            title = f"the broker stalled: it answered nothing{took},{when}{ended}"
        # With acks=all the other brokers wait for the replicas of one that stands still.
        nodes = {address for broker in silent for address in cluster.addresses(cluster.of(broker))}
        everywhere = scope_of("broker", [*silent, *waiting, *nodes])
        return self.told(
            one,
            f"{title}; or its answers are among what the capture lost" if lossy else title,
            "The whole broker stood still, so it is not one request that is slow: look at its pauses of garbage "
            "collection, a disk that hung, CPU taken away (a stopped process, a paused virtual machine).",
            subject=listed(texts),
            explained=(one, *waits),
            supports=(one.text,),
            numbers={
                "brokers": silent,
                "waiting_brokers": waiting,
                "longest_ns": numbers["lasted_ns"],
                "clients": numbers["clients"],
                "apis": numbers["apis"],
            },
            severity="info" if lossy else "error" if numbers["lasted_ns"] >= SEVERE_NS else "warning",
            explains={
                **dict.fromkeys(("slow", "replica_wait", "unanswered", "request_timed_out"), everywhere),
                **dict.fromkeys(("broker_unreachable", "long_rebalance"), scope_of("broker", silent)),
                "leader_change": scope_of("left", silent),
                "own_queue": scope_of("client", numbers["clients"]),
            },
        )


def _is_in(waits: Observation, silence: Observation) -> bool:
    """Whether writes to a silent broker were late because of that alone: they ended soon after the silence."""
    first_ns, last_ns = silence.first_ns - AFTER_NS, silence.last_ns + AFTER_NS
    within = first_ns <= waits.first_ns and waits.last_ns <= last_ns
    return within and waits.numbers["leader"] in silence.numbers["silent"]
