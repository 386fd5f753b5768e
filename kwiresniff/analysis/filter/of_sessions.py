"""Tests of fetch sessions, which many fetches share: each session is tested when it has changed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwiresniff.analysis.followed_sessions import FollowedSessions
from kwiresniff.model import Exchange, FetchedTopics, SessionMembers, TopicNames

#: Topics of which the verdict is remembered, each in one filter.
MAX_TOPICS = 4096
#: Characters of such a topic; Kafka's have up to 249.
MAX_TOPIC_CHARS = 255

Test = Callable[[Any], bool]


class _Verdicts(dict[str, bool]):
    """Whether topics, by name or id, pass a test."""

    def __init__(self, test: Test, topic_name: TopicNames | None) -> None:
        super().__init__()
        self._test = test
        self._topic_name = topic_name

    def __missing__(self, topic: str) -> bool:
        name = (self._topic_name(topic) if self._topic_name is not None else None) or topic
        verdict = self._test(name)
        if len(topic) <= MAX_TOPIC_CHARS:
            if len(self) >= MAX_TOPICS:
                self.clear()
            self[topic] = verdict
        return verdict


class SessionTest:
    """Whether any topic of the session that an exchange belongs to passes a test, by its name where that is known."""

    def __init__(self, test: Test, topic_name: TopicNames | None, names_known: Callable[[], int]) -> None:
        self._verdicts = _Verdicts(test, topic_name)
        self._names_known = names_known
        self._seen_known = 0
        self._sessions = FollowedSessions()

    def __call__(self, exchange: Exchange) -> bool:
        fetched = exchange.fetched
        if fetched is None:
            return False
        known = self._names_known()
        if known != self._seen_known:
            self._seen_known = known
            self._sessions = FollowedSessions()
            self._verdicts.clear()
        return _any_passes(self._sessions, fetched, fetched.names, self._verdicts.__getitem__)


class SessionPartitionTest:
    """Whether the number of any partition of the session that an exchange belongs to passes a test."""

    def __init__(self, test: Test) -> None:
        self._test = test
        self._sessions = FollowedSessions()

    def __call__(self, exchange: Exchange) -> bool:
        fetched = exchange.fetched
        return fetched is not None and _any_passes(self._sessions, fetched, fetched.numbers, self._test)


def _any_passes(sessions: FollowedSessions, fetched: FetchedTopics, members: SessionMembers, test: Test) -> bool:
    """Whether a member of a session passes: ``state`` is how many do."""
    followed = sessions.of(fetched.session)
    if followed.seen is not members:
        passed = followed.state or 0
        for value, added in followed.changes(members):
            if test(value):
                passed += 1 if added else -1
        followed.state = passed
        sessions.weigh(followed)
    return bool(followed.state)
