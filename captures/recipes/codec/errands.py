"""What recipes of clusters have in common: how one is described, and the programs that act on clusters."""

from __future__ import annotations

from collections.abc import Mapping

from captures.recipes.shared.cluster import INSIDE, ClusterSetup, Member
from captures.recipes.shared.scenario import Scenario, java

NEWEST = "4.4.0"
INTERNAL_CLIENTS = "Apache Kafka's own clients"
STOPPED = {"incomplete_response": "a member was stopped while it sent an answer"}

Step = tuple[str, ...]


def inside(
    name: str,
    shows: str,
    clients: str,
    cluster: ClusterSetup,
    *steps: Step,
    exceptions: Mapping[str, str] | None = None,
) -> Scenario:
    """The recording of a cluster from its start to its stop, with what its members say among themselves."""
    return Scenario(
        name,
        shows,
        steps[0],
        clients,
        then=steps[1:],
        broker=cluster,
        tap=INSIDE,
        from_the_start=True,
        compressed=True,
        folder="eras",
        exceptions=exceptions or {},
    )


def trio(version: str, settings: Mapping[str, str] | None = None, *format_arguments: str) -> ClusterSetup:
    """Three nodes, each broker and controller."""
    members = (Member(n, "broker,controller", format_arguments=format_arguments) for n in (1, 2, 3))
    return ClusterSetup(version, tuple(members), settings or {}, voters=True)


def upkeep(*errands: str, version: str = NEWEST) -> Step:
    return java("Upkeep", *errands, version=version)


def quorum(*errands: str) -> Step:
    return java("Quorum", *errands)


def office(*errands: str) -> Step:
    return java("GroupOffice", *errands)


def restart(*nodes: str) -> tuple[Step, ...]:
    """One after the other."""
    return tuple(step for node in nodes for step in (("stop", node), ("start", node)))
