"""Several brokers behind one address, as with a load balancer, and advertised addresses that lead to other brokers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kwiresniff.analysis.doctor.bodies import response_body
from kwiresniff.analysis.doctor.cause import Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Observation, Observed, grouped, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange
from kwiresniff.results.findings import scope_of

#: Nodes remembered of an address.
MAX_NODES = 100
#: Findings of clients that reach another broker than they mean.
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
        brokers = response_body(exchange).get("brokers") or ()
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
        explains=symptoms("client", one.noted("clients"), *OTHER_BROKER),
    )


class WrongAddress(Cause):
    """`wrong_address` (error): an address that a broker advertises leads to another broker: listeners that were
    swapped, a DNS entry or a translated address of another machine. Seen must be that the address is named as the
    leader's, and answers 10 times and for 5 s that it does not lead these partitions; that answer names the same node
    where its version has room for that (KIP-951). A broker that is cut off from its controller, and does not know what
    it leads, looks the same in older versions. Must not be seen: a Produce or Fetch that it serves meanwhile.
    """

    codes = ("wrong_address",)
    explains = ("named_leader_denies",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By cluster, because two that are swapped are both wrong."""
        denying = observed.of("named_leader_denies")
        alone = [one for one in denying if not observed.about([f"broker:{one.name('broker')}"], "address_shared")]
        for denials in grouped(alone, lambda one: self.context.cluster.of(one.name("broker"))).values():
            addresses = [one.name("broker") for one in denials]
            names = [f"{one.name('broker')} is not node {one.numbers['node']}" for one in denials]
            clients = sorted({client for one in denials for client in one.named("client")})
            what = "that node" if len(names) == 1 else "those nodes"
            swapped = len(names) == 2
            yield Explanation(
                code="wrong_address",
                subject=listed(addresses),
                title=f"{listed(names)}, though Metadata says so: another broker answers there, and does not lead what "
                f"{what} {'leads' if len(names) == 1 else 'lead'}"
                f"{'; their addresses may be swapped' if swapped else ''}",
                remedy="Compare advertised.listeners of each broker with the machine that the name or address leads to "
                "from the client's side: DNS, /etc/hosts, address translation, port forwarding, a load balancer.",
                explained=tuple(denials),
                supports=tuple(one.sentence for one in denials),
                doubt=""
                if all(one.numbers["is_sure"] for one in denials)
                else "a broker that is cut off from its controller, and does not know what it leads, answers like that",
                severity="error",
                numbers={
                    "addresses": addresses,
                    "nodes": [one.numbers["node"] for one in denials],
                    "concerns": list(dict.fromkeys(name for one in denials for name in one.noted("partitions"))),
                    "clients": clients,
                },
                explains=dict.fromkeys(OTHER_BROKER, scope_of("client", clients) | scope_of("broker", addresses)),
            )
