"""Trouble with what clusters are where: an address that leads to another one than before."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observed
from kwiresniff.analysis.doctor.wording import clock, listed

#: Consumers that stand still, named one by one.
MAX_LISTED: Final = 6


class ClusterChanged(Cause):
    """`cluster_changed` (error): the server at an address became another cluster. Seen must be two cluster ids in
    Metadata or DescribeCluster answers from one address, one after the other. An address that leads to several clusters
    by turns, as a gateway's does, looks the same at first. What goes wrong meanwhile with its clients and in its topics
    and groups is its symptom.
    """

    codes: ClassVar[tuple[str, ...]] = ("cluster_changed",)
    explains: ClassVar[tuple[str, ...]] = ("other_cluster",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By the two clusters."""
        for change in observed.of("other_cluster"):
            addresses, still = change.named("broker"), change.numbers["standing_still"]
            before, after = change.numbers["before"], change.numbers["after"]
            when = clock(change.evidence[0][1])
            details = ["the topics, committed offsets and producer ids of the old cluster are unknown in the new one"]
            details += [
                f"{client} stands still: it last fetched at {clock(ns)}, and asks the new cluster for other things"
                for client, ns in list(still.items())[:MAX_LISTED]
            ]
            yield Explanation(
                code="cluster_changed",
                subject=listed(addresses),
                title=f"became another cluster at {when}: its id was {before} and is {after}",
                remedy="Find out who answers at this address now: a name or a virtual address that was moved, a "
                "container of another environment, or a broker whose data directory is gone (cluster.id in its "
                "meta.properties, and in the log of its start). If that was meant, make topics and ACLs anew, set the "
                "offsets of groups with kafka-consumer-groups --reset-offsets, and restart clients that keep what "
                "they knew of the old cluster"
                + (f": {listed(still)} at once." if still else "; else let clients reach the old one again."),
                explained=(change,),
                supports=(change.text,),
                details=tuple(details),
                numbers={"clients": change.named("client"), **change.numbers},
            )
