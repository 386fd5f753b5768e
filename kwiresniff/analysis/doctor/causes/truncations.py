"""Records that were lost by the election of a leader."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.results.findings import scope_of


class UncleanElection(Cause):
    """`records_lost` (error): a new leader lacks what the old one had acknowledged, or consumers had read: an unclean
    leader election; at least how many records. Seen must be offsets that are given out again by another broker than
    before. A batch that an idempotent producer sends again to the new leader is answered with its first offset, and is
    no loss; a topic that was deleted and created again looks the same.
    """

    codes = ("records_lost",)
    explains = ("log_went_back",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers = dict(one.numbers)
        details = numbers.pop("details")
        old, new = (self.context.cluster.broker_text(numbers[name]) for name in ("from_address", "to_address"))
        return self.told(
            one,
            f"records that {old} had are gone, at least {numbers['lost_records']:,}: {new} was made leader "
            "without them, and gives their offsets out again (an unclean leader election)",
            _REMEDY,
            subject=listed(numbers["partitions"]),
            supports=(one.text,),
            numbers=numbers,
            details=tuple(details),
            explains=dict.fromkeys(
                (
                    "leader_change",
                    "under_replicated",
                    "offset_out_of_range",
                    "out_of_order_sequence_number",
                    "unknown_producer_id",
                ),
                scope_of("topic", one.named("topic")),
            ),
        )


_REMEDY: Final = (
    "A replica that was not in sync became leader: unclean.leader.election.enable is on, somebody forced the election, "
    "or the broker came back without its disk; the controller's log says which. If the topic was deleted and made "
    "anew, that is all there is to it. What must not be lost: acks=all, min.insync.replicas of 2 or more, unclean "
    "elections off. Consumers that had read the lost records and those that had not differ from now on."
)
