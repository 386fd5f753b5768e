"""Programs that write what they read to where they, or another program, read it again.

Records are not looked at: a program that copies has never written more than it has read, and again and again exactly
as much. What it copies from and to are topics, of one cluster or of several.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.copying import Copying, Place
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.analysis.places import request_place
from kwiresniff.base.api_keys import FETCH, PRODUCE
from kwiresniff.base.flows import host_of
from kwiresniff.model import Exchange

#: Topics that a program reads, fetches that are remembered of each, and programs with a topic that each writes to.
MAX_SOURCES = 8
MAX_FETCHES: Final = 50
MAX_COPYING = 5_000
#: A program wrote exactly as much as it had read so often, so many records, and so many in a second: others that read
#: their own records again write some now and then.
FEW_ROUNDS: Final = 10
FEW_RECORDS: Final = 100
PER_SECOND: Final = 10
#: So often at least each record went round.
FEW_LAPS: Final = 5


class CopyLoops(Observer):
    """``copied_in_a_loop``: programs that copy a topic to a topic from which it comes back to them.

    A program is a client, or a host whose clients have several ids. Seen must be that it never wrote more records to a
    topic than it had read from the other by then, and exactly as many 10 times. Numbers: ``copied`` (sentences),
    ``records`` that were written, ``at_a_time`` of them under way, ``per_second``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("copied_in_a_loop",)
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH})

    def exchange(self, exchange: Exchange) -> None:
        client, cluster_id = client_of(exchange), self.context.cluster.of(exchange.connection.broker)
        if exchange.api_key == FETCH:
            brought = self.context.brought(exchange)
            if brought and exchange.response is not None:
                for who in (client, host_of(exchange.connection.client)):
                    for name, part in brought:
                        self._read(who, (cluster_id, name), part.records, exchange.response.last_ns)
            return
        written: dict[str, int] = {}
        for name, part in self.context.parts(exchange.request) if not exchange.errors else ():
            written[name] = written.get(name, 0) + part.records
        for who in (client, host_of(exchange.connection.client)):
            for name, records in written.items():
                self._write(exchange, who, client, (cluster_id, name), records)

    def _read(self, who: str, place: Place, records: int, ns: int) -> None:
        sources = self.context.sources
        known = sources.get(who)
        if known is None:
            if not self.context.has_room(sources, MAX_COPYING, who):
                return
            known = sources[who] = {}
        if place not in known:
            if not self.context.has_room(known, MAX_SOURCES, *place, entries=2):
                return
            known[place] = deque(maxlen=1)  # more are remembered of who writes
        fetches = known[place]
        fetches.append((ns, records + (fetches[-1][1] if fetches else 0)))

    def _write(self, exchange: Exchange, who: str, client: str, to: Place, records: int) -> None:
        context = self.context
        total = context.written_records.get((who, to), 0)
        if not total and not context.has_room(context.written_records, MAX_COPYING, who, *to):
            return
        total = context.written_records[who, to] = total + records
        for source, fetches in context.sources.get(who, {}).items():
            key = who, source, to
            copying = context.copying.get(key)
            if copying is None:
                more = MAX_FETCHES if fetches.maxlen == 1 else 0
                if not context.has_room(context.copying, MAX_COPYING, entries=12 + more):
                    return
                copying = context.copying[key] = Copying(context.case())
                if more:
                    fetches = context.sources[who][source] = deque(fetches, maxlen=more)
                # From the middle, a probe that writes a record and reads it looks the same.
                copying.is_more = source == to and exchange.connection.client_iss < 0
            if copying.is_more:
                continue
            # Requests are told of in the order of their answers.
            packet, ns = request_place(exchange)
            copying.ns = max(copying.ns, ns)
            read = next((sum_ for at_ns, sum_ in reversed(fetches) if at_ns <= copying.ns), fetches[0][1])
            copying.records = total
            copying.most = max(copying.most, read - total + records)
            copying.is_more |= read < total
            copying.rounds += read == total
            copying.case.add(packet, ns)
            copying.case.note("clients", [client])

    def observations(self) -> Iterator[Observation]:
        """Of all clusters, by the first examination."""
        if not self.context.is_first:
            return
        ways: dict[Place, dict[Place, tuple[str, Copying]]] = {}
        for (who, source, to), copying in self.context.copying.items():
            if _is_copying(copying):
                ways.setdefault(source, {}).setdefault(to, (who, copying))
        told: set[Place] = set()
        for source in ways:
            ring = _ring(ways, source)
            if ring and told.isdisjoint(ring):
                told.update(ring)
                pairs = zip(ring, [*ring[1:], source], strict=True)
                yield self._observation([(one, to, *ways[one][to]) for one, to in pairs])

    def _observation(self, ring: list[tuple[Place, Place, str, Copying]]) -> Observation:
        case = self.context.case(copying.case for *_, copying in ring)
        several = len({cluster_id for (cluster_id, _), *_ in ring}) > 1
        copied = [
            f"{_program(who, copying)} copies {_text(source, several)} to {_text(to, several)}"
            for source, to, who, copying in ring
        ]
        case.note("topics", [name for (_, name), *_ in ring])
        records = sum(copying.records for *_, copying in ring)
        numbers = {
            "copied": copied,
            "records": records,
            "at_a_time": max(copying.most for *_, copying in ring),
            "per_second": round(records / case.seconds, 1),
        }
        return observation_of("copied_in_a_loop", case, (), numbers, Harm(records_doubled=records))


def _is_copying(copying: Copying) -> bool:
    enough = copying.records >= max(FEW_RECORDS, FEW_LAPS * copying.most, PER_SECOND * copying.case.seconds)
    return enough and copying.rounds >= FEW_ROUNDS and not copying.is_more


def _ring(ways: dict[Place, dict[Place, tuple[str, Copying]]], start: Place) -> list[Place]:
    """The shortest way from a place back to it, without its end; empty where there is none."""
    paths = [[start]]
    seen = set()
    for path in paths:
        for to in ways.get(path[-1], ()):
            if to == start:
                return path
            if to not in seen:
                seen.add(to)
                paths.append([*path, to])
    return []


def _program(who: str, copying: Copying) -> str:
    """A client, or a host with the clients on it that write."""
    clients = listed(copying.case.noted("clients"))
    return clients if " " in who else f"{who} ({clients})"


def _text(place: Place, several: bool) -> str:
    cluster_id, name = place
    return f"{name} of cluster {cluster_id}" if several else name


@cause("copy_loop", explains=("copied_in_a_loop",))
def copy_loop(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`copy_loop` (error): a program writes the records that it reads from a topic to the same one, or to another from
    which a second program copies them back, in the same cluster or in another: they go round without end, and the topic
    grows by itself. Mirrors in both directions without names of their own for what they copied, and retries that write
    a record back at once are like that. Seen must be, of each, 100 records and 10 in a second, each of which went round
    5 times; of a topic that is copied to itself, the connection from its beginning. Must not be seen: more records
    written than were read by then. A program that answers each record with a new one looks the same.
    """
    numbers = one.numbers
    copied = numbers["copied"]
    return told(
        one,
        f"records go round in a loop: {listed(copied, 4)}, which brings the same ones again; {numbers['records']:,} "
        f"were written in {duration(one.last_ns - one.first_ns)}, {counted(numbers['at_a_time'], 'record')} "
        "at a time",
        "Stop one of these programs first: the topic grows until the disks are full, and every other consumer gets the "
        "same records again and again. Then give it another topic to write to (mirrors put the name of the source "
        "cluster before it), or have it pass over what it has written itself, by a header; a retry has to wait, and to "
        "give up after some times.",
        subject=listed(one.named("client")),
        doubt="A program that answers each record that it reads with a new one looks the same.",
        explains=symptoms(
            "client",
            one.named("client"),
            "small_batches", "one_at_a_time", "own_queue", "consumer_lag", "commit_storm", "byte_load",
        )
        | symptoms("topic", one.named("topic"), "hot_partition", "consumer_lag"),
    )  # fmt: skip
