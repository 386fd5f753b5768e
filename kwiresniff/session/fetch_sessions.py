"""Fetch sessions (KIP-227) and share sessions (KIP-932): which topics an incremental fetch is about although it does
not name them.

The first fetch of a session names all its partitions; those that follow name what is new, what has changed and what is
forgotten, most of them nothing, and their answers name only what has records. A broker knows a fetch session by its id,
whatever connection it is used on, and a share session by group and member. A session that began before the capture is
known as far as its fetches and answers have named something.
"""

from __future__ import annotations

from functools import lru_cache
from sys import getsizeof
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

from kwiresniff import codec
from kwiresniff.base.api_keys import FETCH
from kwiresniff.base.fastint import i32
from kwiresniff.base.field_values import field_text
from kwiresniff.base.known_ids import ZERO_UUID
from kwiresniff.digest import Digest, TopicDigest
from kwiresniff.model import Body, Direction, Exchange, FetchedTopics, Message, SessionIdentity, SessionMembers
from kwiresniff.session.apis import read_version
from kwiresniff.session.peek import peek_body

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.codec.digests import DigestReader

#: The first version of Fetch that has sessions, and the first whose body does not begin with replica_id.
SESSIONS_SINCE: Final = 7
WITHOUT_REPLICA_ID_SINCE: Final = 15
#: The first version of Fetch with compact arrays (KIP-482).
COMPACT_SINCE: Final = 12
#: Bytes of memory of all sessions. A partition takes some 130, so there is room for 250,000 of them.
MAX_SESSION_BYTES = 32 << 20
#: Topics and partitions remembered of one session: a fetch of a hundred bytes may stand for all of them.
MAX_SESSION_TOPICS = 1_000
MAX_SESSION_PARTITIONS = 10_000

#: session_epoch of a fetch that begins a session, and of one that ends it or has none.
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1

_ENTRY_BYTES: Final = 130
#: Changes that a log of a session has room for before it may begin again.
_LEAST_LOG: Final = 16


#: Broker and session id, or broker, group and member.
Key: TypeAlias = tuple[str, int] | tuple[str, str, str]


class MemberLog:
    """The log of members that came to and left a session, topics or partition numbers."""

    STATE: ClassVar[tuple[str, ...]] = ("added", "values")
    __slots__ = STATE

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.added: list[bool] = []

    def put(self, value: str | int, added: bool) -> None:
        """Notes one change."""
        self.values.append(value)
        self.added.append(added)

    def members(self, present: dict[Any, Any]) -> SessionMembers:
        """The members now. The log begins again where it is more than twice as long as they are many."""
        if len(self.values) > _LEAST_LOG + 2 * len(present):
            self.values = list(present)
            self.added = [True] * len(present)
        return SessionMembers(self.values, self.added, len(present))


class FetchSession:
    """A fetch session: topics with partitions, ``is_whole`` if its beginning was seen. ``fetched`` is what exchanges
    get, None after a change, made of the logs ``names`` and ``numbers``; ``known_numbers`` counts topics by partition
    number; ``size_bytes`` is its memory.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "fetched", "identity", "is_whole", "known_numbers", "names", "numbers", "partitions", "size_bytes", "topics",
    )  # fmt: skip
    __slots__ = STATE

    def __init__(self, is_whole: bool) -> None:
        self.is_whole = is_whole
        self.identity = SessionIdentity()
        self.topics: dict[str, dict[int, bool]] = {}
        self.partitions = 0  # of all of them
        self.names = MemberLog()
        self.numbers = MemberLog()
        self.known_numbers: dict[int, int] = {}
        self.fetched: FetchedTopics | None = None
        self.size_bytes = 4 * _ENTRY_BYTES

    def add(self, topics: list[Body]) -> None:
        """Adds the topics and partitions that the body of a fetch or of its response names."""
        for topic in topics:
            self._add(_name(topic), [_index(partition) for partition in topic.get("partitions") or ()])

    def add_parts(self, topics: list[TopicDigest]) -> None:
        """Adds the topics and partitions that a digest names."""
        for topic in topics:
            self._add(topic.name, [partition.index for partition in topic.partitions])

    def _add(self, name: str, indexes: list[int]) -> None:
        if not name:
            return
        known = self.topics.get(name)
        before = 0
        if known is None:
            if len(self.topics) >= MAX_SESSION_TOPICS:
                return
            known = self.topics[name] = {}
            self.names.put(name, True)
            self.fetched = None
        else:
            if not _adds(indexes, known):  # as most fetches do that name what they were answered before
                return
            before = _topic_bytes(name, known)
        for index in indexes:
            if index not in known and self.partitions < MAX_SESSION_PARTITIONS:
                known[index] = True
                self.partitions += 1
                topics_with_it = self.known_numbers.get(index, 0)
                self.known_numbers[index] = topics_with_it + 1
                if not topics_with_it:
                    self.numbers.put(index, True)
                    self.fetched = None
        self.size_bytes += _topic_bytes(name, known) - before

    def change(self, body: Body) -> None:
        """Applies the body of an incremental fetch."""
        self.forget(body.get("forgotten_topics_data") or [])
        self.add(body.get("topics") or [])

    def forget(self, topics: list[Body]) -> None:
        """Removes the partitions that a fetch forgets, and topics that have none left."""
        for topic in topics:
            name = _name(topic)
            known = self.topics.get(name)
            if known is None:
                continue
            before = _topic_bytes(name, known)
            for index in topic.get("partitions") or ():
                if known.pop(index, False):
                    self.partitions -= 1
                    self._forget_number(index)
            if known:
                self.size_bytes += _topic_bytes(name, known) - before
            else:
                self.size_bytes -= before
                del self.topics[name]
                self.names.put(name, False)
                self.fetched = None

    def _forget_number(self, index: int) -> None:
        self.known_numbers[index] -= 1
        if not self.known_numbers[index]:
            del self.known_numbers[index]
            self.numbers.put(index, False)
            self.fetched = None

    def content(self) -> FetchedTopics:
        """The topics and partitions that the session has now."""
        if self.fetched is None:
            names, numbers = self.names.members(self.topics), self.numbers.members(self.known_numbers)
            self.fetched = FetchedTopics(self.identity, names, numbers, self.is_whole)
        return self.fetched


class FetchSessions:
    """The sessions of all brokers, the least recently used evicted first when they take too much."""

    STATE: ClassVar[tuple[str, ...]] = ("held_bytes", "sessions")
    __slots__ = STATE

    def __init__(self) -> None:
        self.sessions: dict[Key, FetchSession] = {}
        self.held_bytes = 0

    def follow(self, exchange: Exchange) -> None:
        """Follows a fetch and its response, and sets ``exchange.fetched`` to what its session holds then."""
        request = exchange.request
        if request is None or request.frame is None:
            return
        if exchange.api_key == FETCH:
            if exchange.api_version >= SESSIONS_SINCE:
                self._fetch(exchange, request, request.frame)
        else:
            self._share(exchange, request)

    def _fetch(self, exchange: Exchange, request: Message, frame: bytes) -> None:
        at: i64 = session_place(exchange.api_version, request)
        if at + 9 > len(frame):
            return
        session_id: int = i32(frame, at)
        epoch: int = i32(frame, at + 4)
        broker = exchange.connection.broker
        if epoch == INITIAL_EPOCH or epoch == FINAL_EPOCH:  # noqa: SIM109 - two comparisons when compiled
            if session_id:
                if (session := self.sessions.get((broker, session_id))) is not None and epoch == FINAL_EPOCH:
                    exchange.fetched = session.content()
                self._end((broker, session_id))
            given = given_session(exchange)
            if epoch == INITIAL_EPOCH and given:
                self._begin((broker, given), _body(exchange, "request"))
            return
        key = (broker, session_id)
        session = self._use(key)
        before = session.size_bytes
        if not _says_nothing(frame, at + 8, exchange.api_version):
            _change(session, exchange)
        self._finish(exchange, session, before)
        if epoch > 0 and _has_failed(exchange):
            self._end(key)

    def _share(self, exchange: Exchange, request: Message) -> None:
        body = _body(exchange, "request")
        if body is None:
            return
        key = exchange.connection.broker, field_text(body.get("group_id")), field_text(body.get("member_id"))
        epoch = body.get("share_session_epoch", 0)
        if epoch == INITIAL_EPOCH:
            self._end(key)
            if exchange.response is not None and not _has_failed(exchange):
                self._begin(key, body)
            return
        session = self._use(key)
        before = session.size_bytes
        session.change(body)
        self._finish(exchange, session, before)
        if epoch == FINAL_EPOCH or _has_failed(exchange):
            self._end(key)

    def _begin(self, key: Key, body: Body | None) -> None:
        self._end(key)
        session = self.sessions[key] = FetchSession(is_whole=body is not None)
        if body is not None:
            session.add(body.get("topics") or [])
        self._charge(session.size_bytes)

    def _use(self, key: Key) -> FetchSession:
        """The session that goes on, behind all others: it is used last."""
        session = self.sessions.pop(key, None)
        if session is not None:
            self.sessions[key] = session
            return session
        session = self.sessions[key] = FetchSession(is_whole=False)
        self._charge(session.size_bytes)
        return session

    def _finish(self, exchange: Exchange, session: FetchSession, before: int) -> None:
        """Sets ``exchange.fetched`` when its fetch has been applied to its session of ``before`` bytes."""
        if not session.is_whole:
            self._learn(exchange, session)
        exchange.fetched = session.content()
        if session.size_bytes != before:
            self._charge(session.size_bytes - before)

    def _learn(self, exchange: Exchange, session: FetchSession) -> None:
        """Adds the topics that a response names to a session that began before the capture."""
        digest = _digest(exchange, "response") if exchange.api_key == FETCH else None
        if digest is not None:
            session.add_parts(digest.parts if digest.parts is not None else [])
        elif (answer := _body(exchange, "response")) is not None:
            session.add(answer.get("responses") or [])

    def _charge(self, size: int) -> None:
        self.held_bytes += size
        while self.held_bytes > MAX_SESSION_BYTES and self.sessions:
            self._end(next(iter(self.sessions)))

    def _end(self, key: Key) -> None:
        session = self.sessions.pop(key, None)
        if session is not None:
            self.held_bytes -= session.size_bytes


def _change(session: FetchSession, exchange: Exchange) -> None:
    """Applies what an incremental fetch adds and forgets."""
    parts = _named_parts(exchange)
    if parts is not None:
        session.add_parts(parts)
    elif (body := _body(exchange, "request")) is not None:
        session.change(body)


def _adds(indexes: list[int], known: dict[int, bool]) -> bool:
    """Whether there are partitions that are not known."""
    for index in indexes:  # noqa: SIM110 - compiled, a generator is dear
        if index not in known:
            return True
    return False


def _topic_bytes(name: str, partitions: dict[int, bool]) -> int:
    """The memory of a topic of a session."""
    return getsizeof(name) + getsizeof(partitions) + _ENTRY_BYTES * len(partitions)


def _body(exchange: Exchange, direction: Direction) -> Body | None:
    """The body of a message as it was decoded already where that was without any problem, else read for this."""
    message = exchange.request if direction == "request" else exchange.response
    if message is not None and not exchange.problems and not message.is_deferred and (body := message.body) is not None:
        return body
    return peek_body(exchange, direction)


def _name(topic: Body) -> str:
    """A topic's name, or its id where it is named by that."""
    name: Any = topic.get("topic")
    if not name:
        name = topic.get("topic_id")
    return field_text(name) if name != ZERO_UUID else ""


def _index(partition: Body | int) -> int:
    if isinstance(partition, int):
        return partition
    index: int = partition["partition"] if "partition" in partition else partition.get("partition_index", -1)
    return index


def _says_nothing(frame: bytes, at: int, version: int) -> bool:
    """Whether an incremental fetch adds, changes and forgets nothing, as most do."""
    if version >= COMPACT_SINCE:
        return frame[at : at + 2] == b"\x01\x01"
    return frame[at : at + 8] == bytes(8)


def session_place(version: int, request: Message) -> int:
    """The offset of session id and epoch in the frame of a Fetch request."""
    return request.body_offset + (13 if version >= WITHOUT_REPLICA_ID_SINCE else 17)


def given_session(exchange: Exchange) -> int:
    """The id that an answer gives a new session; 0 for none."""
    response = exchange.response
    if response is None or response.frame is None:
        return 0
    at = response.body_offset + 6
    return int.from_bytes(response.frame[at : at + 4], "big", signed=True)


def _has_failed(exchange: Exchange) -> bool:
    """Whether the broker refuses the fetch as a whole, for one because it does not know the session."""
    response = exchange.response
    if response is None or response.frame is None:
        return False
    at = response.body_offset + 4
    return response.frame[at : at + 2] not in (b"\x00\x00", b"")


@lru_cache(maxsize=1)
def _digests() -> DigestReader:
    return codec.digest_reader(lambda topic_id: False)


def _digest(exchange: Exchange, direction: Direction) -> Digest | None:
    """The digest of a message, which takes a tenth of decoding it; None where it has none."""
    message = exchange.request if direction == "request" else exchange.response
    if message is None or message.frame is None:
        return None
    if message.digest is not None:
        return message.digest
    digests = _digests()
    steps = digests.steps(exchange.api_key, read_version(exchange, direction), direction)
    return digests.digest(steps, message.frame, message.body_offset) if steps is not None else None


def _named_parts(exchange: Exchange) -> list[TopicDigest] | None:
    """The parts a fetch adds to or changes in its session; None without a digest, or with forgotten ones."""
    digest = _digest(exchange, "request")
    if digest is None or digest.parts is None:
        return None
    named = len(digest.topics if digest.topics is not None else ()) + len(
        digest.topic_ids if digest.topic_ids is not None else ()
    )
    return digest.parts if named == len(digest.parts) else None
