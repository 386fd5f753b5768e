"""Clients that make brokers work for nothing: tiny batches, commits of single records, empty polls."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import WASTE, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.results.findings import scope_of

#: A member may commit so often in a second before it is waste.
COMMITS_PER_SECOND: Final = 30.0
#: How often in a second a client produces, and records in each request, below which batching is off; and from when on
#: it is much: ``linger.ms`` of 5, the default, would not send more often.
PRODUCES_PER_SECOND: Final = 30.0
MANY_PRODUCES: Final = 200.0
FEW_RECORDS: Final = 2.0
#: The part of fetches that brings nothing, and how many in a second, above which polling is too eager.
EMPTY_FETCHES: Final = 0.9
EMPTY_PER_SECOND: Final = 20.0
#: How often a connection is closed after records without acknowledgement before it is no coincidence.
OFTEN_REFUSED: Final = 3
#: Requests with messages of the old format above which their conversion is worth a warning.
ENOUGH_OLD: Final = 100
#: The part of a topic's bytes that one partition gets, and how many times its fair share that must be.
HOT_SHARE: Final = 0.5
HOT_TIMES: Final = 3.0
_RAISE_WAIT: Final = "Raise fetch.max.wait.ms or fetch.min.bytes; a wait of 0 makes the consumer poll in a circle."
_NOT_HELD: Final = (
    "It is not the consumer's settings: there are records that it may not read yet. Brokers do so while the high "
    "watermark of a partition stands still behind what was written: a replica has left and the ISR has not shrunk yet, "
    "or the ISR is smaller than min.insync.replicas. Look at the ISR."
)


def _per_second(count: int, one: Observation) -> float:
    return count / max((one.last_ns - one.first_ns) / 1e9, 1e-3)


@cause("commit_storm", explains=("commits",))
def single_commits(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`commit_storm` (warning): a client commits more than 30 times a second, 100 times and more."""
    rate = _per_second(one.count, one)
    return told(
        one,
        f"commits offsets {rate:.0f} times a second, {one.count:,} times in all",
        "Commit after a batch or at an interval instead of after every record.",
        numbers={"per_second": round(rate, 1), "groups": one.numbers["groups"]},
        severity="warning",
        rank=WASTE,
        stands=rate > COMMITS_PER_SECOND,
    )


@cause("small_batches", explains=("produces",))
def small_batches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`small_batches` (warning from 200 requests a second on, else info): fewer than 2 records in a request, over 500
    requests and more, of which there are more than 30 a second.
    """
    records, requests = one.numbers["records"], one.numbers["requests"]
    rate = _per_second(requests, one)
    return told(
        one,
        f"sends {records / requests:.1f} records in a request: {records:,} records in {requests:,} requests",
        "Raise linger.ms (5 to 20 ms) and batch.size: requests, not bytes, are what brokers run out of.",
        severity="warning" if rate > MANY_PRODUCES else "info",
        rank=WASTE,
        stands=rate > PRODUCES_PER_SECOND and records / requests < FEW_RECORDS,
    )


@cause("empty_fetches", explains=("empty_fetches",))
def empty_fetches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`empty_fetches` (info): nine fetches in ten bring nothing, more than 20 a second."""
    whole, at_once = one.numbers["fetches"], one.numbers["at_once"]
    held = f", though each may wait {one.numbers['longest_wait_ms']} ms: the broker answers at once"
    return told(
        one,
        f"{one.count:,} of {whole:,} fetches bring nothing{held if at_once else ''}",
        _NOT_HELD if at_once else _RAISE_WAIT,
        numbers={"fetches": whole},
        severity="info",
        rank=WASTE,
        stands=one.count / whole > EMPTY_FETCHES and _per_second(whole, one) > EMPTY_PER_SECOND,
    )


@cause("acks_0", explains=("unacknowledged_writes",))
def no_acknowledgement(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`acks_0` (info): records sent without acknowledgement."""
    return told(
        one,
        "produces without acknowledgement (acks=0)",
        "Records can be lost without anybody knowing. Use acks=all where they matter.",
        severity="info",
        rank=WASTE,
    )


@cause("acks_0_refused", explains=("closed_after_write", "unacknowledged_writes"))
def unheard_writes(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`acks_0_refused` (error): a broker closes connections at once after records without acknowledgement, 3 times or
    more, which is how it refuses them.
    """
    client, broker = one.name("client"), one.name("broker")
    return told(
        one,
        f"writes with acks=0, and {context.cluster.broker_text(broker)} closes the connection after "
        f"it, {times(one.count)}: that is how it refuses what nobody waits for, and those records are lost",
        "Set acks=1 or all, and the answer says why: records larger than max.message.bytes, a right "
        "that is missing, a partition that it does not lead.",
        severity="error",
        stands=one.count >= OFTEN_REFUSED,
        explains=dict.fromkeys(("acks_0", "connection_churn"), scope_of("client", [client])),
    )


@cause("old_message_format", explains=("old_messages",))
def old_format(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`old_message_format` (warning from 100 requests on, else info): records in the format of before Kafka 0.11."""
    return told(
        one,
        "writes the message format of before Kafka 0.11",
        "Brokers convert them, at the cost of CPU and memory, and releases from 4.0 on refuse them: "
        "move the client to one that writes batches of format 2 (Kafka 0.11).",
        numbers={"concerns": [f"topic {topic}" for topic in one.numbers["topics"]]},
        severity="warning" if one.count >= ENOUGH_OLD else "info",
        rank=WASTE,
    )


@cause("hot_partition", explains=("partition_share",))
def hot_partition(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`hot_partition` (warning): half of what a topic is sent goes to one partition, three times its share and more."""
    numbers, share = one.numbers, one.numbers["share"]
    if share < HOT_SHARE or share * numbers["partitions"] < HOT_TIMES:
        return None
    return told(
        one,
        f"gets {share:.0%} of what is produced to {numbers['partitions']} partitions of {numbers['topic']} by "
        f"{listed(numbers['clients'])}",
        "Its leader carries most of the load of the topic: look at the keys of the records (one that most have, a "
        "null or constant key, a partitioner of one's own).",
        subject=numbers["partition"],
        severity="warning",
        numbers={name: value for name, value in numbers.items() if name != "topic"} | {"share": round(share, 3)},
    )
