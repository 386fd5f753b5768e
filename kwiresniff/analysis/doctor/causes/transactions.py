"""Transactions that are taken away from their producer, or left open."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import broker_says, clock, duration, listed, times
from kwiresniff.results.findings import scope_of


class FencedProducer(Cause):
    """`producer_fenced` (error): a producer was fenced: its transactional id, by whom, with producer id and epochs; by
    its coordinator where its transaction lasted longer than `transaction.timeout.ms`.
    """

    codes = ("producer_fenced",)
    explains = ("producer_fenced",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        client, name, numbers = one.name("client"), one.name("transaction"), one.numbers
        taker, overdue = numbers["by"], numbers["overdue"]
        errors, producers = one.noted("errors"), one.noted("producers")
        own = f" (producer {listed(producers, 3)})" if producers else ""
        if taker is not None:
            who = "a later instance of itself" if taker == client else taker
            producer = f"producer {numbers['producer_id']} epoch {numbers['epoch']}"
            by = f"was fenced by {who} at {clock(numbers['taken_ns'])} ({producer})"
        elif overdue:
            by = "was fenced by its coordinator, which aborted its transaction"
        else:
            by = "was fenced, by whom is not in the capture: another instance, or its coordinator"
        return self.told(
            one,
            f"{listed(errors)}: {client}{own} {by}, {times(one.count)}" + (f"; {overdue}" if overdue else ""),
            _TOO_LONG if overdue else _TWO_INSTANCES,
            subject=f"transactional id {name}" if name else client,
            severity="error",
            numbers={
                "error": errors[0] if errors else "",
                "transactional_id": name or None,
                "fenced": client,
                "by": taker,
                "concerns": [*one.noted("apis"), *one.noted("concerns")],
                "error_messages": one.noted("messages"),
            },
            details=tuple(broker_says(one.noted("messages"))),
            scope=scope_of("client", [taker] if taker is not None else []),
        )


class OpenTransaction(Cause):
    """`transaction_open` (error; warning where its producer is not in the capture, info where that goes on writing): a
    transaction is neither committed nor aborted, and consumers with `read_committed` wait behind it: the last stable
    offset has stood still for 10 s at the end of the capture.
    """

    codes = ("transaction_open",)
    explains = ("transaction_open",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers, producer, goes_on = one.numbers, one.numbers["producer"], one.numbers["goes_on"]
        subject, who = listed(numbers["partitions"], 3), "a transaction whose producer is not in the capture"
        limit = ""
        if producer is not None:
            timeout_ns = numbers["transaction_timeout_ms"] * 1_000_000
            subject = f"transactional id {numbers['transactional_id']}"
            began = f"began at {clock(numbers['began_ns'])}"
            who = f"the transaction that {producer} (producer {numbers['producer_id']}) {began}"
            limit = f", transaction.timeout.ms {duration(timeout_ns)}" if timeout_ns else ""
        told = ("transactional_id", "producer", "producer_id", "transaction_timeout_ms", "partitions", "longest_ns")
        return self.told(
            one,
            f"{who} is neither committed nor aborted{limit}: for {duration(numbers['longest_ns'])} consumers with "
            f"read_committed get nothing behind it; the last stable offset of {listed(numbers['behind'], 4)} does not "
            "move",
            _GOES_ON if goes_on else _LEFT_OPEN,
            subject=subject,
            severity="info" if goes_on else "warning" if producer is None else "error",
            numbers={**{name: numbers[name] for name in told}, "readers": one.noted("clients")},
            explains={"invalid_txn_state": scope_of("client", [producer] if producer is not None else [])},
        )


_TWO_INSTANCES: Final = (
    "Two live instances share a transactional.id, or a paused one came back, or its transaction timed out "
    "(transaction.timeout.ms). Give each instance its own id."
)
_TOO_LONG: Final = (
    "What the producer does between begin and commit takes longer than transaction.timeout.ms, or the producer stood "
    "still: look at it, make its transactions shorter, or raise the timeout (the broker's transaction.max.timeout.ms "
    "limits it). What it had written of that transaction is aborted."
)
_GOES_ON: Final = (
    "It goes on writing: some commit at long intervals, and readers get everything at once then. Readers that should "
    "wait less need shorter ones (the interval of commits or of checkpoints)."
)
_LEFT_OPEN: Final = (
    "Find out why its producer does not go on: it hangs, or was killed. Its coordinator aborts the transaction after "
    "transaction.timeout.ms; sooner, and where it does not (a hanging transaction, KIP-890): kafka-transactions.sh "
    "find-hanging, then abort. A shorter transaction.timeout.ms makes readers wait less."
)
