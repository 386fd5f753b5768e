"""Consumers whose lag grows for as long as the capture lasts.

Sources: the high watermark in Fetch answers, less the committed offset, else less the offset behind the last batch that
was fetched. The committed offset counts where it was committed recently, or not for much longer than ever before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kwiresniff.analysis.doctor.bodies import group_of, request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.commits import Committed, PartitionOfClient
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.small_fetches import SingleRecords
from kwiresniff.analysis.doctor.wording import duration
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT
from kwiresniff.digest import PartitionDigest
from kwiresniff.model import Exchange

#: The time between two fetches of a connection that are looked at.
EVERY_NS = 500_000_000
#: A lag that grows for less, or to less, may be a burst.
LASTING_NS = 10_000_000_000
MANY_RECORDS = 100
#: A group that has not committed for so many times its longest interval is stuck.
OVERDUE = 3
#: Fewer looks may be the foot and the top of a burst.
ENOUGH_LOOKS = 5
#: Looks kept of a partition; of more, every second one goes.
MAX_LOOKS = 24
#: Partitions and connections that are remembered.
MAX_READ = 5_000
MAX_CONNECTIONS = 5_000
#: Partitions with their lag in a finding.
MAX_LISTED = 6


class Look(NamedTuple):
    """The end of a partition's log, and the consumer's position, at one time."""

    packet: int
    ns: int
    end: int
    position: int

    @property
    def lag(self) -> int:
        return self.end - self.position


@dataclass(slots=True, eq=False)
class _Reader:
    """The looks at a consumer's partition, by what it fetches and by what its group has committed."""

    by_fetch: list[Look] = field(default_factory=list)
    by_commit: list[Look] = field(default_factory=list)
    committed: Committed | None = None
    seen_ns: int = 0

    def look(self, packet: int, ns: int, part: PartitionDigest) -> None:
        end, committed = part.high_watermark, self.committed
        _add(self.by_fetch, Look(packet, ns, end, min(part.end_offset, end)))
        if committed is not None and committed.count:
            _add(self.by_commit, Look(packet, ns, end, min(committed.offset, end)))
            self.seen_ns = committed.ns

    def looks(self) -> list[Look]:
        """The looks that show the position."""
        if not self.by_commit or self.committed is None:
            return self.by_fetch
        begin, end = self.by_commit[0].ns, self.by_commit[-1].ns
        of_late = self.seen_ns >= end - (end - begin) // 3
        overdue = self.committed.count > 1 and end - self.seen_ns >= max(
            LASTING_NS, OVERDUE * self.committed.longest_ns
        )
        return self.by_commit if of_late or overdue else self.by_fetch


class Lags(Observer):
    """``lag_grows``: for 10 s or more a consumer's lag was greater all through the last third of the time than ever in
    the first, and is 100 records or more at the end; ``single_records``: a consumer is given one record, or one batch,
    at a time, though the log has more.

    Numbers of the first: ``lag_before``, ``lag``, ``written_per_second``, ``read_per_second``, ``by`` (commits or
    fetches), ``group``, ``topic``, ``partitions``; of the second: ``topic``, ``max_bytes`` and
    ``partition_max_bytes`` as it asks (0 where that is not known).
    """

    kinds = ("lag_grows", "single_records")
    apis = frozenset({FETCH, OFFSET_COMMIT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._readers: Subjects[PartitionOfClient, _Reader] = context.subjects(_Reader, 8 + 2 * MAX_LOOKS, MAX_READ)
        self._looked: dict[int, int] = {}
        self._groups: dict[str, str] = {}
        self._small = SingleRecords(context)

    def exchange(self, exchange: Exchange) -> None:
        if exchange.api_key == OFFSET_COMMIT:
            self._commit(exchange)
            return
        response, connection = exchange.response, exchange.connection.id
        if response is None:
            return
        packet, ns = response.first_packet, response.first_ns
        last = self._looked.get(connection)
        if (last is None and len(self._looked) >= MAX_CONNECTIONS) or (last is not None and ns - last < EVERY_NS):
            return
        brought = self.context.brought(exchange)
        if not brought:
            return
        self._looked[connection] = ns
        client = client_of(exchange)
        for name, part in brought:
            if part.high_watermark >= 0:
                self._look(client, name, part, packet, ns)
                self._small.look(client, name, part, exchange, (packet, ns))

    def _look(self, client: str, topic: str, part: PartitionDigest, packet: int, ns: int) -> None:
        key = client, topic, part.index
        reader = self._readers.of(key)
        if reader is None:
            return
        if reader.committed is None:
            reader.committed = self.context.commits.get(key)
        reader.look(packet, ns, part)

    def _commit(self, exchange: Exchange) -> None:
        """Notes the group that a client commits for; ``Rereads`` notes the offsets."""
        request = request_body(exchange)
        if not request or exchange.errors:
            return
        client = client_of(exchange)
        group = group_of(request)
        if client in self._groups or (self.context.has_room(self._groups, MAX_CONNECTIONS, client, group)):
            self._groups[client] = group

    def observations(self) -> Iterator[Observation]:
        behind: dict[tuple[str, str], dict[int, list[Look]]] = {}
        for (client, topic, partition), reader in self._readers.items():
            looks = reader.looks()
            if grows(looks):
                behind.setdefault((client, topic), {})[partition] = looks
        for (client, topic), partitions in behind.items():
            yield self._grown(client, topic, partitions)
        yield from self._small.observations()

    def _grown(self, client: str, topic: str, partitions: dict[int, list[Look]]) -> Observation:
        case = self.context.case()
        for looks in partitions.values():
            for look in looks:
                case.add(look.packet, look.ns)
        first = sum(looks[0].lag for looks in partitions.values())
        last = sum(looks[-1].lag for looks in partitions.values())
        written = sum(looks[-1].end - looks[0].end for looks in partitions.values()) / case.seconds
        read = sum(looks[-1].position - looks[0].position for looks in partitions.values()) / case.seconds
        group = self._groups.get(client, "")
        of = [self._readers[client, topic, index] for index in partitions]
        by = "commits" if any(reader.by_commit in partitions.values() for reader in of) else "fetches"
        return observation_of(
            "lag_grows",
            case,
            {f"client:{client}", f"topic:{topic}", *([f"group:{group}"] if group else [])},
            {
                "topic": topic,
                "group": group or None,
                "partitions": [f"{topic}-{index}" for index in sorted(partitions)][:100],
                "lag_before": first,
                "lag": last,
                "written_per_second": round(written, 3),
                "read_per_second": round(read, 3),
                "by": by,
                "each": [
                    f"{topic}-{index}: {looks[0].lag:,} records, then {looks[-1].lag:,}"
                    for index, looks in sorted(partitions.items())[:MAX_LISTED]
                ],
            },
            Harm(records_unread=last - first),
        )


def _add(looks: list[Look], look: Look) -> None:
    looks.append(look)
    if len(looks) >= MAX_LOOKS:
        del looks[1:-1:2]


def grows(looks: list[Look]) -> bool:
    """Whether a lag was greater all through the last third of the time than ever in the first."""
    if len(looks) < ENOUGH_LOOKS:
        return False
    begin, end = looks[0].ns, looks[-1].ns
    if end - begin < LASTING_NS or looks[-1].lag < MANY_RECORDS:
        return False
    third = (end - begin) // 3
    before = [look.lag for look in looks if look.ns <= begin + third]
    after = [look.lag for look in looks if look.ns >= end - third]
    return min(after) > max(before)


@cause("consumer_lag", explains=("lag_grows",))
def slow_consumer(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`consumer_lag` (warning): a consumer falls behind: for 10 s and more its lag was greater all through the last
    third of the time than ever in the first, and is 100 records or more at the end; from the high watermark of its
    fetches, less what its group has committed, or less what it fetched where the group commits seldom. Must not be
    seen: that it does not poll at all, or reads the same again, or is given one record at a time; its lag is a symptom
    of those.
    """
    numbers, group = one.numbers, one.name("group")
    idle = observed.about((f"group:{name}" for name in one.named("group")), "idle_members")
    idle = [each for each in idle if each.numbers["members"] > each.numbers["partitions"]]
    more = (
        "more members do not help, since some have nothing to do already: add partitions"
        if idle
        else "more members help up to the number of partitions"
    )
    return told(
        one,
        f"falls behind on {numbers['topic']}{f' (group {group})' if group else ''}: its lag grew from "
        f"{numbers['lag_before']:,} to {numbers['lag']:,} records in {duration(one.last_ns - one.first_ns)}; "
        f"{numbers['written_per_second']:.3g} records a second are written, it {numbers['by']} "
        f"{numbers['read_per_second']:.3g}",
        "The consumer is slower than the producers, and reads older and older records until retention "
        "deletes them before it comes to them. Look at what it does with each record, and at its machine; "
        f"{more}. The broker is slow only where its own time says so (kwiresniff stats).",
        supports=tuple(each.sentence for each in idle),
        numbers={name: value for name, value in numbers.items() if name not in ("by", "each")},
        details=tuple(numbers["each"]),
        severity="warning",
    )
