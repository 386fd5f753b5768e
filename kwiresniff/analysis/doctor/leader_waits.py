"""Waits of clients that were sent away from the old leader of a partition, until the new one serves them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice

from kwiresniff.analysis.doctor.bodies import request_body
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.leader_table import Partition
from kwiresniff.analysis.doctor.troubles.quorum import LEADER_CODES
from kwiresniff.analysis.followed_sessions import Followed, FollowedSessions
from kwiresniff.analysis.late_names import ID_CHARS
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.model import Exchange, FetchedTopics

#: Waits of clients for the new leaders of partitions.
MAX_WAITING = 5_000
#: A client that was served for so long and is sent away again waits anew, for the leader after the next change.
SERVED_NS = 1_000_000_000
#: Waits that the list of those begun has room for before it is built again from those that are unserved.
_LEAST_LOG = 16
#: Topic ids of a session whose names are looked up again at each of its fetches.
_ASKED_AGAIN = 16


@dataclass(slots=True, eq=False)
class Wait:
    """A client that was sent away by ``broker``, and when it was served; -1 while it is not."""

    case: Case
    broker: str
    recovered_ns: int = -1
    longest_ns: int = 0
    stale_errors: int = 0


@dataclass(slots=True, eq=False)
class _Session:
    """What a fetch session is about: topics, each with how many members have its name, and partition numbers.

    ``names`` are the names of its members, ``unnamed`` those of them that are ids without a name so far. ``begun`` is
    the list of waits of its client that were compared with it, up to ``compared``.
    """

    topics: dict[str, int] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    unnamed: dict[str, None] = field(default_factory=dict)
    numbers: dict[int, bool] = field(default_factory=dict)
    begun: list[Partition] = field(default_factory=list)
    compared: int = 0

    def add(self, member: str, name: str) -> None:
        """Adds a topic under its name."""
        self.names[member] = name
        self.topics[name] = self.topics.get(name, 0) + 1

    def remove(self, member: str) -> None:
        """Removes a topic that was added."""
        name = self.names.pop(member)
        self.topics[name] -= 1
        if not self.topics[name]:
            del self.topics[name]
        self.unnamed.pop(member, None)


class LeaderWaits:
    """All waits, each with its client and partition. ``unserved`` counts those that have not ended."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.waits: list[tuple[str, Partition, Wait]] = []
        self._newest: dict[tuple[str, Partition], Wait] = {}
        self.unserved = 0
        #: Partitions of unserved waits: by client; and by client, cluster and topic or partition number.
        self._waiting: dict[str, dict[Partition, None]] = {}
        self._waiting_for: dict[tuple[str, str, str | int], dict[Partition, None]] = {}
        #: Those of each client in the order in which they began, for its sessions to be compared with the new ones.
        self._begun: dict[str, list[Partition]] = {}
        self._sessions = FollowedSessions()
        self._session_numbers = FollowedSessions()

    def begin(self, client: str, partition: Partition, exchange: Exchange, leader: int | None) -> bool:
        """Notes that a client was sent away in ``exchange``; False where there is no room for it.

        ``leader`` is the node that leads the partition, as far as that is known.
        """
        wait = self._newest.get((client, partition))
        broker = exchange.connection.broker
        if wait is None or 0 <= wait.recovered_ns < place_of(exchange)[1] - SERVED_NS:
            size = 20 * ENTRY_BYTES + text_bytes(client, partition[1])
            if len(self.waits) >= MAX_WAITING or not self.context.budget.admit(size):
                return False
            wait = self._newest[client, partition] = Wait(self.context.case(), broker)
            self.waits.append((client, partition, wait))
            self._wait_for(client, partition)
        elif wait.recovered_ns >= 0:
            wait.recovered_ns = -1
            self._wait_for(client, partition)
        wait.case.add(*place_of(exchange))
        wait.case.note("apis", [exchange.api])
        wait.case.note("errors", {name: None for _, _, name, _ in exchange.errors if name in LEADER_CODES})
        node = self.context.cluster.node_at(broker)
        wait.stale_errors += leader is not None and node is not None and leader != node
        return True

    def end(self, exchange: Exchange) -> None:
        """Ends the waits of a client for the partitions of a Produce or Fetch that succeeds."""
        body = request_body(exchange)
        if not body:
            return
        cluster, client = self.context.cluster.of(exchange.connection.broker), client_of(exchange)
        field = "topic_data" if exchange.api_key == PRODUCE else "topics"
        for topic in body.get(field) or ():
            name = clipped(self.context.topic_of(topic))
            for one in topic.get("partition_data") or topic.get("partitions") or ():
                partition = one.get("index", one.get("partition", -1))
                self._end(client, (cluster, name, partition), exchange)
        if exchange.fetched is not None:
            self._end_of_session(client, cluster, exchange, exchange.fetched)

    def _wait_for(self, client: str, partition: Partition) -> None:
        """Counts a wait that begins, or goes on, as unserved."""
        waiting = self._waiting.setdefault(client, {})
        if partition in waiting:
            return
        self.unserved += 1
        waiting[partition] = None
        cluster, topic, number = partition
        for value in (topic, number):
            self._waiting_for.setdefault((client, cluster, value), {})[partition] = None
        begun = self._begun.setdefault(client, [])
        if len(begun) > 2 * len(waiting) + _LEAST_LOG:
            self._begun[client] = list(waiting)
        else:
            begun.append(partition)

    def _end_of_session(self, client: str, cluster: str, exchange: Exchange, fetched: FetchedTopics) -> None:
        """Ends the waits of a client for partitions of its fetch session.

        The session may have thousands of partitions, and the client thousands of waits: compared are those topics and
        partition numbers that have come to the session, and those waits that have begun, since its fetch before.
        """
        begun = self._begun.get(client)
        if begun is None:
            return
        topics = self._sessions.of((client, fetched.session))
        numbers = self._session_numbers.of((client, fetched.session))
        session: _Session = topics.state or _Session()
        if numbers.state is not session:  # a new one, or one of whose parts was dropped
            session, topics.seen, numbers.seen = _Session(), None, None
            topics.state = numbers.state = session
        compared: list[Partition] = []
        for value in self._changed(topics, numbers, session, fetched):
            waiting = self._waiting_for.get((client, cluster, value))
            if waiting:
                compared += _with_either(waiting, cluster, value, session)
        if session.begun is not begun:
            session.begun, session.compared = begun, 0
        compared += begun[session.compared :]
        session.compared = len(begun)
        for partition in compared:
            if partition[0] == cluster and partition[1] in session.topics and partition[2] in session.numbers:
                self._end(client, partition, exchange)

    def _changed(
        self, topics: Followed, numbers: Followed, session: _Session, fetched: FetchedTopics
    ) -> list[str | int]:
        """The topics and partition numbers that have come to a session, which has them, and not those that went."""
        came: list[str | int] = []
        if topics.seen is not fetched.names:
            for member, added in topics.changes(fetched.names):
                if not added:
                    session.remove(member)
                    continue
                known = self.context.topic_name(member)
                session.add(member, clipped(known or member))
                came.append(session.names[member])
                if known is None and len(member) == ID_CHARS:
                    session.unnamed[member] = None
            self._sessions.weigh(topics)
        if numbers.seen is not fetched.numbers:
            for number, added in numbers.changes(fetched.numbers):
                if added:
                    session.numbers[number] = True
                    came.append(number)
                else:
                    session.numbers.pop(number, None)
            self._session_numbers.weigh(numbers)
        for member in list(islice(session.unnamed, _ASKED_AGAIN)):
            known = self.context.topic_name(member)
            session.remove(member)
            session.add(member, clipped(known or member))
            if known is None:
                session.unnamed[member] = None  # behind the others
            else:
                came.append(session.names[member])
        return came

    def _end(self, client: str, partition: Partition, exchange: Exchange) -> None:
        wait = self._newest.get((client, partition))
        if wait is not None and wait.recovered_ns < 0:
            wait.recovered_ns = place_of(exchange)[1]
            wait.longest_ns = max(wait.longest_ns, wait.recovered_ns - wait.case.first_ns)
            self.unserved -= 1
            self._waiting[client].pop(partition, None)
            cluster, topic, number = partition
            for value in (topic, number):
                waiting = self._waiting_for[client, cluster, value]
                del waiting[partition]
                if not waiting:
                    del self._waiting_for[client, cluster, value]


def _with_either(waiting: dict[Partition, None], cluster: str, value: str | int, session: _Session) -> list[Partition]:
    """Those of the waits for a topic or partition number that a session may serve, found from the smaller side."""
    has: dict[str, int] | dict[int, bool] = session.numbers if isinstance(value, str) else session.topics
    if len(waiting) <= len(has):
        return list(waiting)
    found = [(cluster, value, one) if isinstance(value, str) else (cluster, one, value) for one in has]
    return [one for one in found if one in waiting]
