"""Consumers with the same ``group.instance.id`` (KIP-345), which throw each other out of their group.

The member that joins takes the place, and the other is answered FENCED_INSTANCE_ID; in the consumer protocol the one
that joins is refused with UNRELEASED_INSTANCE_ID.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.bodies import group_of, request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange

FENCED, UNRELEASED = "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"


class StaticMembers(Observer):
    """``fenced_instance``: a member with a ``group.instance.id`` learned that another has its place, or was refused it.

    Notes: ``errors``, ``apis``. Numbers: ``group_instance_id``, and all ``clients`` that claimed to be it.
    """

    kinds = ("fenced_instance",)
    apis = frozenset({JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT})
    judges = frozenset({FENCED, UNRELEASED})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._joined = context.tally()
        self._fenced = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        request = request_body(exchange)
        instance = instance_of(request)
        if instance and (exchange.api_key == JOIN_GROUP or request.get("member_epoch") == 0):
            case = self._joined.case(group_of(request), instance)
            case.add(*place_of(exchange))
            case.note("clients", [client_of(exchange)])

    def failure(self, exchange: Exchange) -> None:
        names = [name for _, _, name, _ in exchange.errors if name in self.judges]
        request = request_body(exchange)
        if not names or not request:
            return
        case = self._fenced.case(group_of(request), instance_of(request))
        case.add(*place_of(exchange))
        case.note("clients", [client_of(exchange)])
        case.note("apis", [exchange.api])
        case.note("errors", dict.fromkeys(names))

    def observations(self) -> Iterator[Observation]:
        for group, instance, case in self._fenced:
            joined = self._joined.known(group, instance)
            others = joined.noted("clients") if joined is not None else []
            clients = list(dict.fromkeys([*others, *case.noted("clients")]))
            about = [f"group:{group}", *(f"client:{client}" for client in clients)]
            numbers = {"group_instance_id": instance, "clients": clients}
            yield observation_of("fenced_instance", case, about, numbers, Harm(requests_failed=case.count))


def instance_of(request: Body) -> str:
    """The ``group.instance.id`` that a request gives, or an empty text."""
    return clipped(field_text(request.get("group_instance_id") or request.get("instance_id")))


@cause("fenced_instance_id", explains=("fenced_instance",))
def fenced_instance(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`fenced_instance_id` (error): clients share a `group.instance.id` and throw each other out. The rebalances of
    their group are symptoms.
    """
    numbers, group, clients = one.numbers, one.name("group"), one.numbers["clients"]
    instance, errors = numbers["group_instance_id"], one.noted("errors")
    by = f"{listed(clients)} share" if len(clients) > 1 else f"{listed(clients)} is not alone with"
    return told(
        one,
        f"{listed(errors)}: {by} group.instance.id {instance or '(not in the request)'}; the "
        f"one that joins throws the other out, {times(one.count)}",
        "Give each instance a group.instance.id of its own: two of them are alive with the same.",
        subject=f"group {group}",
        numbers={
            "error": errors[0],
            "group_instance_id": instance or None,
            "clients": clients,
            "concerns": [*one.noted("apis"), f"group {group}"],
        },
        severity="error",
        explains=symptoms("group", [group], "rebalances", "member_removed"),
    )
