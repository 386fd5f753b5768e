"""Selections: which exchanges of its APIs a rule is given.

Few rules learn anything from every one. Those about waits, transfers and quotas are given the exchanges that show one;
and of Produce and Fetch, which are most of all traffic, a rule may do with a part, while it is given all exchanges of
its other APIs.
"""

from __future__ import annotations

from enum import Enum

from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.light_typing import Final, NamedTuple


class Kind(Enum):
    """What decides whether an exchange is selected."""

    ALL = "nothing"
    WAITED = "the time from the request to the response"
    TRANSFERRED = "the time from the first to the last byte of the response"
    THROTTLED = "throttle_time_ms of the response"
    TRANSACTIONAL = "the transactional id of a Produce, the isolation level of a Fetch"
    SAMPLED = "the time since the last Produce or Fetch of the connection that was selected"
    THINNED = "the number of Produce requests so far"
    OLD_FETCHES = "the version of a Fetch"


#: The APIs of which a kind leaves exchanges out, where it is not any.
_REDUCED: Final = {
    Kind.TRANSACTIONAL: frozenset({PRODUCE, FETCH}),
    Kind.SAMPLED: frozenset({PRODUCE, FETCH}),
    Kind.THINNED: frozenset({PRODUCE}),
    Kind.OLD_FETCHES: frozenset({FETCH}),
}


class Selection(NamedTuple):
    """The exchanges that a rule is given; those of waits, transfers and old fetches have a ``limit``."""

    kind: Kind
    limit: int = 0

    def kind_for(self, api_key: int) -> Kind:
        """What decides about exchanges of an API: nothing, where the selection leaves none of them out."""
        return self.kind if api_key in _REDUCED.get(self.kind, (api_key,)) else Kind.ALL


#: All exchanges.
ALL: Final = Selection(Kind.ALL)
#: Those whose response tells the client of a quota that it exceeded.
THROTTLED: Final = Selection(Kind.THROTTLED)
#: No Produce outside a transaction, and no Fetch of what is not committed.
TRANSACTIONAL: Final = Selection(Kind.TRANSACTIONAL)
#: One Produce or Fetch of a connection in a tenth of a second; of connections that are not remembered, all of them.
SAMPLED: Final = Selection(Kind.SAMPLED)
#: The first Produce requests and one in so many of those that follow; see ``kwiresniff.analysis.doctor.rule``.
THINNED: Final = Selection(Kind.THINNED)


def waited(least_ns: int) -> Selection:
    """Exchanges that waited so long for their response, a second or more."""
    return Selection(Kind.WAITED, least_ns)


def transferred(least_ns: int) -> Selection:
    """Exchanges whose response took so long from its first to its last byte, a second or more."""
    return Selection(Kind.TRANSFERRED, least_ns)


def fetches_before(version: int) -> Selection:
    """Fetches of an older version."""
    return Selection(Kind.OLD_FETCHES, version)
