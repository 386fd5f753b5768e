"""Groups without members whose topics are written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed, grouped
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed
from kwiresniff.results.findings import scope_of

#: Codecs that every client library has.
_BUILT_IN: Final = frozenset({"none", "gzip"})
#: With fewer records meanwhile, nobody may have been meant to read them.
MANY_RECORDS: Final = 100
#: Findings that members which come and go at once also cause.
_SYMPTOMS: Final = ("rebalances", "member_removed", "long_rebalance", "no_progress", "group_deserted", "member_away")
#: A member that leaves may be back within this time.
_BACK_NS: Final = 2_000_000_000


class UnreadableCodec(Cause):
    """`codec_not_supported` (error): all members of a group left right after they were given their first batches in
    snappy, lz4 or zstd, before any committed what is behind them, and nobody came back while producers go on, or each
    that came back left in the same way. Libraries without that codec raise an error there (kafkajs without a plugin;
    Python and Java on machines that lack the native library). A record that the application cannot process looks the
    same, which is less likely the more members and partitions it happened to. Must not be seen: a member that went on.
    """

    codes = ("codec_not_supported",)
    explains = ("group_deserted", "left_at_first_records")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        left = observed.of("left_at_first_records")
        for group, leavers in grouped(left, lambda one: one.name("group")).items():
            codecs = sorted({codec for one in leavers for codec in one.noted("codecs")} - _BUILT_IN)
            deserted = observed.about([f"group:{group}"], "group_deserted")
            if not codecs or not (deserted or max(one.count for one in leavers) > 1):
                continue
            went_on = [one.name("client") for one in leavers if one.numbers["went_on"]]
            early = {one.name("client") for one in leavers}
            others = sorted({name for one in deserted for name in one.numbers["members"]} - early)
            contradicts = [f"{client} went on later and committed what is behind them" for client in went_on]
            contradicts += [f"{client} left as well, and not with its first records" for client in others]
            too_soon = bool(deserted) and deserted[0].numbers["lasted_ns"] < _BACK_NS
            stands = not contradicts and not too_soon
            yield self._explanation(group, leavers, deserted, codecs, contradicts, stands=stands)

    def _explanation(
        self,
        group: str,
        leavers: list[Observation],
        deserted: list[Observation],
        codecs: list[str],
        contradicts: list[str],
        *,
        stands: bool,
    ) -> Explanation:
        clients = sorted({one.name("client") for one in leavers})
        topics = sorted({topic for one in (*leavers, *deserted) for topic in one.named("topic")})
        count, longest_ns = sum(one.count for one in leavers), max(one.numbers["longest_ns"] for one in leavers)
        who = "its only member" if len(clients) == 1 else f"all {len(clients)} members"
        title = (
            f"{who} ({listed(clients)}) left right after the first fetch of {listed(codecs)} batches, "
            f"{duration(longest_ns)} at most after it{f', {count} times' if count > len(clients) else ''}"
        )
        if deserted:
            numbers = deserted[0].numbers
            title += (
                f"; nobody has consumed {listed(topics)} since {clock(deserted[0].first_ns)}, and "
                f"{counted(numbers['records'], 'record')} more were written"
            )
        return Explanation(
            code="codec_not_supported",
            subject=f"group {group}",
            title=title,
            remedy=f"The clients' library cannot decompress {listed(codecs)}: their own log says so. Add the codec to "
            "them (kafkajs-snappy, python-snappy, the native library of the base image), or have the producers of "
            f"{listed(topics)} compress with gzip, which all clients know; what is written already stays as it is.",
            explained=(*deserted, *leavers),
            contradicts=tuple(contradicts),
            doubt="A record that the application cannot process, at the very beginning of each partition, would look "
            "the same.",
            numbers={
                "group": group,
                "codecs": codecs,
                "topics": topics[:100],
                "clients": clients[:100],
                "records": deserted[0].numbers["records"] if deserted else 0,
            },
            severity="error",
            stands=stands,
            explains=dict.fromkeys(_SYMPTOMS, scope_of("group", [group]) | scope_of("client", clients)),
        )


@cause("group_deserted", explains=("group_deserted",))
def deserted_group(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`group_deserted` (error where members were gone without leaving, warning where they left, info below 100
    records): nobody has been in a group for longer than it waits for a member that fell silent (`session.timeout.ms`),
    and its topics are written. Must not be seen: a member that joins. A consumer that was stopped in order, for good,
    looks the same.
    """
    numbers = one.numbers
    group, clients, records = numbers["group"], listed(numbers["members"]), numbers["records"]
    vanished = listed(numbers["vanished"])
    topics, patience_ns = listed(numbers["topics"]), numbers["patience_ns"]
    how = f"{vanished} closed the connection without leaving" if vanished else f"{clients} left"
    return told(
        one,
        f"has no members since {clock(one.first_ns)}, when {how}; {counted(records, 'record')} were "
        f"written to {topics} in the {duration(numbers['lasted_ns'])} since, and nobody consumes them",
        f"See why {clients} ended, in its own log, and start it again before retention deletes what it has not read.",
        subject=f"group {group}",
        supports=(f"nobody joined for longer than the session timeout ({duration(patience_ns)})",)
        if numbers["lasted_ns"] > patience_ns
        else (),
        contradicts=()
        if numbers["lasted_ns"] > patience_ns
        else (f"a member may be back within the session timeout ({duration(patience_ns)})",),
        doubt="" if vanished else "It may have been stopped in order.",
        numbers={"group": group, "topics": numbers["topics"][:100], "records": records},
        severity="info" if records < MANY_RECORDS else "error" if vanished else "warning",
        stands=numbers["lasted_ns"] > patience_ns,
        explains=symptoms("group", [group], "member_away"),
    )
