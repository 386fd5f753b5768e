"""Leaders that moved, and clients that did not follow."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import ERROR, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.troubles.leaders import NOTICED_NS
from kwiresniff.analysis.doctor.wording import duration, listed, span
from kwiresniff.results.findings import scope_of

#: Refusals of a client that follow from a leader's move.
FEW: Final = 3


@cause("leader_change", explains=("leader_moved",))
def leader_change(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`leader_change` (warning when clients needed more than a second, or learned of it as late, else info): leaders of
    partitions moved: which, from, to, how long each client needed, and who asked for it (AlterPartitionReassignments,
    ElectLeaders). Seen must be another leader with a higher epoch (KIP-320); an answer of a broker that is behind is
    none.
    """
    cluster, numbers = context.cluster, one.numbers
    cluster_id = one.name("node").rpartition("/")[0]
    old, new, needed = numbers["from_address"], numbers["to_addresses"], dict(numbers["needed"])
    longest_ns = max(needed.values(), default=0)
    followed = f"; clients needed {duration(longest_ns)}" if longest_ns else ""
    if numbers["without_ns"] > longest_ns:
        longest_ns = numbers["without_ns"]
        followed = f"; clients learned of it {duration(longest_ns)} after the old leader had gone"
    noticed, went, clients = longest_ns > NOTICED_NS, numbers["went"], scope_of("client", needed)
    left, topics = scope_of("left", [old] if old else []), scope_of("topic", one.named("topic"))
    brokers = [*new, old] if old else new
    # Until a follower that is gone has left the ISR, all writes with acks=all wait for it, at every broker.
    waiting = scope_of("broker", cluster.addresses(cluster_id) if went else brokers)
    before = cluster.node_text(cluster_id, numbers["from"])
    after = listed([cluster.node_text(cluster_id, node) for node in numbers["to"]])
    waited = [(client, ns) for client, ns in needed.items() if ns][:10]
    until = "until it was served by the new leader"
    return told(
        one,
        f"leader moved from {before} to {after}{span(one.first_ns, one.last_ns)}{followed}",
        _REMEDY,
        subject=listed(numbers["partitions"]),
        numbers={
            "partitions": numbers["partitions"][:100],
            "from": numbers["from"],
            "from_address": old or None,
            "to": numbers["to"],
            "to_addresses": new,
            "longest_ns": longest_ns,
            "clients": list(needed)[:100],
        },
        details=(*numbers["details"], *[f"{client} needed {duration(ns)} {until}" for client, ns in waited]),
        severity="warning" if noticed else "info",
        scope=left,
        explains={
            "slow": waiting | clients,
            **(dict.fromkeys(("replica_wait", "slow_broker"), waiting) if noticed else {}),
            **({"under_replicated": left} if noticed else {}),
            **dict.fromkeys(("unanswered", "request_timed_out"), waiting),
            **dict.fromkeys(("closed_by_broker", "not_coordinator"), scope_of("broker", brokers)),
            "broker_stalled": waiting if went else scope_of("broker", new),
            "broker_unreachable": scope_of("broker", [old] if old else []),
            "leader_not_available": topics,
            # What failed at the old leader leaves a gap before what was in flight behind it.
            "out_of_order_sequence_number": topics,
            **dict.fromkeys(("metadata_storm", "own_queue"), clients),
        },
    )


@cause("stale_metadata", explains=("asked_old_leader",))
def old_leader(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`stale_metadata` (warning): a client goes on asking a broker that does not lead the partition: 10 times and for
    5 s. Seen must be the broker's own answers, and who leads.
    """
    return told(
        one,
        one.text,
        "Its metadata is stale: see whether its Metadata requests are answered and by whom, metadata.max.age.ms, and "
        "whether it refreshes on NOT_LEADER_OR_FOLLOWER.",
        supports=(f"{one.numbers['errors']} answers said that the broker does not lead",),
        severity="warning",
        explains=symptoms("client", [one.name("client")], "not_leader_or_follower"),
    )


@cause("not_leader_or_follower", explains=("asked_wrong_broker",))
def wrong_leader(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`not_leader_or_follower` (warning, info up to 3 and for followers): asked a broker that does not lead, without a
    change that was seen.
    """
    errors, client = one.numbers["errors"], "" if one.numbers["followers"] else one.name("client")
    who = "followers look for the leaders of their partitions"
    by_client = f"{listed(errors)}: asks brokers that do not lead the partition"
    return told(
        one,
        by_client if client else f"{who} ({listed(errors)})",
        _ASKING if client else _FOLLOWING,
        subject=client or "replication",
        numbers={"error": errors[0] if errors else "", "concerns": [*one.numbers["apis"], *one.numbers["concerns"]]},
        severity="info" if one.count <= FEW or not client else "warning",
        rank=ERROR,
    )


_ASKING: Final = (
    "One or two after a leader moved are normal. Many: look for leaders that flap (broker restarts, ISR shrinking, "
    "controller log), or a client whose metadata refreshes fail."
)

_FOLLOWING: Final = "Normal whenever leaders move. Lasting: see whether the ISR of their partitions shrinks."

_REMEDY: Final = (
    "Planned (a restart, a reassignment, a preferred election): nothing to do. Else look why the old leader left: its "
    "log, its session with the controller. Producers wait as long as the ISR has to shrink (replica.lag.time.max.ms) "
    "when a follower went away without a controlled shutdown."
)
