"""Writes that take long, by leader, topic, client's host and the nodes that have to store them.

With acks=all a write waits for every replica in sync, with acks=1 for its leader alone. Writes that a node takes part
in are compared with the others, and those of a host with those of other hosts to the same topic.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, NamedTuple

from kwiresniff.analysis.body_entities import acks_of
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_NAMES, Case, client_of, clipped, together
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import duration, span
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import message_parts
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.flows import host_of
from kwiresniff.model import Exchange

#: What takes longer may be late; shorter waits are lost among those of a network.
LATE_NS: Final = 100_000_000
#: Of one time of trouble those count that took this part of the longest: what takes less has other reasons.
ALIKE: Final = 5
#: Fewer late writes, or such as took less together, are what a busy moment costs.
FEW: Final = 3
MUCH_NS: Final = 1_000_000_000
#: Of the writes of their time those that were late are more than a busy moment from this part on, or where one of them
#: took so long.
PART: Final = 0.1
SLOW_NS: Final = 1_000_000_000
#: Late writes that overlap or follow each other so soon are one time of trouble.
TOGETHER_NS: Final = 10_000_000_000
#: Leaders, topics and hosts whose writes are counted, nodes that are counted of each, and late writes that are
#: remembered.
MAX_LOGS = 2_000
MAX_NODES = 12
MAX_LATE = 5_000


class _Late(NamedTuple):
    """A write that may be late, of a host to a topic at one leader, with the nodes that had to store it."""

    broker: str
    topic: str
    host: str
    client: str
    packet: int
    first_ns: int
    last_ns: int
    partitions: tuple[int, ...]
    nodes: tuple[int, ...]
    acks: int

    @property
    def took_ns(self) -> int:
        return self.last_ns - self.first_ns


class _Log:
    """The writes of a host to a topic at one leader: how many there were, and in how many each node took part;
    ``prompt_ns`` is what those took that were not late, in all."""

    __slots__ = ("count", "late", "longest_ns", "nodes", "prompt_ns")

    def __init__(self) -> None:
        self.count = 0
        self.late = 0
        self.prompt_ns = 0
        self.longest_ns = 0
        self.nodes: dict[int, int] = {}


class Writes(Observer):
    """`late_writes`: Produce requests of a client's host to a topic at one leader that took the cluster long, in one
    time of trouble: 100 ms or more, and a fifth of the longest of that time; 3 or more, that together took a second or
    more. `prompt_writes`: the writes of a host to a topic at one leader, none of which was late, while others of its
    cluster were.

    Numbers: ``leader`` (address), ``writes`` (of the whole capture), ``late``, ``late_ns`` (sum), ``longest_ns``,
    ``acks``, ``nodes`` (pairs of a node and how many of the writes it had to store: the leader, with acks=all the
    replicas in sync as Metadata named them), ``late_nodes`` (pairs of a node and how long the late ones of these took).
    """

    kinds: ClassVar[tuple[str, ...]] = ("late_writes", "prompt_writes")
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._logs: Subjects[tuple[str, str, str], _Log] = context.subjects(_Log, 6 + MAX_NODES, MAX_LOGS)
        self._late: list[_Late] = []

    def exchange(self, exchange: Exchange) -> None:
        took_ns = exchange.broker_ns
        if exchange.response is None or took_ns is None or exchange.waiting or exchange.errors:
            return
        connection = exchange.connection
        late = took_ns >= LATE_NS
        if late and connection.id in self.context.cut:
            return
        acks, host = acks_of(exchange.request), host_of(connection.client)
        for topic in message_parts(exchange.request):
            name = clipped(self.context.topic_in(topic))
            log = self._logs.of((connection.broker, name, host))
            if log is None:
                continue
            partitions = tuple(part.index for part in topic.partitions[:MAX_NAMES])
            nodes = self._nodes(connection.broker, name, partitions, acks)
            log.count += 1
            log.longest_ns = max(log.longest_ns, took_ns)
            for node in nodes:
                if node in log.nodes or len(log.nodes) < MAX_NODES:
                    log.nodes[node] = log.nodes.get(node, 0) + 1
            if not late:
                log.prompt_ns += took_ns
                continue
            log.late += 1
            if self.context.has_room(self._late, MAX_LATE, entries=4):
                packet, ns = place_of(exchange)
                place = connection.broker, name, host, client_of(exchange), packet
                self._late.append(_Late(*place, ns - took_ns, ns, partitions, nodes, acks))

    def _nodes(self, broker: str, topic: str, partitions: tuple[int, ...], acks: int) -> tuple[int, ...]:
        """The nodes that have to store a write, as far as they are known."""
        cluster = self.context.cluster
        leader = cluster.node_at(broker)
        nodes = {} if leader is None else {leader: None}
        if acks == -1:
            cluster_id = cluster.of(broker)
            for index in partitions:
                known = self.context.replicas.of(cluster_id, topic, index)
                if known is not None:
                    nodes |= dict.fromkeys(known.in_sync or known.all)
        return tuple(nodes)

    def observations(self) -> Iterator[Observation]:
        """The late ones by leader, topic and time; the others of their clusters by leader and topic."""
        cluster = self.context.cluster
        clusters = set()
        seen = set()
        for late in self._troubles():
            logs: dict[tuple[str, str, str], list[_Late]] = {}
            for one in late:
                logs.setdefault((one.broker, one.topic, one.host), []).append(one)
            for key, of_log in logs.items():
                clusters.add(cluster.of(key[0]))
                seen.add(key)
                yield self._late_writes(*key, of_log)
        for (broker, topic, host), log in self._logs.items():
            if (broker, topic, host) not in seen and cluster.of(broker) in clusters:
                mean = duration((log.prompt_ns // (log.count - log.late)) if log.count > log.late else log.longest_ns)
                yield Observation(
                    "prompt_writes",
                    frozenset([f"broker:{broker}", f"topic:{topic}", f"host:{host}"]),
                    f"{log.count} writes of {host} to {topic} at {cluster.broker_text(broker)} took {mean} in the "
                    f"mean, {duration(log.longest_ns)} at most",
                    count=log.count,
                    numbers=_numbers(broker, log, []),
                )

    def _troubles(self) -> Iterator[list[_Late]]:
        """The late writes of each cluster and time of trouble."""
        for late in together(self._late, TOGETHER_NS, lambda one: self.context.cluster.of(one.broker)):
            least_ns = max(one.took_ns for one in late) // ALIKE
            late = [one for one in late if one.took_ns >= least_ns]
            if _is_much(late):
                yield late

    def _late_writes(self, broker: str, topic: str, host: str, late: list[_Late]) -> Observation:
        cluster, case = self.context.cluster, self.context.case()
        for one in late:
            case.add(one.packet, one.last_ns, one.took_ns)
            case.first_ns = min(case.first_ns, one.first_ns)
            case.note("clients", [one.client])
            case.note("partitions", [f"{topic}-{index}" for index in one.partitions])
        log = self._logs[broker, topic, host]
        text = (
            f"{case.count} of {log.count} writes of {host} to {topic} at {cluster.broker_text(broker)} took "
            f"{duration(min(one.took_ns for one in late))} to {duration(case.most)}{span(case.first_ns, case.last_ns)}"
        )
        about = [f"broker:{broker}", f"topic:{topic}", f"host:{host}"]
        about += [f"partition:{one}" for one in case.noted("partitions")]
        about += [f"node:{cluster.of(broker)}/{node}" for node in {node: None for one in late for node in one.nodes}]
        harm = Harm(requests_late=case.count, late_ns=case.total) if self._matters(log, late, case) else HARMLESS
        return observation_of("late_writes", case, about, _numbers(broker, log, late), harm, text=text)

    def _matters(self, log: _Log, late: list[_Late], case: Case) -> bool:
        """Whether late writes cost something: one of them took long, or they are not few of those of their time."""
        whole_ns = max(self.context.end_ns - self.context.begin_ns, 1)
        meanwhile = log.count * (case.last_ns - case.first_ns) / whole_ns
        return _is_much(late) and (case.most >= SLOW_NS or len(late) >= PART * meanwhile)


def _is_much(late: list[_Late]) -> bool:
    return len(late) >= FEW and sum(one.took_ns for one in late) >= MUCH_NS


def _numbers(broker: str, log: _Log, late: list[_Late]) -> dict[str, Any]:
    late_nodes: dict[int, int] = {}
    for one in late:
        for node in one.nodes:
            late_nodes[node] = late_nodes.get(node, 0) + one.took_ns
    return {
        "leader": broker,
        "writes": log.count,
        "late": len(late),
        "late_ns": sum(one.took_ns for one in late),
        "longest_ns": max((one.took_ns for one in late), default=log.longest_ns),
        "acks": sorted({"all" if one.acks == -1 else str(one.acks) for one in late}),
        "nodes": [list(one) for one in log.nodes.items()],
        "late_nodes": [list(one) for one in late_nodes.items()],
    }
