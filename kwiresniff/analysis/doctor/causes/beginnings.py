"""Consumers that begin where nobody meant them to, or do not begin at all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.results.findings import scope_of


class SkippedRecords(Cause):
    """`records_skipped` (info; warning where the group had committed offsets before, or where the partitions were added
    to their topic while the capture looked): a group without a committed offset begins at the end of partitions that
    have records, and never reads these (`auto.offset.reset=latest`, which is the default). Seen must be OffsetFetch
    answered with -1, ListOffsets for the latest offset, and a Fetch from there. A new group that is meant to see new
    records only looks the same.
    """

    codes: ClassVar[tuple[str, ...]] = ("records_skipped",)
    explains: ClassVar[tuple[str, ...]] = ("starts_at_end",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        numbers, topics, clients = one.numbers, listed(one.named("topic")), listed(one.named("client"))
        partitions, expired, added = listed(numbers["partitions"]), numbers["expired"], numbers["added"]
        lost = (
            f"{'has lost its committed offsets' if expired else 'has no committed offset'} of {partitions} ({clients})"
        )
        if numbers["deleted_by"]:
            lost = f"has lost the offsets of {partitions} ({clients}), deleted by {numbers['deleted_by']},"
        elif added:
            by, later = numbers["added_by"], duration(numbers["learned_ns"])
            lost = f"learns of {partitions} {later} after {f'{by} added them' if by else 'they were added'} ({clients})"
        return self.told(
            one,
            f"{lost} and begins at their end (auto.offset.reset=latest): up to {numbers['records']:,} records of "
            f"{topics} that are there already are not read",
            _ADDED if added else _EXPIRED if expired else _NEW,
            subject=f"group {numbers['group']}",
            severity="warning" if expired or added else "info",
        )


_ADDED: Final = (
    "What is written to new partitions before a group learns of them is skipped with auto.offset.reset=latest: set "
    "earliest for groups that are to read everything. How late they learn of them is metadata.max.age.ms (5 minutes by "
    "default). What was skipped can be read again by setting the offsets of these partitions "
    "(kafka-consumer-groups --reset-offsets --to-earliest)."
)
_EXPIRED: Final = (
    "Offsets go when a group has had no members for offsets.retention.minutes (7 days by default), or when somebody "
    "deletes them. Set the group where it was (kafka-consumer-groups --reset-offsets --to-datetime)."
)
_NEW: Final = (
    "A new group begins at the end unless auto.offset.reset=earliest: set that where it is to read what is there, or "
    "set the group's offsets once (kafka-consumer-groups --reset-offsets). See whether its name is the one that it had."
)


class NothingToRead(Cause):
    """`nothing_assigned` (warning): a group gives no partition to any of its members for 10 s and more, or a client
    that asked for its group's coordinator never joins: there is nothing that they subscribe to. Seen must be the
    assignment of the leader of a classic group, heartbeats with a pattern, or that the client reached the coordinator
    and sent nothing that concerns the group. A pattern that matches no topic, topics that do not exist yet, and rights
    that hide them look the same. Where Metadata says that a topic is missing, `unknown_topic_or_partition` is told.
    """

    codes: ClassVar[tuple[str, ...]] = ("nothing_assigned",)
    explains: ClassVar[tuple[str, ...]] = ("nothing_assigned", "never_joined")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By group."""
        for one in observed.of("nothing_assigned", "never_joined"):
            numbers, clients = one.numbers, one.named("client")
            lasted, topics = duration(numbers["longest_ns"]), numbers["topics"]
            if topics and not any(name in topics for _, name in self.context.existing):
                continue  # that they are missing is told
            if one.kind == "never_joined":
                title = f"{listed(clients)} looked for its coordinator, reached it, and has not joined for {lasted}"
            else:
                title = f"none of its members is assigned a partition, for {lasted} ({listed(clients)})"
            pattern = numbers["pattern"]
            title += (
                f": they subscribe to {listed(topics)}"
                if topics
                else f": the subscription{f' ({pattern})' if pattern else ''} matches no topic"
            )
            yield Explanation(
                code="nothing_assigned",
                subject=f"group {numbers['group']}",
                title=title,
                remedy=f"See whether {counted(len(topics), 'topic')} "
                f"{'has' if len(topics) == 1 else 'have'} partitions, and whether the user may describe them."
                if topics
                else "Compare the pattern with the names of the topics (kafka-topics --list), and see whether the user "
                "may describe them: topics that it may not see match no pattern.",
                explained=(one,),
                doubt="Members that are not in the capture may have all the partitions." if pattern else "",
                numbers=dict(numbers),
                severity="warning",
                explains={"metadata_storm": scope_of("client", clients)},
            )
