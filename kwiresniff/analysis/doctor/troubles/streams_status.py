"""Streams groups without tasks, because topics are missing or not partitioned alike (KIP-1071)."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.bodies import group_of, request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.doctor.wording import broker_says
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import structs
from kwiresniff.base.api_keys import STREAMS_GROUP_HEARTBEAT
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange

#: ``status_code`` in the answer to a heartbeat: source topics are missing, topics are not partitioned alike, internal
#: topics are missing.
MISSING_SOURCES, NOT_ALIKE, MISSING_INTERNAL = 1, 2, 3
#: The meaning and the remedy of a status.
_STATUS: Final = {
    MISSING_SOURCES: ("topics that it reads from are missing", "Create them, or mend their names in the application."),
    NOT_ALIKE: (
        "topics that it joins are not partitioned alike",
        "Topics that are joined need the same number of partitions: repartition one of them.",
    ),
    MISSING_INTERNAL: (
        "its internal topics are missing",
        "The broker makes them in the name of the application: see its log, and whether its user may create topics.",
    ),
}
#: Internal topics are created within this time.
LASTING_NS: Final = 5_000_000_000


class StreamsStatus(CountingObserver):
    """``streams_without_tasks``: the members of a streams group are told why they get no tasks, by ``status``.

    Notes: ``clients``, ``details``.
    """

    kinds = ("streams_without_tasks",)
    entities = ("group", "status")
    apis = frozenset({STREAMS_GROUP_HEARTBEAT})

    def exchange(self, exchange: Exchange) -> None:
        request, answer = request_body(exchange), response_body(exchange)
        for one in structs(answer or {}, ("status",)):
            status = one.get("status_code")
            if status in (MISSING_SOURCES, NOT_ALIKE, MISSING_INTERNAL):
                case = self.cases.case(group_of(request), str(status))
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
        explains=symptoms("group", one.named("group"), "rebalances")
        | symptoms("client", one.named("client"), "unknown_topic_or_partition"),
    )
