"""Streams groups that get no tasks: topics that are missing or do not fit, as their heartbeats are told (KIP-1071)."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import broker_says
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import structs
from kwiresniff.base.api_keys import STREAMS_GROUP_HEARTBEAT
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: ``status_code`` of a heartbeat's answer that keeps a group from working: topics that it reads from are missing, or
#: not partitioned alike, or its internal topics are missing.
MISSING_SOURCES, NOT_ALIKE, MISSING_INTERNAL = 1, 2, 3
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


class StreamsStatus(CountingObserver):
    """``streams_without_tasks``: the members of a streams group are told why they get no tasks, by ``status``.

    Notes: ``clients``, ``details``.
    """

    kinds = ("streams_without_tasks",)
    entities = ("group", "status")
    apis = frozenset({STREAMS_GROUP_HEARTBEAT})

    def exchange(self, exchange: Exchange) -> None:
        """A heartbeat and what it is told of the group."""
        request = exchange.request.body if exchange.request is not None else None
        answer = exchange.response.body if exchange.response is not None else None
        for one in structs(answer or {}, ("status",)):
            status = one.get("status_code")
            if status in (MISSING_SOURCES, NOT_ALIKE, MISSING_INTERNAL):
                case = self.cases.case(clipped(field_text((request or {}).get("group_id"))), str(status))
                case.add(*place_of(exchange))
                case.note("clients", [client_of(exchange)])
                case.note("details", [field_text(one.get("status_detail"))])


@cause("streams_group_not_ready", explains=("streams_without_tasks",))
def no_tasks(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`streams_group_not_ready` (error): a streams group gets no tasks, as the answers to its heartbeats say: source
    topics that are missing, topics that are not partitioned alike, internal topics that are not made for 5 s.
    """
    status, details = int(one.name("status")), one.noted("details")
    if status == MISSING_INTERNAL and one.last_ns - one.first_ns < LASTING_NS:
        return None
    title, remedy = _STATUS[status]
    return told(
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
