"""Consumers that go back to the same record again and again.

A record that an application cannot process (a "poison pill") ends it or makes it seek back to the committed offset. The
same records come again, and no commit from behind them; the first of them is named.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.bodies import request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.commits import PartitionOfClient
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.uncommitted_starts import groups_in
from kwiresniff.analysis.doctor.wording import duration, listed
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, OFFSET_FETCH
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Body, Connection, Exchange

#: A rebalance or a lost answer makes fewer returns to one offset.
MANY_RETURNS = 3
#: Partitions whose position is remembered, and clients.
MAX_READ = 5_000
MAX_CLIENTS = 5_000


#: Other findings of a client that begins again and again.
_SYMPTOMS: Final = ("connection_churn", "commit_storm", "metadata_storm", "consumer_lag")


class _Reader:
    """How far a client has read a partition (``end``), and the offset that it went back to (``target``).

    ``connection`` is that of the last answer, 0 once it has ended; ``assignments`` are those of the client by then.
    """

    __slots__ = ("assignments", "case", "connection", "end", "returns", "target")

    def __init__(self) -> None:
        self.connection = self.assignments = self.end = self.returns = 0
        self.target = -1
        self.case: Case | None = None


class _Client:
    """The group of a client, and how often it asked for the committed offsets: each time that it is assigned
    partitions."""

    __slots__ = ("assignments", "group")

    def __init__(self) -> None:
        self.group = ""
        self.assignments = 0


class Rereads(Observer):
    """``read_again``: a consumer goes back to one offset of a partition 3 times or more, by itself or to the committed
    offset, and nothing behind it is committed. What it reads again because of a rebalance does not count.

    Numbers: ``group``, ``topic``, ``partitions`` and the ``offsets`` in them.
    """

    kinds: ClassVar[tuple[str, ...]] = ("read_again",)
    apis: ClassVar[frozenset[int] | None] = frozenset({FETCH, OFFSET_COMMIT, OFFSET_FETCH})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._readers: Subjects[PartitionOfClient, _Reader] = context.subjects(_Reader, 3, MAX_READ)
        self._on: dict[int, set[_Reader]] = {}  # each reader is in one of them
        self._clients: Subjects[str, _Client] = context.subjects(_Client, 2, MAX_CLIENTS)

    def exchange(self, exchange: Exchange) -> None:
        if exchange.response is None or (exchange.api_key != FETCH and exchange.errors):
            return
        client = client_of(exchange)
        if exchange.api_key == OFFSET_FETCH:
            for group, body in groups_in(exchange):
                known = self._clients.of(client)
                if known is not None:
                    known.group = known.group or group
                    known.assignments += 1
                for key, offset in self._offsets(client, body):
                    committed = self.context.commits.of(key)
                    if committed is not None:
                        committed.offset = offset
        elif exchange.api_key == OFFSET_COMMIT:
            ns = place_of(exchange)[1]
            for key, offset in self._offsets(client, request_body(exchange)):
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
                if asked is None:  # a request of a fetch session leaves out the offsets that did not change
                    parts = self.context.parts(exchange.request)
                    asked = {(topic, each.index): each.offset for topic, each in parts if each.offset >= 0}
                self._back(reader, key, exchange, asked.get((name, part.index), first_offset))
            self._got(reader, client, exchange.connection.id, part)

    def _back(self, reader: _Reader, key: PartitionOfClient, exchange: Exchange, target: int) -> None:
        """Counts a return on the same connection with the same assignment, or to the committed offset."""
        if reader.connection:
            same = reader.connection == exchange.connection.id and reader.assignments == self._assignments(key[0])
        else:
            committed = self.context.commits.get(key)
            same = committed is not None and committed.offset == target
        if not same:
            return
        if target != reader.target or reader.case is None:
            reader.target, reader.returns, reader.case = target, 0, self.context.case()
        reader.returns += 1
        reader.case.add(*place_of(exchange))

    def _got(self, reader: _Reader, client: str, connection: int, part: PartitionDigest) -> None:
        reader.assignments = self._assignments(client)
        if reader.connection != connection:
            self._on.get(reader.connection, set()).discard(reader)
            reader.connection = connection
            self._on.setdefault(connection, set()).add(reader)
        reader.end = part.end_offset

    def _offsets(self, client: str, body: Body) -> Iterator[tuple[PartitionOfClient, int]]:
        for name, part in self.context.parts_in(body):
            if part.offset >= 0:
                yield (client, name, part.index), part.offset

    def _assignments(self, client: str) -> int:
        known = self._clients.get(client)
        return known.assignments if known is not None else 0

    def observations(self) -> Iterator[Observation]:
        stuck: dict[tuple[str, str], dict[int, _Reader]] = {}
        for (client, topic, index), reader in self._readers.items():
            if reader.returns >= MANY_RETURNS:
                stuck.setdefault((client, topic), {})[index] = reader
        for (client, topic), readers in stuck.items():
            case = self.context.case(reader.case for reader in readers.values() if reader.case is not None)
            case.count = max(reader.returns for reader in readers.values())
            known = self._clients.get(client)
            group = known.group if known is not None else ""
            numbers = {
                "topic": topic,
                "group": group or None,
                "partitions": [f"{topic}-{index}" for index in sorted(readers)][:100],
                "offsets": [reader.target for _, reader in sorted(readers.items())][:100],
            }
            about = [f"client:{client}", f"topic:{topic}", *([f"group:{group}"] if group else [])]
            harm = Harm(seconds_down=(case.last_ns - case.first_ns) / 1e9)
            yield observation_of("read_again", case, about, numbers, harm)


@cause("no_progress", explains=("read_again",))
def unreadable_record(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`no_progress` (warning): a consumer goes back to the same records 3 times or more, and commits nothing behind
    them: it seeks back, or ends and is started again where its group stands, because of a record that it cannot
    process. With partitions and offsets; its rebalances are symptoms. What is read again because of a rebalance does
    not count.
    """
    client, group, lasted_ns = one.name("client"), one.name("group"), one.last_ns - one.first_ns
    places = zip(one.numbers["partitions"], one.numbers["offsets"], strict=True)
    where = listed([f"{partition} at offset {offset}" for partition, offset in places])
    return told(
        one,
        f"goes back to the same records again and again, {one.count} times in {duration(lasted_ns)}, and commits "
        f"nothing behind them{f' (group {group})' if group else ''}: {where}",
        "A record there, the first or one of those behind it, that the application cannot process: it "
        "fails, and begins again with what is committed. Its log has the exception. Look at that record "
        "(kwiresniff read -Y 'api == Fetch'); skip it by a commit behind it, or send it to a dead-letter "
        "topic.",
        severity="warning",
        explains=symptoms("group", one.named("group"), "rebalances") | symptoms("client", [client], *_SYMPTOMS),
    )
