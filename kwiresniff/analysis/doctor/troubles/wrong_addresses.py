"""Addresses that brokers advertise and that lead to other brokers."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.troubles.shared_addresses import OTHER_BROKER
from kwiresniff.analysis.doctor.wording import listed
from kwiresniff.results.findings import scope_of


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
        """By cluster: where two were swapped, both are wrong."""
        clusters: dict[str, list[Observation]] = {}
        for one in observed.of("named_leader_denies"):
            if observed.about([f"broker:{one.name('broker')}"], "address_shared"):
                continue
            clusters.setdefault(self.context.cluster.of(one.name("broker")), []).append(one)
        for denials in clusters.values():
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
