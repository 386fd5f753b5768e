"""Streams groups that get no tasks: topics that are missing or do not fit, as their heartbeats are told (KIP-1071)."""

from __future__ import annotations

from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.observer import CountingObserver
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import structs
from kwiresniff.base.api_keys import STREAMS_GROUP_HEARTBEAT
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Exchange

#: ``status_code`` of a heartbeat's answer that keeps a group from working: topics that it reads from are missing, or
#: not partitioned alike, or its internal topics are missing.
MISSING_SOURCES, NOT_ALIKE, MISSING_INTERNAL = 1, 2, 3


class StreamsStatus(CountingObserver):
    """``streams_without_tasks``: the members of a streams group are told why they get no tasks, by ``status``.

    Notes: ``clients``, ``details``.
    """

    kinds = ("streams_without_tasks",)
    entities = ("group", "status")
    sentence = "group {group} gets no tasks: {details}, {times}"
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
