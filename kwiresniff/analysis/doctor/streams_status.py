"""Streams groups that get no tasks: topics that are missing or do not fit, as their heartbeats are told (KIP-1071)."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.rule import Rule, as_clients, found
from kwiresniff.analysis.doctor.wording import broker_says
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import structs
from kwiresniff.base.api_keys import STREAMS_GROUP_HEARTBEAT
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding, scope_of

#: What keeps a group from working, by its number: what it amounts to, and what to do.
STATES = {
    1: ("topics that it reads from are missing", "Create them, or mend their names in the application."),
    2: (
        "topics that it joins are not partitioned alike",
        "Topics that are joined need the same number of partitions: repartition one of them.",
    ),
    3: (
        "its internal topics are missing",
        "The broker makes them in the name of the application: see its log, and whether its user may create topics.",
    ),
}
#: Its internal topics are made in the first moments.
LASTING_NS = 5_000_000_000
INTERNAL_TOPICS = 3


class StreamsStatusRule(Rule):
    """Streams groups whose members are told why they get no tasks.

    `streams_group_not_ready` (error): a streams group gets no tasks, as the answers to its heartbeats say: source
    topics that are missing, topics that are not partitioned alike, internal topics that are not made for 5 s.
    """

    codes = ("streams_group_not_ready",)
    apis = frozenset({STREAMS_GROUP_HEARTBEAT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """A heartbeat and what it is told of the group."""
        request = exchange.request.body if exchange.request is not None else None
        answer = exchange.response.body if exchange.response is not None else None
        for one in structs(answer or {}, ("status",)):
            state = one.get("status_code")
            if state in STATES:
                case = self._cases.case(clipped(field_text((request or {}).get("group_id"))), str(state))
                case.add(*place_of(exchange))
                case.note("clients", [client_of(exchange)])
                case.note("details", [field_text(one.get("status_detail"))])

    def findings(self) -> Iterator[Finding]:
        """By group and what is wrong with it."""
        for group, state, case in self._cases:
            title, remedy = STATES[int(state)]
            if int(state) == INTERNAL_TOPICS and case.last_ns - case.first_ns < LASTING_NS:
                continue
            clients, details = case.noted("clients"), case.noted("details")
            yield found(
                "streams_group_not_ready",
                "error",
                f"group {group}",
                f"the streams group gets no tasks: {title}",
                remedy,
                case,
                {"status": int(state), "details": details},
                details=broker_says(details),
                clients=clients,
                groups=[group],
                explains={
                    "rebalances": scope_of("group", [group]),
                    "unknown_topic_or_partition": as_clients(*clients),
                },
                rank=INCIDENT,
            )
