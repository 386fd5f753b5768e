"""Replicas that are missing: from the ISR of their partitions, from the list of brokers, as leaders.

Metadata names a partition's leader, its replicas, those in sync, and those that are offline (KIP-112).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.error_places import error_places
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.replica_table import Replicas
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import clock, counted, duration, listed, span, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import DESCRIBE_TOPIC_PARTITIONS, METADATA
from kwiresniff.model import Exchange

#: Partitions without a leader that are remembered.
MAX_LEADERLESS: Final = 5_000
#: A partition has no leader for a moment when its topic is new or its leader has left.
LEADERLESS_NS: Final = 5_000_000_000
#: So many partitions a broker would lead, if leaders were spread, before it says something that it leads none.
FAIR: Final = 3
#: Of so many it is the preferred leader, and leads none: they were moved, and were not spread like that.
PREFERRED: Final = 2
#: Partitions that an observation names.
MAX_NAMED: Final = 100
#: Errors by which a write is refused because of the ISR.
NOT_ENOUGH: Final = frozenset({"NOT_ENOUGH_REPLICAS", "NOT_ENOUGH_REPLICAS_AFTER_APPEND"})
#: So long before the first refusal requests may have waited for a replica that had left.
BEFORE_NS: Final = 60_000_000_000
#: An answer so shortly before the first refusal says that a broker was there.
SHORTLY_NS: Final = 1_000_000_000

_Partition = tuple[str, str, int]


class MissingReplicas(Observer):
    """`under_replicated`: partitions whose in-sync replicas are not all their replicas, when that was last said.
    `leads_none`: a broker leads no partition, though it would lead 3 or more if leaders were spread over the replicas
    in sync, or is the preferred leader of 2 or more.

    By cluster; the latter by node. Numbers of the former: ``partitions`` (names, up to 100), ``short``, ``of`` (how
    many of how many were described), ``missing`` (pairs of a node and the number of partitions in whose ISR it is
    missing), ``absent`` (those of them that the list of brokers does not have either), ``in_other`` (those that are
    in sync elsewhere), ``was_whole`` (whether all of these partitions had all replicas in sync before), ``offline``
    (nodes that are in the list of brokers while their replicas are offline), ``least`` (replicas in sync of the
    partition with the fewest), ``leads`` (pairs of a node and how many of these partitions it leads). Of the latter:
    ``partitions`` (in which it is in sync), ``preferred`` (of which it is the preferred leader, the first of the
    replicas), ``leads``, ``by_chance`` (it would lead fewer than 3).
    """

    kinds: ClassVar[tuple[str, ...]] = ("under_replicated", "leads_none")
    apis: ClassVar[frozenset[int] | None] = frozenset({METADATA, DESCRIBE_TOPIC_PARTITIONS})

    def exchange(self, exchange: Exchange) -> None:
        """Learns brokers, replicas and in-sync replicas; of an answer that is cut off the end of a list is missing."""
        body = exchange.response.body if exchange.response is not None else None
        if not body or exchange.problems:
            return
        cluster_id = self.context.cluster.of(exchange.connection.broker)
        self.context.replicas.learn(cluster_id, body, self.context.topic_of, place_of(exchange))

    def observations(self) -> Iterator[Observation]:
        """One for each cluster that has such partitions."""
        clusters: dict[str, list[tuple[str, int, Replicas]]] = {}
        for cluster_id, topic, index, known in self.context.replicas:
            clusters.setdefault(cluster_id, []).append((topic, index, known))
        for cluster_id, partitions in clusters.items():
            short = [one for one in partitions if one[2].short_since is not None]
            if short:
                yield self._observation(cluster_id, short, partitions)
            yield from self._without_leadership(cluster_id, [one for _, _, one in partitions if one.leader >= 0])

    def _observation(
        self, cluster_id: str, short: list[tuple[str, int, Replicas]], partitions: list[tuple[str, int, Replicas]]
    ) -> Observation:
        cluster, case = self.context.cluster, self.context.case()
        missing: dict[int, int] = {}
        leads: dict[int, int] = {}
        for topic, _, known in short:
            assert known.short_since is not None
            case.add(*known.short_since, until_ns=known.ns)
            case.note("topics", [topic])
            for node in known.all:
                if node not in known.in_sync:
                    missing[node] = missing.get(node, 0) + 1
            if known.leader >= 0:
                leads[known.leader] = leads.get(known.leader, 0) + 1
        in_sync = {node for _, _, known in partitions for node in known.in_sync}
        present, _ = self.context.replicas.brokers(cluster_id)
        absent = [node for node in missing if present and node not in present]
        names = [f"{topic}-{index}" for topic, index, _ in short[:MAX_NAMED]]
        where = [f"{cluster.node_text(cluster_id, node)} in {count}" for node, count in missing.items()]
        text = (
            f"{len(short)} of {counted(len(partitions), 'partition')} that were described had replicas that are not in "
            f"sync{span(case.first_ns, case.last_ns)}: {listed(where)}"
        )
        if absent:
            text += f"; the list of brokers had no {listed([f'node {node}' for node in absent])}"
        numbers = {
            "partitions": names,
            "short": len(short),
            "of": len(partitions),
            "missing": [list(one) for one in missing.items()],
            "absent": absent,
            "in_other": [node for node in missing if node in in_sync],
            "was_whole": all(known.was_whole for _, _, known in short),
            "offline": sorted({node for _, _, known in short for node in known.offline if node in present}),
            "least": min(len(known.in_sync) for _, _, known in short),
            "leads": [list(one) for one in leads.items()],
        }
        return observation_of(
            "under_replicated", text, case, [f"node:{cluster_id}/{node}" for node in missing], numbers
        )

    def _without_leadership(self, cluster_id: str, partitions: list[Replicas]) -> Iterator[Observation]:
        leads: dict[int, int] = {}
        for one in partitions:
            leads[one.leader] = leads.get(one.leader, 0) + 1
        present, _ = self.context.replicas.brokers(cluster_id)
        for node in sorted(present):
            mine = [one for one in partitions if node in one.in_sync]
            preferred = sum(one.all[0] == node for one in mine)
            fair = sum(1 / len(one.in_sync) for one in mine)
            if node in leads or (fair < FAIR and preferred < PREFERRED):
                continue
            name = self.context.cluster.node_text(cluster_id, node)
            text = (
                f"{name} led none of {len(mine)} partitions in which it was in sync ({preferred} as preferred leader)"
            )
            numbers = {
                "partitions": len(mine),
                "preferred": preferred,
                "leads": [list(one) for one in leads.items()],
                "by_chance": fair < FAIR,
            }
            case = self.context.case()
            for place in sorted({one.place for one in mine}, key=lambda each: each[1]):
                case.add(*place)
            yield observation_of("leads_none", text, case, [f"node:{cluster_id}/{node}"], numbers)


@dataclass(slots=True, eq=False)
class _Leaderless:
    """A partition that has no leader: since when, and the replicas that are offline while their brokers are there."""

    case: Case
    replicas: tuple[int, ...] = ()
    present: tuple[int, ...] = ()
    over: bool = False


class LeaderlessPartitions(Observer):
    """`no_leader`: partitions that had no leader for 5 s or more, as Metadata said.

    By the nodes that have their replicas. Numbers: ``partitions`` (up to 100), ``nodes``, ``log_directory_failed`` (the
    replicas are offline while their brokers are there), ``lasted_ns``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("no_leader",)
    apis: ClassVar[frozenset[int] | None] = frozenset({METADATA})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._leaderless: Subjects[_Partition, _Leaderless] = Subjects(
            context.budget, lambda: _Leaderless(context.case()), 8, MAX_LEADERLESS
        )

    def exchange(self, exchange: Exchange) -> None:
        """Notes which partitions have a leader."""
        body = exchange.response.body if exchange.response is not None else None
        if not body:
            return
        cluster, (packet, ns) = self.context.cluster.of(exchange.connection.broker), place_of(exchange)
        brokers = {one.get("node_id", -1) for one in body.get("brokers") or ()}
        for topic in body.get("topics") or ():
            for one in topic.get("partitions") or ():
                leads = one.get("leader_id", 0) >= 0
                if "leader_id" not in one or (leads and not self._leaderless):
                    continue
                key = cluster, clipped(self.context.topic_of(topic)), one.get("partition_index", -1)
                known = self._leaderless.get(key)
                if leads:
                    if known is not None:
                        self._ends(key, known)
                    continue
                known = self._leaderless.of(key)
                if known is not None and not known.over:
                    known.case.add(packet, ns)
                    known.case.note("clients", [client_of(exchange)])
                    known.replicas = tuple(one.get("replica_nodes") or ())
                    known.present = tuple(node for node in one.get("offline_replicas") or () if node in brokers)

    def _ends(self, key: _Partition, known: _Leaderless) -> None:
        """Notes that a partition has a leader again; one that was without for a moment is forgotten."""
        if not known.over and known.case.last_ns - known.case.first_ns < LEADERLESS_NS:
            del self._leaderless[key]
        known.over = True

    def observations(self) -> Iterator[Observation]:
        """By why they have none: partitions whose replicas are in a failed log directory, and others."""
        groups: dict[tuple[str, tuple[int, ...], bool], list[_Partition]] = {}
        for key, known in self._leaderless.items():
            if known.case.last_ns - known.case.first_ns >= LEADERLESS_NS:
                groups.setdefault((key[0], known.present or known.replicas, bool(known.present)), []).append(key)
        for (cluster_id, nodes, failed), keys in groups.items():
            case = self.context.case()
            for key in keys:
                case.merge(self._leaderless[key].case)
                case.note("topics", [key[1]])
            lasted_ns = case.last_ns - case.first_ns
            names = [f"{topic}-{index}" for _, topic, index in keys]
            text = (
                f"{listed(names)} had no leader{span(case.first_ns, case.last_ns)}, for {duration(lasted_ns)} at least"
            )
            numbers = {
                "partitions": names[:MAX_NAMED],
                "nodes": list(nodes),
                "log_directory_failed": failed,
                "lasted_ns": lasted_ns,
            }
            about = [f"node:{cluster_id}/{node}" for node in nodes]
            harm = Harm(seconds_down=lasted_ns / 1e9)
            yield observation_of("no_leader", text, case, about, numbers, harm)


class RefusedWrites(Observer):
    """`writes_refused`: writes that a leader refused because too few replicas were in sync.

    By topic. Numbers: ``errors``, ``apis``, ``partitions``, ``messages`` (what the broker said), ``missing`` (nodes
    that have a replica and were gone) and ``certain`` (whether Metadata said so, or they alone of all replicas did not
    answer any more).
    """

    kinds: ClassVar[tuple[str, ...]] = ("writes_refused",)
    judges: ClassVar[frozenset[str]] = NOT_ENOUGH

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def failure(self, exchange: Exchange) -> None:
        """Counts a write that is refused."""
        if not any(name in NOT_ENOUGH for _, _, name, _ in exchange.errors):
            return
        packet, ns = place_of(exchange)
        cluster_id = self.context.cluster.of(exchange.connection.broker)
        counted_topics: set[str] = set()
        for place in error_places(exchange, self.context):
            if place.name not in NOT_ENOUGH:
                continue
            case = self._cases.case(place.topic, cluster_id)
            if place.topic not in counted_topics:
                case.add(packet, ns)
                counted_topics.add(place.topic)
            case.note("errors", [place.name])
            case.note("apis", [exchange.api])
            case.note("topics", [place.topic] if place.topic else [])
            case.note("concerns", [place.what] if place.what else [])
            case.note("indexes", [str(place.partition)])
            case.note("clients", [client_of(exchange)])
            case.note("brokers", [exchange.connection.broker])
            case.note("messages", [place.message] if place.message else [])

    def observations(self) -> Iterator[Observation]:
        """By topic: the partitions, and the brokers that are missing."""
        for topic, cluster_id, case in self._cases:
            missing, certain = self._missing(cluster_id, topic, case.noted("indexes"), case.first_ns)
            what = listed(case.noted("concerns")) or topic
            errors = case.noted("errors")
            since = f", first at {clock(case.first_ns)}" if case.count > 1 else ""
            text = f"writes to {what} were refused {times(case.count)}{since} ({listed(errors)})"
            numbers = {
                "topic": topic,
                "cluster": cluster_id,
                "errors": errors,
                "apis": case.noted("apis"),
                "partitions": case.noted("concerns"),
                "missing": missing,
                "certain": certain,
                "messages": case.noted("messages"),
            }
            about = [f"node:{cluster_id}/{node}" for node in missing]
            yield observation_of("writes_refused", text, case, about, numbers, Harm(requests_failed=case.count))

    def _missing(self, cluster_id: str, topic: str, indexes: list[str], since_ns: int) -> tuple[list[int], bool]:
        """The nodes that hold replicas and are gone, and whether that is certain or found by elimination."""
        cluster = self.context.cluster
        nodes, nodes_ns = self.context.replicas.brokers(cluster_id)
        gone: dict[int, None] = {}
        silent: dict[int, None] = {}
        answering = 0
        for index in indexes:
            known = self.context.replicas.of(cluster_id, topic, int(index))
            if known is None:
                continue
            if known.ns >= since_ns - BEFORE_NS and known.in_sync and known.short_since is not None:
                gone |= dict.fromkeys(node for node in known.all if node not in known.in_sync)
            if nodes_ns >= since_ns:
                gone |= dict.fromkeys(node for node in known.all if node not in nodes)
            for node in known.all:
                address = cluster.address(cluster_id, node)
                if cluster.last_answer_ns.get(address, 0) >= since_ns - SHORTLY_NS:
                    answering += 1
                else:
                    silent[node] = None
        if gone:
            return list(gone), True
        return (list(silent), False) if answering and silent else ([], False)
