"""Names in an exchange: topics, partitions, groups, transactional ids.

Most messages have digests with their names; decoded bodies are walked (``kwiresniff.analysis.body_entities``).
"""

from __future__ import annotations

from typing import Final, final

from kwiresniff.analysis.body_entities import message_names, partitions_of
from kwiresniff.base.api_keys import API_VERSIONS
from kwiresniff.model import Exchange, FetchedTopics, Message, TopicNames

#: Partition indexes are INT32; other numbers may stand in fields of the same name.
LEAST_INDEX: Final = -(1 << 31)
MOST_INDEX: Final = (1 << 31) - 1
#: Topics, and partition numbers, that an exchange lists because of its fetch session alone. An empty fetch of a hundred
#: bytes may belong to a session of a thousand topics, and each that is listed is a value in one table and may be a row
#: in another one. Those that the fetch or its response names are listed however many they are.
MAX_OF_SESSION: Final = 64
#: Characters of these topics: a name may have 32 KB.
MAX_SESSION_CHARS: Final = 64 * 255


@final
class Entities:
    """The names in one exchange after another: each in order, once."""

    def __init__(self, topic_name: TopicNames) -> None:
        self._topic_name = topic_name
        self.topics: list[str] = []
        self.partitions: list[int] = []
        self.groups: list[str] = []
        self.transactional_ids: list[str] = []
        #: Exchanges of whose sessions some topics or partitions are not listed.
        self.cut = 0

    def find(self, exchange: Exchange) -> None:
        """Fills the lists with the names in ``exchange``."""
        self.topics, self.partitions, self.groups, self.transactional_ids = [], [], [], []
        for message in (exchange.request, exchange.response):
            if message is not None:
                self._message(exchange, message)
        self.topics += exchange.topics or ()
        if exchange.fetched is not None:
            self._session(exchange.fetched)
        self.topics = list(dict.fromkeys(self.topics))
        self.partitions = list(dict.fromkeys(self.partitions))
        self.groups = list(dict.fromkeys(self.groups))
        self.transactional_ids = list(dict.fromkeys(self.transactional_ids))

    def _session(self, fetched: FetchedTopics) -> None:
        """Adds the first topics and partitions of a session."""
        topic_name = self._topic_name
        names, numbers = fetched.topics, fetched.partitions
        is_cut = len(names) > MAX_OF_SESSION or len(numbers) > MAX_OF_SESSION
        chars = 0
        for name in names[:MAX_OF_SESSION]:
            topic = topic_name(name) or name
            chars += len(topic)
            if chars > MAX_SESSION_CHARS:
                is_cut = True
                break
            self.topics.append(topic)
        self.partitions += [index for index in numbers[:MAX_OF_SESSION] if LEAST_INDEX <= index <= MOST_INDEX]
        self.cut += is_cut

    def _message(self, exchange: Exchange, message: Message) -> None:
        digest = message.digest
        # The first of every connection, with sixty APIs in it and no names.
        if digest is None and exchange.api_key == API_VERSIONS:
            return
        names = message_names(message, self._topic_name)
        if digest is not None or not exchange.topics:
            self.topics += names.topics
        if digest is None:
            self.partitions += [one for one in partitions_of(message.body) if LEAST_INDEX <= one <= MOST_INDEX]
        else:
            for topic in digest.parts or ():
                self.partitions += [partition.index for partition in topic.partitions]
            self.partitions += digest.partitions or ()
        self.groups += names.groups
        self.transactional_ids += names.transactional_ids
