"""Selections: which exchanges of its APIs a rule is given.

Few rules learn anything from every one. Those about waits, transfers and quotas are given the exchanges that show one;
and of Produce and Fetch, which are most of all traffic, a rule may do with a part, while it is given all exchanges of
its other APIs.
"""

from __future__ import annotations

from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.light_typing import Final, Literal, NamedTuple, TypeAlias

#: What decides whether an exchange is selected: nothing; the time from the request to the response; the time from the
#: first to the last byte of the response; ``throttle_time_ms`` of the response; the transactional id of a Produce, the
#: isolation level of a Fetch; the time since the last Produce or Fetch of the connection that was selected; the number
#: of Produce requests so far; the version of a Fetch.
Kind: TypeAlias = Literal[
    "all", "waited", "transferred", "throttled", "transactional", "sampled", "sampled fetches", "thinned", "old fetches"
]

#: The APIs of which a kind leaves exchanges out, where it is not any.
_REDUCED: Final = {
    "transactional": frozenset({PRODUCE, FETCH}),
    "sampled": frozenset({PRODUCE, FETCH}),
    "sampled fetches": frozenset({FETCH}),
    "thinned": frozenset({PRODUCE}),
    "old fetches": frozenset({FETCH}),
}


class Selection(NamedTuple):
    """The exchanges that a rule is given; those of waits, transfers and old fetches have a ``limit``."""

    kind: Kind
    limit: int = 0

    def kind_for(self, api_key: int) -> Kind:
        """What decides about exchanges of an API: nothing, where the selection leaves none of them out."""
        if api_key not in _REDUCED.get(self.kind, (api_key,)):
            return "all"
        return "sampled" if self.kind == "sampled fetches" else self.kind


#: All exchanges.
ALL: Final = Selection("all")
#: Those whose response tells the client of a quota that it exceeded.
THROTTLED: Final = Selection("throttled")
#: No Produce outside a transaction, and no Fetch of what is not committed.
TRANSACTIONAL: Final = Selection("transactional")
#: One Produce or Fetch of a connection in a tenth of a second; of connections that are not remembered, all of them.
SAMPLED: Final = Selection("sampled")
#: Those Fetches, and every Produce.
SAMPLED_FETCHES: Final = Selection("sampled fetches")
#: The first Produce requests and one in so many of those that follow; see ``kwiresniff.analysis.doctor.rule``.
THINNED: Final = Selection("thinned")


def waited(least_ns: int) -> Selection:
    """Exchanges that waited so long for their response, a second or more."""
    return Selection("waited", least_ns)


def transferred(least_ns: int) -> Selection:
    """Exchanges whose response took so long from its first to its last byte, a second or more."""
    return Selection("transferred", least_ns)


def fetches_before(version: int) -> Selection:
    """Fetches of an older version."""
    return Selection("old fetches", version)
