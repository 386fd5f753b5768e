"""Brokers whose advertised address is wrong for their clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.rule import as_brokers
from kwiresniff.analysis.doctor.wording import listed, times
from kwiresniff.results.findings import scope_of


class UnreachableNode(Cause):
    """`broker_not_dialled` (error; warning where only one other broker is in the capture): one broker of several
    advertises an address that its clients do not reach, not even with a SYN: a name that does not resolve where they
    run, mostly. They work with the others, ask for the leaders of their partitions again and again, and what that
    broker leads or coordinates gets nothing. Must not be seen: a connection to it, tried or made, and an address that
    the name could stand for. A capture that has only some of the brokers looks the same.
    """

    codes: ClassVar[tuple[str, ...]] = ("broker_not_dialled",)
    explains: ClassVar[tuple[str, ...]] = ("broker_not_dialled",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By address."""
        by_address: dict[str, list[Observation]] = {}
        for one in observed.of("broker_not_dialled"):
            by_address.setdefault(one.numbers["address"], []).append(one)
        for address, seen in by_address.items():
            working = sorted({broker for one in seen for broker in one.numbers["working"]})
            clients = sorted({one.name("client") for one in seen})
            wanted = list(dict.fromkeys(name for one in seen for name in one.numbers["wanted"]))
            asked = sum(one.numbers["asked"] for one in seen)
            one_other = len(working) == 1
            yield Explanation(
                code="broker_not_dialled",
                subject=self.context.cluster.broker_text(address),
                title=f"Metadata names {address}, which {listed(clients)} never dials, not even with a SYN, though "
                f"told {times(asked)}: a name that does not resolve there, or advertised.listeners that are wrong; "
                f"{listed(wanted)} get nothing, while {listed(working)} serve the same host",
                remedy=f"Resolve and dial {address} from where {listed(clients)} run; its log names what fails. Then "
                "set advertised.listeners of that broker to what its clients can reach, as the other brokers have it.",
                explained=tuple(seen),
                supports=tuple(one.text for one in seen),
                doubt=f"The capture has no other broker than {working[0]}: it may be that it was made there."
                if one_other
                else "",
                numbers={"dialled": working[0], "advertised": [address], "clients": clients, "reached": False},
                severity="warning" if one_other else "",
                scope=as_brokers(address),
                explains={
                    "metadata_storm": scope_of("client", clients),
                    "coordinator_not_available": scope_of("client", clients),
                    "group_deserted": scope_of("client", clients),
                },
            )
