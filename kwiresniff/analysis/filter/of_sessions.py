"""What a filter asks of fetch sessions, which many fetches share: each session is tested when it has changed."""

from __future__ import annotations

from collections.abc import Callable

from kwiresniff.base.light_typing import Any
from kwiresniff.model import Exchange, FetchedTopics, TopicNames

#: Connections of whose sessions the verdict is remembered, and topics of which it is, each in one filter.
MAX_SESSIONS = 64
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
        # By connection: the names of a session as its fetches share them, how many were tested, and how many passed.
        self._passed: dict[int, tuple[list[str], int, int]] = {}

    def __call__(self, exchange: Exchange) -> bool:
        fetched = exchange.fetched
        if fetched is None:
            return False
        known = self._names_known()
        if known != self._seen_known:
            self._seen_known = known
            self._passed.clear()
            self._verdicts.clear()
        names, count, passed = self._passed.get(exchange.connection.id, ([], 0, 0))
        if names is not fetched.names or count != fetched.topic_count:
            gone, new = fetched.changes_since(names, count)
            if fetched.topic_count < count and names is fetched.names:  # what it had before some were added
                return any(map(self._verdicts.__getitem__, fetched.topics))
            passed += sum(map(self._verdicts.__getitem__, new)) - sum(map(self._verdicts.__getitem__, gone))
            if len(self._passed) >= MAX_SESSIONS:
                self._passed.clear()
            self._passed[exchange.connection.id] = fetched.names, fetched.topic_count, passed
        return passed > 0


class SessionPartitionTest:
    """Whether the number of any partition of the session that an exchange belongs to passes a test."""

    def __init__(self, test: Test) -> None:
        self._test = test
        self._known: dict[int, tuple[FetchedTopics, bool]] = {}

    def __call__(self, exchange: Exchange) -> bool:
        fetched = exchange.fetched
        if fetched is None:
            return False
        known = self._known.get(exchange.connection.id)
        if known is not None and known[0] is fetched:
            return known[1]
        verdict = any(map(self._test, fetched.partitions))
        if len(self._known) >= MAX_SESSIONS:
            self._known.clear()
        self._known[exchange.connection.id] = fetched, verdict
        return verdict
