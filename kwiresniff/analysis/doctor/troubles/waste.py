"""Clients that make brokers work for nothing: tiny batches, commits of single records, empty polls."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import WASTE, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import duration, listed
from kwiresniff.results.findings import scope_of

#: A member may commit so often in a second before it is waste.
COMMITS_PER_SECOND: Final = 30.0
#: How many requests, how often in a second, and with how few records in each, are no batching.
PRODUCES: Final = 500
PRODUCES_PER_SECOND: Final = 30.0
FEW_RECORDS: Final = 2.0
#: Requests a second of a client from when on they are many: ``linger.ms`` of 5, the default, would not send more often.
MANY_REQUESTS: Final = 200.0
#: The part of its requests that a client sends alone, and the part of its time for which it waits for the answers, when
#: it can send no more because it waits for each of them; and how long they take at least, where that matters.
ALONE: Final = 0.9
WAITING: Final = 0.7
MATTERS_NS: Final = 5_000_000
#: The part of fetches that brings nothing, and how many in a second, above which polling is too eager.
EMPTY_FETCHES: Final = 0.9
EMPTY_PER_SECOND: Final = 20.0
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
        severity="warning" if rate > MANY_REQUESTS else "info",
        rank=WASTE,
        stands=requests >= PRODUCES and rate > PRODUCES_PER_SECOND and records / requests < FEW_RECORDS,
    )


@cause("one_at_a_time", explains=("produces",))
def one_at_a_time(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`one_at_a_time` (warning where the path takes most of the time, which is a symptom then; else info): a producer
    sends one record, waits for the answer, and sends the next: 100 times and more, nine requests in ten are sent while
    no other is under way, and it waits for them for most of its time. It can send no more records in a second than
    answers fit in, as with `send().get()` in a loop. Must not be seen: answers that take less than 5 ms.
    """
    numbers, seen_ns = one.numbers, max(one.last_ns - one.first_ns, 1)
    records, requests, alone, waited_ns = (numbers[name] for name in ("records", "requests", "alone", "waited_ns"))
    if not alone or records / requests >= FEW_RECORDS or waited_ns < alone * MATTERS_NS:
        return None
    if observed.about([f"client:{one.name('client')}"], "transactions"):
        return None  # it has to wait for those
    mean_ns, host = waited_ns // alone, one.name("client").rpartition(" ")[2]
    paths = [path.numbers["round_trip_ns"] for path in observed.about([f"host:{host}"], "path_time")]
    path_ns = min(paths, default=0)
    far = f", of which the path takes {duration(path_ns)}" if path_ns > mean_ns / 2 else ""
    return told(
        one,
        f"sends one record, waits for its answer, then sends the next: {requests:,} requests, "
        f"{duration(mean_ns)} each{far}, {waited_ns / seen_ns:.0%} of its time: it can send no more than "
        f"{1e9 / mean_ns:.0f} records a second",
        "Do not wait for each record (send().get(), flush() after each): send the next ones meanwhile, and look at "
        "the result in a callback; the producer puts those that come together into one request (linger.ms).",
        severity="warning" if far else "info",
        stands=alone >= ALONE * requests and waited_ns >= WAITING * seen_ns,
        explains={"long_path": scope_of("host", [host])} if far else {},
    )


@cause("small_transactions", explains=("transactions",))
def small_transactions(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`small_transactions` (warning where it waits for them for more than half of its time, else info): a producer ends
    a transaction for fewer than 2 records, 100 times and more. Each costs a round to the coordinator and a marker in
    every partition that it wrote to, and the next waits for these.
    """
    records, waited_ns, seen_ns = one.numbers["records"], one.numbers["waited_ns"], one.last_ns - one.first_ns
    return told(
        one,
        f"ends a transaction for {records / one.count:.1f} records: {one.count:,} transactions, "
        f"{_per_second(one.count, one):.0f} a second; it waits for {duration(waited_ns // one.count)} in each, "
        f"{waited_ns / max(seen_ns, 1):.0%} of its time",
        "Write many records in a transaction, or commit at an interval (100 ms and more): each needs a round to "
        "its coordinator and leaves a marker in each partition, and the next waits until these are written.",
        severity="warning" if waited_ns > seen_ns / 2 else "info",
        rank=WASTE,
        stands=0 < records < FEW_RECORDS * one.count,
    )


@cause("empty_fetches", explains=("empty_fetches",))
def empty_fetches(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`empty_fetches` (warning from 200 a second on, else info): nine fetches in ten bring nothing, more than 20 a
    second: the consumer lets its broker wait for too short a time, or the broker answers sooner than it may.
    """
    whole, at_once, rate = one.numbers["fetches"], one.numbers["at_once"], _per_second(one.count, one)
    wait = f"each may wait {one.numbers['longest_wait_ms']} ms"
    held = f", though {wait}: the broker answers at once" if at_once else f": {wait} (fetch.max.wait.ms)"
    return told(
        one,
        f"{one.count:,} of {whole:,} fetches bring nothing, {rate:.0f} a second{held}",
        _NOT_HELD if at_once else _RAISE_WAIT,
        numbers={"fetches": whole},
        severity="warning" if rate > MANY_REQUESTS else "info",
        rank=WASTE,
        stands=one.count / whole > EMPTY_FETCHES and _per_second(whole, one) > EMPTY_PER_SECOND,
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
