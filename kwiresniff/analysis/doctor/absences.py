"""Times at which a server could not be reached, from attempts to connect that failed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kwiresniff.model import ConnectionAttempt

#: Attempts so far apart are episodes of their own; so many of a host and a server are kept apart.
PAUSE_NS = 5_000_000_000
MAX_EPISODES = 20


class Failures:
    """Failed attempts of one host to connect to a server, each soon after the one before."""

    __slots__ = ("first_ns", "last_ns", "places", "refused", "unanswered")

    def __init__(self, first_ns: int) -> None:
        self.refused = 0
        self.unanswered = 0
        self.first_ns = first_ns
        self.last_ns = 0
        self.places: list[tuple[int, int]] = []

    def is_near(self, attempt: ConnectionAttempt) -> bool:
        """Whether an attempt follows the others soon, or precedes them."""
        return self.first_ns - PAUSE_NS <= attempt.first_ns <= self.last_ns + PAUSE_NS


def episode_of(attempt: ConnectionAttempt, episodes: list[Failures]) -> Failures:
    """The failures that an attempt is one of; new ones are added, up to ``MAX_EPISODES``."""
    for failures in episodes:
        if failures.is_near(attempt):
            return failures
    if len(episodes) < MAX_EPISODES:
        episodes.append(Failures(attempt.first_ns))
    return episodes[-1]


def absences(
    attempts: Iterable[tuple[str, Failures]], served: Iterable[tuple[int, int]]
) -> Iterator[list[tuple[str, Failures]]]:
    """Failures with their hosts, together where no connection in ``served`` (begin and end) lies between them."""
    absence: list[tuple[str, Failures]] = []
    coming, over_ns, served_ns = sorted(served, reverse=True), 0, 0
    for host, failures in sorted(attempts, key=lambda one: one[1].first_ns):
        while coming and coming[-1][0] < failures.first_ns:
            served_ns = max(served_ns, coming.pop()[1])
        if absence and served_ns > over_ns:
            yield absence
            absence = []
        absence.append((host, failures))
        over_ns = max(over_ns, failures.last_ns)
    if absence:
        yield absence
