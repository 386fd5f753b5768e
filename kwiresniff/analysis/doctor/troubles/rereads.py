"""Consumers that go back to the same record again and again and never get past it.

A record that an application cannot process (a "poison pill") ends it or makes it seek back; either way it begins again
at the offset that it has committed. On the wire the same records come again, and no commit from behind them. Which of
the records that come again it is, the capture does not say: the first of them is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.commits import PartitionOfClient
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.analysis.topic_parts import message_parts, parts_of
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Body, Connection, Exchange, Message

#: Returns to one offset from which on it is no accident: a rebalance or a lost answer makes one or two.
MANY_RETURNS = 3
#: Who goes back after so long waited before it did.
LONG_NS: Final = 10_000_000_000
#: Partitions whose position is remembered, and clients.
MAX_READ = 5_000
MAX_CLIENTS = 5_000


class _Reader:
    """How far a client has read a partition, and where it went back to."""

    __slots__ = ("assignments", "case", "connection", "end", "ns", "returns", "target")

    def __init__(self) -> None:
        self.connection = 0  # that of the last answer; 0 when it has ended
        self.assignments = 0  # of its client, at the last answer
        self.end = 0  # the offset behind the last batch that it got
        self.ns = 0  # when that was
        self.target = -1
        self.returns = 0
        self.case: Case | None = None


class _Client:
    """The group of a client, and how often it asked where the group stands: each time that it is given partitions."""

    __slots__ = ("assignments", "group")

    def __init__(self) -> None:
        self.group = ""
        self.assignments = 0


class Rereads(Observer):
    """``read_again``: a consumer goes back to one offset of a partition 3 times or more, by itself or where its group
    stands, and nothing behind it is committed; ``read_later``: a consumer asks for nothing of a partition for 10 s or
    more, and then for records that it has been given. What it goes back to because of a rebalance does not count.

    Numbers of the first: ``group``, ``topic``, ``partitions`` and the ``offsets`` in them, ``returns`` of the partition
    with the most.
    """

    kinds: ClassVar[tuple[str, ...]] = ("read_again", "read_later")
    apis: ClassVar[frozenset[int] | None] = frozenset({FETCH, OFFSET_COMMIT, OFFSET_FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._readers: Subjects[PartitionOfClient, _Reader] = context.subjects(_Reader, 3, MAX_READ)
        self._on: dict[int, set[_Reader]] = {}  # each reader is in one of them
        self._clients: Subjects[str, _Client] = context.subjects(_Client, 2, MAX_CLIENTS)
        self._later = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """Looks at where a consumer begins, what it commits, and what it gets."""
        request, response = exchange.request, exchange.response
        if response is None or (exchange.api_key != FETCH and exchange.errors):
            return
        client = client_of(exchange)
        if exchange.api_key == OFFSET_FETCH:
            for group, body in groups_in(response.body or {}, request):
                known = self._clients.of(client)
                if known is not None:
                    known.group = known.group or clipped(group)
                    known.assignments += 1
                for key, offset in self._offsets(client, body):
                    committed = self.context.commits.of(key)
                    if committed is not None:
                        committed.offset = offset
        elif exchange.api_key == OFFSET_COMMIT:
            ns = place_of(exchange)[1]
            for key, offset in self._offsets(client, (request.body if request is not None else None) or {}):
                committed = self.context.commits.of(key)
                further = committed is None or offset > committed.offset
                if committed is not None:
                    committed.commit(offset, ns)
                reader = self._readers.get(key)
                if reader is not None and further and offset > reader.target:
                    reader.returns = 0
        else:
            self._fetch(client, exchange)

    def connection(self, connection: Connection) -> None:
        """One that has ended: whoever goes on reads on another."""
        for reader in self._on.pop(connection.id, ()):
            reader.connection = 0

    def _fetch(self, client: str, exchange: Exchange) -> None:
        asked: dict[tuple[str, int], int] | None = None
        for name, part in self.context.brought(exchange):
            first_offset = part.first_offset
            if first_offset < 0:
                continue
            key = client, name, part.index
            reader = self._readers.of(key)
            if reader is None:
                return
            if first_offset < reader.end:
                if asked is None:
                    asked = self._asked(exchange.request)
                self._back(reader, key, exchange, asked.get((name, part.index), first_offset))
            self._got(reader, client, exchange, part)

    def _back(self, reader: _Reader, key: PartitionOfClient, exchange: Exchange, target: int) -> None:
        """A consumer went back by itself, on its connection, or began anew where its group stands.

        One that was given the partition again goes back because of a rebalance. What another of the same name reads
        meanwhile says nothing.
        """
        if reader.connection:
            same = reader.connection == exchange.connection.id and reader.assignments == self._assignments(key[0])
        else:
            committed = self.context.commits.get(key)
            same = committed is not None and committed.offset == target
        if not same:
            return
        begun_ns = request_place(exchange)[1]
        if reader.connection and begun_ns - reader.ns >= LONG_NS:
            self._later.case(key[0]).add(*request_place(exchange), begun_ns - reader.ns)
        if target != reader.target or reader.case is None:
            reader.target, reader.returns, reader.case = target, 0, self.context.case()
        reader.returns += 1
        reader.case.add(*place_of(exchange))

    def _got(self, reader: _Reader, client: str, exchange: Exchange, part: PartitionDigest) -> None:
        connection = exchange.connection.id
        reader.assignments = self._assignments(client)
        if reader.connection != connection:
            self._on.get(reader.connection, set()).discard(reader)
            reader.connection = connection
            self._on.setdefault(connection, set()).add(reader)
        reader.end, reader.ns = part.end_offset, place_of(exchange)[1]

    def _asked(self, request: Message | None) -> dict[tuple[str, int], int]:
        """The offsets that a request asks for; one of a fetch session leaves out those that did not change."""
        return {
            (clipped(self.context.topic_in(topic)), part.index): part.offset
            for topic in message_parts(request)
            for part in topic.partitions
            if part.offset >= 0
        }

    def _offsets(self, client: str, body: Body) -> Iterator[tuple[PartitionOfClient, int]]:
        for topic in parts_of(body):
            name = clipped(self.context.topic_in(topic))
            for part in topic.partitions:
                if part.offset >= 0:
                    yield (client, name, part.index), part.offset

    def _assignments(self, client: str) -> int:
        known = self._clients.get(client)
        return known.assignments if known is not None else 0

    def observations(self) -> Iterator[Observation]:
        for client, _, case in self._later:
            yield observation_of("read_later", case, {f"client:{client}"})
        stuck: dict[tuple[str, str], dict[int, _Reader]] = {}
        for (client, topic, index), reader in self._readers.items():
            if reader.returns >= MANY_RETURNS:
                stuck.setdefault((client, topic), {})[index] = reader
        for (client, topic), readers in stuck.items():
            case = self.context.case()
            for reader in readers.values():
                if reader.case is not None:
                    case.merge(reader.case)
            case.count = max(reader.returns for reader in readers.values())
            known = self._clients.get(client)
            group = known.group if known is not None else ""
            lasted_ns = case.last_ns - case.first_ns
            yield observation_of(
                "read_again",
                case,
                {f"client:{client}", f"topic:{topic}", *([f"group:{group}"] if group else [])},
                {
                    "topic": topic,
                    "group": group or None,
                    "partitions": [f"{topic}-{index}" for index in sorted(readers)][:100],
                    "offsets": [reader.target for _, reader in sorted(readers.items())][:100],
                },
                Harm(seconds_down=lasted_ns / 1e9),
            )
