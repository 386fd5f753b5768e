"""KRaft's metadata quorum: whether its controllers and brokers find the leader."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.cause import ERROR
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.rule import Rule, found
from kwiresniff.analysis.places import place_of
from kwiresniff.base.known_ids import METADATA_TOPIC
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding

#: Whom the search concerns; a client is named with its address and cannot be called so.
QUORUM = "metadata quorum"
LEADER_CODES = frozenset({"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"})
#: An election takes a second or two. One that goes on for longer, without a pause of so much, does not succeed.
ELECTION_NS = 10_000_000_000
PAUSE_NS = 2_000_000_000


class QuorumRule(Rule):
    """The replicas of the partition in which KRaft keeps its metadata ask every controller until they have found the
    leader, so an election gives hundreds of errors in a second.

    `quorum_election` (warning when it lasts 10 s, else info): KRaft's controllers and brokers look for their leader.
    """

    codes = ("quorum_election",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._case = context.case()
        self._began_ns = self._searched_ns = self._longest_ns = 0

    def failure(self, exchange: Exchange) -> None:
        """Counts a node that looks for the leader of the metadata quorum."""
        if not any(name in LEADER_CODES for _, _, name, _ in exchange.errors):
            return
        names = {place.name: None for place in error_places(exchange, self.context) if place.topic == METADATA_TOPIC}
        if not names.keys() & LEADER_CODES:
            return
        packet, ns = place_of(exchange)
        self._case.add(packet, ns)
        self._case.note("clients", [client_of(exchange)])
        self._case.note("errors", names)
        if ns - self._searched_ns > PAUSE_NS:
            self._began_ns = ns
        self._searched_ns = ns
        self._longest_ns = max(self._longest_ns, ns - self._began_ns)

    def findings(self) -> Iterator[Finding]:
        """One finding for all nodes that search."""
        if not self._case.count:
            return
        errors = self._case.noted("errors")
        yield found(
            "quorum_election",
            "warning" if self._longest_ns > ELECTION_NS else "info",
            QUORUM,
            f"controllers and brokers look for the leader of the metadata quorum ({', '.join(errors)})",
            "Normal while controllers start or elect. Lasting: look at their logs, and at kafka-metadata-quorum "
            "describe --status.",
            self._case,
            {"errors": errors, "concerns": self._case.noted("clients"), "longest_ns": self._longest_ns},
            rank=ERROR,
        )
