"""Static members (KIP-345) of which there are two: consumers with one ``group.instance.id`` throw each other out.

The one that joins takes the place, the one that was there is answered FENCED_INSTANCE_ID; in the consumer protocol the
one that comes is refused with UNRELEASED_INSTANCE_ID while the other is there.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, found
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Body, Exchange
from kwiresniff.results.findings import Finding, scope_of

FENCED, UNRELEASED = "FENCED_INSTANCE_ID", "UNRELEASED_INSTANCE_ID"


class StaticMemberRule(Rule):
    """Two live members with one ``group.instance.id``.

    `fenced_instance_id` (error): clients share a `group.instance.id` and throw each other out.
    """

    codes = ("fenced_instance_id",)
    apis = frozenset({JOIN_GROUP, CONSUMER_GROUP_HEARTBEAT})
    judges = frozenset({FENCED, UNRELEASED})

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

    def findings(self) -> Iterator[Finding]:
        """By group and instance, with all that claim to be it."""
        for group, instance, case in self._fenced:
            joined = self._joined.known(group, instance)
            clients = list(
                dict.fromkeys([*(joined.noted("clients") if joined is not None else ()), *case.noted("clients")])
            )
            errors = listed(case.noted("errors"))
            by = f"{listed(clients)} share" if len(clients) > 1 else f"{listed(clients)} is not alone with"
            yield found(
                "fenced_instance_id",
                "error",
                f"group {group}",
                f"{errors}: {by} group.instance.id {instance or '(not in the request)'}; the one that joins throws the "
                f"other out, {times(case.count)}",
                "Give each instance a group.instance.id of its own: two of them are alive with the same.",
                case,
                {
                    "error": case.noted("errors")[0],
                    "group_instance_id": instance or None,
                    "clients": clients,
                    "concerns": [*case.noted("apis"), f"group {group}"],
                },
                clients=clients,
                groups=[group],
                explains={"rebalances": scope_of("group", [group]), "member_removed": scope_of("group", [group])},
                rank=INCIDENT,
            )


def instance_of(request: Body) -> str:
    """The ``group.instance.id`` that a request gives, or an empty text."""
    return clipped(field_text(request.get("group_instance_id") or request.get("instance_id")))


def _group(request: Body) -> str:
    return clipped(field_text(request.get("group_id")))
