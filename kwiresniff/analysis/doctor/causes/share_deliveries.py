"""Share groups whose members do not get done with what they acquire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observed
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times
from kwiresniff.base.time_units import MILLISECOND_NS


class ExpiredLock(Cause):
    """`share_lock_expired` (warning): members of a share group acknowledge records that are not theirs any more
    (INVALID_RECORD_STATE): the acquisition lock had ended, and the group gave the records to somebody else, or will.
    Seen must be the refused acknowledgement; that it came later than the lock lasts speaks for it.
    """

    codes: ClassVar[tuple[str, ...]] = ("share_lock_expired",)
    explains: ClassVar[tuple[str, ...]] = ("late_acknowledgements", "delivered_again")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By group and topic."""
        for one in observed.of("late_acknowledgements"):
            numbers, clients, topic = one.numbers, one.named("client"), one.name("topic")
            lock_ns, longest_ns = numbers["lock_ms"] * MILLISECOND_NS, numbers["longest_ns"]
            outlasted = 0 < lock_ns < longest_ns
            lock = f", longer than the lock on them lasts ({duration(lock_ns)})" if outlasted else ""
            again = [
                each
                for each in observed.about([f"group:{numbers['group']}"], "delivered_again")
                if topic in each.named("topic") and not each.numbers["released"]
            ]
            yield Explanation(
                code="share_lock_expired",
                subject=f"group {numbers['group']}",
                title=f"{listed(clients)} acknowledged records of {topic} that were not theirs any more "
                f"(INVALID_RECORD_STATE), {times(one.count)}, up to {duration(longest_ns)} after they had acquired "
                f"them{lock}: what they did is done again",
                remedy="Let a member acquire fewer records at a time (max.poll.records with "
                "share.acquire.mode=record_limit), acknowledge each when it is done, or renew the lock (KIP-1222); or "
                "raise share.record.lock.duration.ms of the group.",
                explained=(one, *again),
                supports=(f"the lock lasts {duration(lock_ns)}",) if lock_ns else (),
                contradicts=()
                if outlasted or not lock_ns
                else (f"{duration(longest_ns)} after the acquisition that was seen is before the end of the lock",),
                numbers={**numbers, "topic": topic, "clients": clients},
                severity="warning",
            )


class ReturnedRecords(Cause):
    """`share_redelivery` (warning): records are delivered to a share group 3 times or more: its members release them
    again and again, or lose them by an end of the lock, until the limit of deliveries is reached (5 by default) and
    nobody gets them any more. Records that no member can process look like that.
    """

    codes: ClassVar[tuple[str, ...]] = ("share_redelivery",)
    explains: ClassVar[tuple[str, ...]] = ("delivered_again",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By group and topic."""
        for one in observed.of("delivered_again"):
            numbers, clients, topic = one.numbers, one.named("client"), one.name("topic")
            released, rejected = numbers["released"], numbers["rejected"]
            how = f"{listed(clients)} released records {times(released)}" if released else "the lock on them ended"
            if rejected:
                how += f" and rejected {counted(rejected, 'record')}, which nobody gets again"
            yield Explanation(
                code="share_redelivery",
                subject=f"group {numbers['group']}",
                title=f"{counted(numbers['records'], 'record')} of {topic} {_was(numbers['records'])} delivered up to "
                f"{numbers['deliveries']} times ({listed(numbers['from'])}): {how}",
                remedy="Records that no member can process: look at the first of them (kwiresniff read -Y 'api == "
                "ShareFetch') and at the log of the members. After group.share.delivery.count.limit deliveries (5 by "
                "default) they are archived without having been processed: reject them at once, or write them to a "
                "topic of their own.",
                explained=(one,),
                numbers={**numbers, "topic": topic, "clients": clients},
                severity="warning",
            )


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
