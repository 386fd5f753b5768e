"""Records that are stored more than once."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import Cause, Explanation, symptoms, told
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times


class RepeatedBatches(Cause):
    """`records_doubled` (error; warning where the answers are not in the capture): a producer without idempotence
    sends a batch again that the broker has stored, because it gave up waiting or was told of an error, and the broker
    stores it a second time.

    Seen must be the same batch (checksum, size, records) in two requests of a client for one partition, the second
    after the first was refused or while it was not answered, and two offsets. Where the broker's answers are not in the
    capture nothing shows whether it stored both. A capture that has a connection twice shows one offset.
    """

    codes = ("records_doubled",)
    explains = ("batch_sent_again", "late_writes", "broker_silent")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for one in observed.of("batch_sent_again"):
            # Gaps in what brokers sent may have been the answers.
            if one.numbers["records_doubled"] or (one.numbers["given_up_ns"] and not self.context.gaps):
                yield self._explanation(one, self._waits(observed, one))

    def _waits(self, observed: Observed, one: Observation) -> list[Observation]:
        """The late writes of that client to that topic, and the silences of its leaders meanwhile."""
        late = observed.about([f"client:{one.name('client')}"], "late_writes")
        late = [wait for wait in late if wait.name("topic") == one.name("topic")]
        silent = observed.about([f"broker:{broker}" for broker in one.named("broker")], "broker_silent")
        return [wait for wait in (*late, *silent) if _overlap(wait, one)]

    def _explanation(self, one: Observation, waits: list[Observation]) -> Explanation:
        client, topic, numbers = one.name("client"), one.name("topic"), one.numbers
        brokers = one.named("broker")
        doubled, given_up = numbers["records_doubled"], numbers["given_up_ns"]
        gives_up = f"gives up on Produce after {duration(given_up)} and sends" if given_up else "sends"
        stored = f"{counted(doubled, 'record')} stored again" if doubled else "each may be stored again"
        details = [wait.text for wait in waits]
        if numbers["readers"]:
            details.append(f"{listed(numbers['readers'])} got them more than once")
        slow = [broker for broker in brokers if any(f"broker:{broker}" in wait.about for wait in waits)]
        timeout = ""
        if given_up:
            timeout = (
                f" Its request.timeout.ms is about {given_up // 1_000_000} ms, and an answer took up to "
                f"{duration(numbers['longest_ns'])}: raise it (default 30 s)."
            )
        cause = (
            f" Then see why {listed([self.context.cluster.broker_text(one) for one in slow])} is slow." if slow else ""
        )
        return told(
            one,
            f"{gives_up} the same batch again, without idempotence: {times(numbers['sent_again'])} for "
            f"{topic}, {stored}",
            "Set enable.idempotence=true (with acks=all): the broker then recognises a batch that it has."
            f"{timeout}{cause}",
            code="records_doubled",
            explained=(one, *waits),
            doubt=""
            if doubled
            else "whether the broker stored them is not in the capture: it has no answers to these requests",
            numbers={**numbers, "topic": topic, "brokers": brokers},
            details=tuple(details),
            severity="error" if doubled else "warning",
            explains=symptoms("broker", brokers, "slow", "broker_stalled", "replica_wait")
            | symptoms("client", [client], "unanswered", "request_timeout", "metadata_storm", "connection_churn"),
        )


def _overlap(one: Observation, other: Observation) -> bool:
    return one.first_ns <= other.last_ns and other.first_ns <= one.last_ns
