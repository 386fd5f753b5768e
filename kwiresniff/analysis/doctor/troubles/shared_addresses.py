"""Several brokers behind one address: a load balancer, or ``advertised.listeners`` copied from one to the next."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: Nodes remembered of an address.
MAX_NODES = 100
#: What a client meets that reaches another broker than it wants.
OTHER_BROKER: Final = (
    "leader_change", "not_coordinator", "not_leader_or_follower", "rebootstrap_required", "stale_metadata",
    "unknown_leader_epoch", "fenced_leader_epoch", "metadata_storm", "connection_churn",
)  # fmt: skip


@dataclass(slots=True, eq=False)
class _Address:
    case: Case
    nodes: set[int] = field(default_factory=set)


class SharedAddresses(Observer):
    """``address_shared``: Metadata answers name one address for several brokers.

    Notes: ``clients`` that were told so. Numbers: ``nodes``.
    """

    kinds = ("address_shared",)
    apis = frozenset({METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._shared: Subjects[str, _Address] = context.subjects(lambda: _Address(context.case()), MAX_NODES + 20)

    def exchange(self, exchange: Exchange) -> None:
        """Looks at the addresses of the brokers in a Metadata answer."""
        body = exchange.response.body if exchange.response is not None else None
        brokers = (body or {}).get("brokers") or ()
        nodes: dict[str, set[int]] = {}
        for node in brokers:
            if (address := address_text(node)) and isinstance(node.get("node_id"), int):
                nodes.setdefault(clipped(address), set()).add(node["node_id"])
        if len(nodes) == len(brokers):
            return
        for address, ids in nodes.items():
            if len(ids) > 1 and (known := self._shared.of(address)) is not None:
                known.case.add(*place_of(exchange))
                known.case.note("clients", [client_of(exchange)])
                known.nodes.update(sorted(ids)[: MAX_NODES - len(known.nodes)])

    def observations(self) -> Iterator[Observation]:
        for address, known in self._shared.items():
            nodes = sorted(known.nodes)
            yield observation_of("address_shared", known.case, {f"broker:{address}"}, {"nodes": nodes})


@cause("shared_address", explains=("address_shared",))
def shared_address(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`shared_address` (error): several brokers advertise one address, as behind a load balancer: a client that wants
    one of them reaches any, and most say that they do not lead the partition, or are not who is asked for. Its
    NOT_LEADER_OR_FOLLOWER and REBOOTSTRAP_REQUIRED are symptoms.
    """
    address, nodes = one.name("broker"), one.numbers["nodes"]
    return told(
        one,
        f"nodes {listed([str(node) for node in nodes])} all advertise {address}: whoever wants one of them may "
        "reach another",
        "A client must reach each broker by an address of its own: a load balancer before several brokers may only "
        "serve for bootstrapping. Give every broker its own address or port in advertised.listeners.",
        subject=address,
        severity="error",
        numbers={"address": address, "nodes": nodes},
        explains=dict.fromkeys(OTHER_BROKER, scope_of("client", one.noted("clients"))),
    )
