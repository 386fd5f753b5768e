"""Selections: which exchanges of its APIs a rule is given.

Few rules learn anything from every one. Those about waits, transfers and quotas are given the exchanges that show one,
those about transactions and old versions the Produce and Fetch requests that are meant, with all exchanges of their
other APIs.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

from kwiresniff.base.api_keys import FETCH, PRODUCE

#: What decides whether an exchange is selected: nothing; the time from the request to the response; the time from the
#: first to the last byte of the request or response; ``throttle_time_ms`` of the response; the transactional id of a
#: Produce, the isolation level of a Fetch; the version of a Fetch.
Kind: TypeAlias = Literal["all", "waited", "transferred", "throttled", "transactional", "old fetches"]

#: The APIs of which a kind leaves exchanges out, where it is not any.
_REDUCED: Final = {
    "transactional": frozenset({PRODUCE, FETCH}),
    "old fetches": frozenset({FETCH}),
}


class Selection(NamedTuple):
    """The exchanges that a rule is given; those of waits, transfers and old fetches have a ``limit``."""

    kind: Kind
    limit: int = 0

    def kind_for(self, api_key: int) -> Kind:
        """What decides about exchanges of an API: nothing, where the selection leaves none of them out."""
        return self.kind if api_key in _REDUCED.get(self.kind, (api_key,)) else "all"


#: All exchanges.
ALL: Final = Selection("all")
#: Those whose response tells the client of a quota that it exceeded.
THROTTLED: Final = Selection("throttled")
#: No Produce outside a transaction, and no Fetch of what is not committed.
TRANSACTIONAL: Final = Selection("transactional")


def waited(least_ns: int) -> Selection:
    """Exchanges that waited so long for their response, a second or more."""
    return Selection("waited", least_ns)


def transferred(least_ns: int) -> Selection:
    """Exchanges whose request or response took so long from its first to its last byte, a second or more."""
    return Selection("transferred", least_ns)


def fetches_before(version: int) -> Selection:
    """Fetches of an older version."""
    return Selection("old fetches", version)
