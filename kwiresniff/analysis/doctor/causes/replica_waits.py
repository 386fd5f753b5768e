"""Leaders that wait for replicas on other brokers."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import clock, duration, listed, span, times
from kwiresniff.results.findings import scope_of

#: Fewer, and none of so long, is what a busy moment costs; of a broker that was seen to go less is enough.
FEW: Final = 3
LONG_NS: Final = 5_000_000_000
GONE_NS: Final = 2_000_000_000


class ReplicaWait(Cause):
    """`replica_wait` (warning from 3 requests on or 5 s, 2 s where a broker was seen to go, else info): writes with
    acks=all, and what coordinators store, wait for replicas on other brokers: on one that closed its connections and
    said nothing more, on one that let wait what it can answer at once, or, where the capture shows neither, at several
    brokers at a time.

    Seen must be writes that took a second or more, without time in a queue, a mute or a rebalance. One whose broker has
    gone is in sync until the controller fences it (``broker.session.timeout.ms``) or its lag is too old
    (``replica.lag.time.max.ms``). At one leader that answered others meanwhile, it is one of the nodes that Metadata
    names as its replicas in sync, or its own disk, which clients' traffic does not tell apart; where other writes tell
    it, `slow_broker` is told instead.
    """

    codes = ("replica_wait",)
    explains = ("writes_waited", "late_writes")

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        return self._explanation(one, late_writes_of(observed, one))

    def _explanation(self, one: Observation, late: list[Observation]) -> Explanation:
        cluster, numbers = self.context.cluster, one.numbers
        brokers, gone, still, others = (numbers[name] for name in ("brokers", "gone", "still", "others"))
        culprits = [*[address for address, _ in gone], *still]
        at = listed([cluster.broker_text(broker) for broker in brokers if broker not in culprits])
        how_often = f" {times(numbers['times'])}" if numbers["times"] > 1 else ""
        why = [
            f"{cluster.broker_text(address)} closed its connections at {clock(ns)} and said nothing more"
            for address, ns in gone
        ]
        why += [f"{cluster.broker_text(address)} stood still" for address in still]
        if others:
            nodes = listed([cluster.node_text(cluster.of(brokers[0]), node) for node in others])
            who = f"one of {nodes}" if len(others) > 1 else nodes
            why.append(f"it answered others meanwhile, so {who} was slow to copy it, or its own disk to take it")
        longest_ns = numbers["longest_ns"]
        grave = one.count >= FEW or longest_ns >= (GONE_NS if gone else LONG_NS)
        shared = "for a replica that they share, or each for its own disk; which, the capture does not show"
        waited = f"{listed(numbers['apis'])} waited up to {duration(longest_ns)} at {at}"
        when = f"{how_often}{span(one.first_ns, one.last_ns)}"
        return self.told(
            one,
            f"{waited} for replicas on other brokers{when}: {'; '.join(why)}" if why else f"{waited}{when}, {shared}",
            "Writes with acks=all wait until a replica that is gone has left the ISR (broker.session.timeout.ms "
            "of the controller, replica.lag.time.max.ms). See why its broker went or stood still: its log, pauses, "
            "disks. One that is stopped in order takes leave first, and nobody waits. The leader's RemoteTimeMs is "
            "what it waited for replicas, its LocalTimeMs what its own disk took.",
            subject=listed([cluster.broker_text(address) for address in culprits]) or at,
            explained=(one, *late),
            supports=(one.text, *why),
            contradicts=() if gone else ("no broker closed its connections meanwhile",),
            numbers={
                "brokers": brokers,
                "gone": [address for address, _ in gone],
                "still": still,
                "followers": others,
                "longest_ns": longest_ns,
                "clients": numbers["clients"],
                "apis": numbers["apis"],
            },
            severity="warning" if grave else "info",
            explains={
                "slow": scope_of("broker", [*brokers, *culprits]),
                "request_timed_out": scope_of("broker", brokers),
                "own_queue": scope_of("client", numbers["clients"]),
                **dict.fromkeys(("broker_unreachable", "closed_by_broker", "unanswered"), scope_of("broker", culprits)),
            },
        )


def late_writes_of(observed: Observed, waits: Observation) -> list[Observation]:
    """The late writes at the brokers of some waits, in the same time."""
    late = observed.about([f"broker:{one}" for one in waits.numbers["brokers"]], "late_writes")
    return [one for one in late if one.first_ns <= waits.last_ns and waits.first_ns <= one.last_ns]
