"""Names in an exchange: topics, partitions, groups, transactional ids.

Most messages have digests with their names; decoded bodies are walked (``kwiresniff.analysis.body_entities``).
"""

from __future__ import annotations

from typing import Final, final

from kwiresniff.analysis.body_entities import groups_of, partitions_of, session_topics, topics_of, transactional_ids_of
from kwiresniff.digest import Digest
from kwiresniff.model import Body, Exchange, Message, TopicNames

#: Partition indexes are INT32; other numbers may stand in fields of the same name.
LEAST_INDEX: Final = -(1 << 31)
MOST_INDEX: Final = (1 << 31) - 1


@final
class Entities:
    """The names in one exchange after another: each in order, once."""

    def __init__(self, topic_name: TopicNames) -> None:
        self._topic_name = topic_name
        self.topics: list[str] = []
        self.partitions: list[int] = []
        self.groups: list[str] = []
        self.transactional_ids: list[str] = []

    def find(self, exchange: Exchange) -> None:
        """Fills the lists with the names in ``exchange``."""
        self.topics = []
        self.partitions = []
        if self.groups:
            self.groups = []
        if self.transactional_ids:
            self.transactional_ids = []
        request, response = exchange.request, exchange.response
        if request is not None:
            self._message(exchange, request)
        if response is not None:
            self._message(exchange, response)
        if exchange.topics:
            self.topics += exchange.topics
        fetched = exchange.fetched
        if fetched is not None:
            self.topics += session_topics(exchange, self._topic_name)
            self.partitions += [number for number in fetched.partitions if LEAST_INDEX <= number <= MOST_INDEX]
        self.topics = once(self.topics)
        partitions = self.partitions
        if len(partitions) > 1:
            if len(partitions) == 2 and partitions[0] == partitions[1]:
                del partitions[1]
            else:
                self.partitions = list(dict.fromkeys(partitions))
        if len(self.groups) > 1:
            self.groups = once(self.groups)
        if len(self.transactional_ids) > 1:
            self.transactional_ids = once(self.transactional_ids)

    def _message(self, exchange: Exchange, message: Message) -> None:
        digest = message.digest
        if digest is not None:
            self._digest(digest)
            return
        body = message.body
        if body is not None:
            self._body(exchange, body)

    def _digest(self, digest: Digest) -> None:
        if digest.topics is not None:
            self.topics += digest.topics
        if digest.topic_ids is not None:
            for topic_id in digest.topic_ids:
                self.topics.append(self._topic_name(topic_id) or topic_id)
        if digest.parts is not None:
            for topic in digest.parts:
                for partition in topic.partitions:
                    self.partitions.append(partition.index)
        if digest.partitions is not None:
            self.partitions += digest.partitions
        if digest.groups is not None:
            self.groups += digest.groups
        if digest.transactional_ids is not None:
            self.transactional_ids += digest.transactional_ids

    def _body(self, exchange: Exchange, body: Body) -> None:
        if not exchange.topics:
            self.topics += topics_of(body, self._topic_name)
        self.partitions += [number for number in partitions_of(body) if LEAST_INDEX <= number <= MOST_INDEX]
        self.groups += groups_of(body)
        self.transactional_ids += transactional_ids_of(body)


def once(names: list[str]) -> list[str]:
    """Each name once, in order of first appearance."""
    if len(names) == 2 and names[0] == names[1]:  # a request and its response
        return names[:1]
    return names if len(names) < 2 else list(dict.fromkeys(names))
