"""Timeouts of clients that are shorter than what they wait for."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.results.findings import scope_of

#: How long an API lets the broker wait, by the setting that says so.
_SETTINGS: Final = {
    "Fetch": "fetch.max.wait.ms of the consumer",
    "JoinGroup": "max.poll.interval.ms of the members",
    "Produce": "what the replicas take to store it",
}


class ShortTimeout(Cause):
    """`request_timeout` (warning): a client closes its connection three times after about the same wait, before the
    answer came or while the broker held it back: ``request.timeout.ms`` is shorter than ``fetch.max.wait.ms``, for one.

    Seen must be three connections that the client closed a second or more after a request. Waits that differ by more
    than a quarter are no timeout, but a client that is stopped or restarted.
    """

    codes = ("request_timeout",)
    explains = ("gave_up",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        client, numbers = one.name("client"), one.numbers
        api, waited_ns, held_ns = numbers["api"], numbers["waited_ns"], numbers["held_ns"]
        than = _SETTINGS.get(api, "what the broker takes")
        return self.told(
            one,
            f"gives up on {api} after {duration(waited_ns)} and closes its connection, {times(one.count)}: "
            f"the broker may take {duration(held_ns)}, and answers into closed connections",
            "request.timeout.ms of the client (socket.timeout.ms of librdkafka) must be longer than what it "
            f"lets the broker wait: {than}.",
            supports=(one.text, f"its shortest wait was {duration(numbers['least_ns'])}"),
            numbers={"api": api, "waited_ns": waited_ns, "held_ns": held_ns},
            severity="warning",
            explains=dict.fromkeys(
                ("unanswered", "slow", "connection_churn", "metadata_storm"), scope_of("client", [client])
            ),
        )
