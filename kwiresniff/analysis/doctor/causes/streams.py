"""Kafka Streams: groups that get no tasks, state that is read anew."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.streams_status import MISSING_INTERNAL, MISSING_SOURCES, NOT_ALIKE
from kwiresniff.analysis.doctor.wording import broker_says
from kwiresniff.results.findings import scope_of

#: What a status amounts to, and what to do.
_STATUS: Final = {
    MISSING_SOURCES: (
        "topics that it reads from are missing",
        "Create them, or mend their names in the application.",
    ),
    NOT_ALIKE: (
        "topics that it joins are not partitioned alike",
        "Topics that are joined need the same number of partitions: repartition one of them.",
    ),
    MISSING_INTERNAL: (
        "its internal topics are missing",
        "The broker makes them in the name of the application: see its log, and whether its user may create topics.",
    ),
}
#: Its internal topics are made in the first moments.
LASTING_NS: Final = 5_000_000_000


class NoTasks(Cause):
    """`streams_group_not_ready` (error): a streams group gets no tasks, as the answers to its heartbeats say: source
    topics that are missing, topics that are not partitioned alike, internal topics that are not made for 5 s.
    """

    codes = ("streams_group_not_ready",)
    explains = ("streams_without_tasks",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        status, details = int(one.name("status")), one.noted("details")
        if status == MISSING_INTERNAL and one.last_ns - one.first_ns < LASTING_NS:
            return None
        title, remedy = _STATUS[status]
        return self.told(
            one,
            f"the streams group gets no tasks: {title}",
            remedy,
            subject=f"group {one.name('group')}",
            severity="error",
            numbers={"status": status, "details": details},
            details=tuple(broker_says(details)),
            explains={
                "rebalances": scope_of("group", one.named("group")),
                "unknown_topic_or_partition": scope_of("client", one.named("client")),
            },
        )
