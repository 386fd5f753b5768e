"""Several brokers behind one address: a load balancer, or ``advertised.listeners`` copied from one to the next.

A client dials the leader of a partition by the address that Metadata names for it. Where that is the same for several
brokers, it reaches any of them, and most say that they do not lead the partition, or are not who is asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import INCIDENT
from kwiresniff.analysis.doctor.cluster import address_text
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, clipped
from kwiresniff.analysis.doctor.rule import Rule, as_clients, found
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import METADATA
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding

#: Nodes named in a finding; more are only counted.
MAX_NODES = 100
#: What a client meets that reaches another broker than it wants.
_SYMPTOMS = (
    "leader_change", "not_coordinator", "not_leader_or_follower", "rebootstrap_required", "stale_metadata",
    "unknown_leader_epoch", "fenced_leader_epoch", "metadata_storm", "connection_churn",
)  # fmt: skip


class SharedAddressRule(Rule):
    """Metadata answers that name one address for several brokers.

    `shared_address` (error): several brokers advertise one address, as behind a load balancer: a client that wants one
    of them reaches any. Its NOT_LEADER_OR_FOLLOWER and REBOOTSTRAP_REQUIRED are symptoms.
    """

    codes = ("shared_address",)
    apis = frozenset({METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._shared: dict[str, tuple[Case, set[int]]] = {}

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
            if len(ids) > 1 and (known := self._known(address)) is not None:
                case, known_ids = known
                case.add(*place_of(exchange))
                case.note("clients", [client_of(exchange)])
                known_ids.update(sorted(ids)[: MAX_NODES - len(known_ids)])

    def _known(self, address: str) -> tuple[Case, set[int]] | None:
        known = self._shared.get(address)
        if known is None:
            size = CONTAINER_BYTES + (MAX_NODES + 20) * ENTRY_BYTES + text_bytes(address)
            if len(self._shared) >= MAX_SUBJECTS or not self.context.budget.admit(size):
                return None
            known = self._shared[address] = self.context.case(), set()
        return known

    def findings(self) -> Iterator[Finding]:
        """By address."""
        for address, (case, ids) in self._shared.items():
            nodes = sorted(ids)
            clients = case.noted("clients")
            yield found(
                "shared_address",
                "error",
                address,
                f"nodes {listed([str(node) for node in nodes])} all advertise {address}: whoever wants one of them may "
                "reach another",
                "A client must reach each broker by an address of its own: a load balancer before several brokers may "
                "only serve for bootstrapping. Give every broker its own address or port in advertised.listeners.",
                case,
                {"address": address, "nodes": nodes},
                brokers=[address],
                explains=dict.fromkeys(_SYMPTOMS, as_clients(*clients)),
                rank=INCIDENT,
            )
