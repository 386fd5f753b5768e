"""Static members (KIP-345) of which there are two: consumers with one ``group.instance.id`` throw each other out.

The one that joins takes the place, the one that was there is answered FENCED_INSTANCE_ID; in the consumer protocol the
one that comes is refused with UNRELEASED_INSTANCE_ID while the other is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange
from kwiresniff.results.findings import scope_of

FENCED, UNRELEASED = "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"


class StaticMembers(Observer):
    """``fenced_instance``: a member with a ``group.instance.id`` learned that another has its place, or was refused it.

    Numbers: ``errors``, ``apis``, ``group_instance_id``, and all ``clients`` that claimed to be it.
    """

    kinds: ClassVar[tuple[str, ...]] = ("fenced_instance",)
    apis: ClassVar[frozenset[int] | None] = frozenset({JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT})
    judges: ClassVar[frozenset[str]] = frozenset({FENCED, UNRELEASED})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._joined = context.tally()
        self._fenced = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """Who joins as which instance; most groups have none."""
        request = exchange.request.body if exchange.request is not None else None
        instance = instance_of(request or {})
        if request and instance and (exchange.api_key == JOIN_GROUP or request.get("member_epoch") == 0):
            case = self._joined.case(_group(request), instance)
            case.add(*place_of(exchange))
            case.note("clients", [client_of(exchange)])

    def failure(self, exchange: Exchange) -> None:
        """A member learns that another has taken its place, or that it cannot have it."""
        names = [name for _, _, name, _ in exchange.errors if name in self.judges]
        request = exchange.request.body if exchange.request is not None else None
        if not names or not request:
            return
        case = self._fenced.case(_group(request), instance_of(request))
        case.add(*place_of(exchange))
        case.note("clients", [client_of(exchange)])
        case.note("apis", [exchange.api])
        case.note("errors", dict.fromkeys(names))

    def observations(self) -> Iterator[Observation]:
        for group, instance, case in self._fenced:
            joined = self._joined.known(group, instance)
            others = joined.noted("clients") if joined is not None else []
            clients = list(dict.fromkeys([*others, *case.noted("clients")]))
            yield observation_of(
                "fenced_instance",
                case,
                {f"group:{group}", *(f"client:{client}" for client in clients)},
                {
                    "errors": case.noted("errors"),
                    "apis": case.noted("apis"),
                    "group_instance_id": instance,
                    "clients": clients,
                },
                Harm(requests_failed=case.count),
            )


def instance_of(request: Body) -> str:
    """The ``group.instance.id`` that a request gives, or an empty text."""
    return clipped(field_text(request.get("group_instance_id") or request.get("instance_id")))


def _group(request: Body) -> str:
    return clipped(field_text(request.get("group_id")))


@cause("fenced_instance_id", explains=("fenced_instance",))
def fenced_instance(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`fenced_instance_id` (error): clients share a `group.instance.id` and throw each other out. The rebalances of
    their group are symptoms.
    """
    numbers, group, clients = one.numbers, one.name("group"), one.numbers["clients"]
    instance = numbers["group_instance_id"]
    by = f"{listed(clients)} share" if len(clients) > 1 else f"{listed(clients)} is not alone with"
    return told(
        one,
        f"{listed(numbers['errors'])}: {by} group.instance.id {instance or '(not in the request)'}; the "
        f"one that joins throws the other out, {times(one.count)}",
        "Give each instance a group.instance.id of its own: two of them are alive with the same.",
        subject=f"group {group}",
        numbers={
            "error": numbers["errors"][0],
            "group_instance_id": instance or None,
            "clients": clients,
            "concerns": [*numbers["apis"], f"group {group}"],
        },
        severity="error",
        explains=dict.fromkeys(("rebalances", "member_removed"), scope_of("group", [group])),
    )
