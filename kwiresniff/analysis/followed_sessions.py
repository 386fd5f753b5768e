"""Fetch sessions of which an analysis knows something, so that a fetch costs what has changed since the one before.

The session of a fetch of a hundred bytes may have a thousand topics. An analysis looks at each of them when the session
is met and when it changes, and keeps the result here.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

from kwiresniff.model import SessionMembers

#: Topics or partition numbers of all sessions that are followed; the least recently used are dropped first. It is more
#: than ``session.fetch_sessions.MAX_SESSION_BYTES`` has room for, so a session that goes on is not dropped.
MAX_FOLLOWED = 131_072
#: Members that a session counts for beside its own.
_OF_SESSION: Final = 8


#: Topics, or partitions, of a fetch session that are counted as one.
MANY: Final = 16


class SessionKeys:
    """The values that a fetch has of one dimension by its session: ``members``, with the names that ``name_of`` gives.

    ``key`` stands for the session; ``besides`` are the values that the fetch has by its own body and its answer's.
    """

    __slots__ = ("besides", "key", "members", "name_of")

    def __init__(
        self, key: Hashable, members: SessionMembers, name_of: Callable[[Any], str], besides: Iterable[str]
    ) -> None:
        self.key = key
        self.members = members
        self.name_of = name_of
        self.besides = besides


class Followed:
    """One session: ``state`` is derived from the members ``seen``."""

    __slots__ = ("key", "seen", "state", "weight")

    def __init__(self, key: Any) -> None:
        self.key = key
        self.seen: SessionMembers | None = None
        self.state: Any = None
        self.weight = 0

    def changes(self, members: SessionMembers) -> list[tuple[Any, bool]]:
        """The members added (true) and removed (false) since the last call."""
        seen = self.seen
        if seen is members:
            return []
        self.seen = members
        return members.since(seen)


class FollowedSessions:
    """The sessions that an analysis follows, by keys of its own."""

    def __init__(self) -> None:
        self.known: dict[Any, Followed] = {}
        self._weight = 0

    def of(self, key: Any) -> Followed:
        """The session with a key; a new one has no ``state``."""
        found = self.known.pop(key, None)
        if found is None:
            found = Followed(key)
        self.known[key] = found
        return found

    def weigh(self, followed: Followed, more: int = 0) -> list[Followed]:
        """Counts the members of a session that is new or has changed, and ``more`` that is known of it; drops others to
        make room, and returns these.
        """
        weight = _OF_SESSION + more + (0 if followed.seen is None else followed.seen.count)
        self._weight += weight - followed.weight
        followed.weight = weight
        dropped: list[Followed] = []
        while self._weight > MAX_FOLLOWED and len(self.known) > 1:
            oldest = self.known.pop(next(iter(self.known)))
            self._weight -= oldest.weight
            dropped.append(oldest)
        return dropped
