"""Searches for the leader of KRaft's metadata quorum.

Controllers and brokers ask every controller until they have found it: an election gives hundreds of errors a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import ERROR, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.places import place_of
from kwiresniff.base.known_ids import METADATA_TOPIC
from kwiresniff.model import Exchange

LEADER_CODES = frozenset({"NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"})
#: A pause that ends a search.
PAUSE_NS = 2_000_000_000
#: An election of controllers takes a second or two.
ELECTION_NS: Final = 10_000_000_000


class QuorumSearches(Observer):
    """``quorum_searched``: nodes ask for the leader of the metadata quorum.

    Notes: ``clients``, ``errors``. Numbers: ``longest_ns`` without a pause.
    """

    kinds = ("quorum_searched",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._case = context.case()
        self._began_ns = self._searched_ns = self._longest_ns = 0

    def failure(self, exchange: Exchange) -> None:
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

    def observations(self) -> Iterator[Observation]:
        if self._case.count:
            yield observation_of("quorum_searched", self._case, (), {"longest_ns": self._longest_ns})


@cause("quorum_election", explains=("quorum_searched",))
def quorum_election(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`quorum_election` (warning when it lasts 10 s, else info): KRaft's controllers and brokers look for their
    leader.
    """
    errors, longest_ns = one.noted("errors"), one.numbers["longest_ns"]
    return told(
        one,
        f"controllers and brokers look for the leader of the metadata quorum ({', '.join(errors)})",
        "Normal while controllers start or elect. Lasting: look at their logs, and at kafka-metadata-quorum "
        "describe --status.",
        subject="metadata quorum",
        severity="warning" if longest_ns > ELECTION_NS else "info",
        rank=ERROR,
        numbers={"errors": errors, "concerns": one.noted("clients"), "longest_ns": longest_ns},
    )
