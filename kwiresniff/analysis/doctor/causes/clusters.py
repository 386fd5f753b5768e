"""Trouble with what clusters are where: an address that leads to another one than before."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import clock, listed

#: Consumers that stand still, named one by one.
MAX_LISTED: Final = 6


class ClusterChanged(Cause):
    """`cluster_changed` (error): the server at an address became another cluster. Seen must be two cluster ids in
    Metadata or DescribeCluster answers from one address, one after the other. An address that leads to several clusters
    by turns, as a gateway's does, looks the same at first. What goes wrong meanwhile with its clients and in its topics
    and groups is its symptom.
    """

    codes = ("cluster_changed",)
    explains = ("other_cluster",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        addresses, still = one.named("broker"), one.numbers["standing_still"]
        before, after = one.numbers["before"], one.numbers["after"]
        when = clock(one.evidence[0][1])
        details = ["the topics, committed offsets and producer ids of the old cluster are unknown in the new one"]
        details += [
            f"{client} stands still: it last fetched at {clock(ns)}, and asks the new cluster for other things"
            for client, ns in list(still.items())[:MAX_LISTED]
        ]
        return self.told(
            one,
            f"became another cluster at {when}: its id was {before} and is {after}",
            "Find out who answers at this address now: a name or a virtual address that was moved, a "
            "container of another environment, or a broker whose data directory is gone (cluster.id in its "
            "meta.properties, and in the log of its start). If that was meant, make topics and ACLs anew, set the "
            "offsets of groups with kafka-consumer-groups --reset-offsets, and restart clients that keep what "
            "they knew of the old cluster"
            + (f": {listed(still)} at once." if still else "; else let clients reach the old one again."),
            subject=listed(addresses),
            supports=(one.text,),
            details=tuple(details),
            numbers={"clients": one.named("client"), **one.numbers},
        )
