"""Writes that wait for replicas on other brokers: which broker went, as far as the capture shows it.

With acks=all, and for what coordinators store, a leader waits for all replicas in sync. One whose broker has gone is in
sync until the controller fences it (``broker.session.timeout.ms``) or its lag is too old (``replica.lag.time.max.ms``),
and clients that never wrote to that broker wait as well. Where only one leader makes them wait, and answers others
meanwhile, it waits for the replicas that Metadata names, or for its own log: clients' traffic does not show which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_brokers, found
from kwiresniff.analysis.doctor.selection import waited
from kwiresniff.analysis.doctor.stalls import is_prompt
from kwiresniff.analysis.doctor.wording import clock, duration, listed, span, times
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, text_bytes
from kwiresniff.analysis.places import place_of
from kwiresniff.analysis.topic_parts import message_parts
from kwiresniff.base.api_keys import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    OFFSET_COMMIT,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding

#: What is answered when all replicas in sync have it; a Produce with acks=1 is prompt.
_STORED = frozenset({PRODUCE, OFFSET_COMMIT, TXN_OFFSET_COMMIT, END_TXN, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN})
#: A write that waits for so long waits for more than its way to a replica and back.
WAIT_NS = 1_000_000_000
#: Fewer, and none of so long, is what a busy moment costs; of a broker that was seen to go less is enough.
FEW = 3
LONG_NS = 5_000_000_000
GONE_NS = 2_000_000_000
#: Waits so shortly one after the other are one time of trouble.
TOGETHER_NS = 2_000_000_000
#: A broker may have gone so long before the first of them, and an answer may come so shortly after the end of another
#: connection.
BEFORE_NS = 15_000_000_000
ABOUT_NS = 100_000_000
#: A leader that answered others for so long, while a write waited, did not stand still itself.
ALIVE_NS = 500_000_000
#: Partitions that are remembered of a write: those of one leader mostly have the same followers.
MAX_WRITTEN = 20
#: Waits that are remembered, and brokers of which is kept with each when they last answered.
MAX_WAITS = 500
MAX_HEARD = 20


class _Wait(NamedTuple):
    """A write that waited. ``heard`` is when each broker of the cluster had last answered before it was over,
    ``answered_ns`` when its own had answered somebody else; ``written`` are the partitions."""

    broker: str
    client: str
    api: str
    packet: int
    first_ns: int
    last_ns: int
    heard: dict[str, int]
    answered_ns: int
    written: list[tuple[str, int]]


class _Trouble:
    """Waits for the same, in one time or several: ``gone`` are the brokers that went, and when, ``still`` those that
    took as long for what they can answer at once, ``others`` the nodes with the other replicas of what was written."""

    def __init__(self) -> None:
        self.times = 0
        self.waits: list[_Wait] = []
        self.gone: dict[str, int] = {}
        self.still: list[str] = []
        self.others: list[int] = []


class ReplicaWaitRule(Rule):
    """Writes that wait for replicas, by what they wait for."""

    codes = ("replica_wait",)
    apis = None
    selection = waited(WAIT_NS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._waits: list[_Wait] = []
        #: What waited for nobody, and took as long: broker, from when, until when.
        self._prompt: list[tuple[str, int, int]] = []

    def exchange(self, exchange: Exchange) -> None:
        """Notes a write that waited, and who had answered anything until then."""
        response, took_ns = exchange.response, exchange.broker_ns or 0
        if response is None or took_ns < WAIT_NS:
            return
        cluster, broker = self.context.cluster, exchange.connection.broker
        first_ns = response.first_ns - took_ns
        if is_prompt(exchange):
            if len(self._prompt) < MAX_WAITS and self.context.budget.admit(ENTRY_BYTES + text_bytes(broker)):
                self._prompt.append((broker, first_ns, response.first_ns))
            return
        if exchange.waiting or exchange.api_key not in _STORED:
            return
        addresses = cluster.addresses(cluster.of(broker))[:MAX_HEARD]
        written = [
            (clipped(self.context.topic_in(topic)), part.index)
            for topic in (message_parts(exchange.request) if exchange.api_key == PRODUCE else ())
            for part in topic.partitions
        ][:MAX_WRITTEN]
        size = 2 * CONTAINER_BYTES + (len(addresses) + len(written)) * ENTRY_BYTES + text_bytes(broker)
        if (
            len(self._waits) >= MAX_WAITS
            or exchange.connection.id in self.context.cut
            or not self.context.budget.admit(size)
        ):
            return
        heard = {address: cluster.last_answer_ns.get(address, 0) for address in addresses}
        packet, ns = place_of(exchange)
        answered_ns = cluster.answer_before_ns
        client = client_of(exchange)
        self._waits.append(_Wait(broker, client, exchange.api, packet, first_ns, ns, heard, answered_ns, written))

    def findings(self) -> Iterator[Finding]:
        """Waits for the same are one finding: where a broker was seen to go, or several waited for the same."""
        cluster = self.context.cluster
        waits = sorted(self._waits, key=lambda one: (cluster.of(one.broker), one.first_ns))
        troubles: dict[tuple[str, ...], _Trouble] = {}
        while waits:
            together = [waits.pop(0)]
            last_ns = together[0].last_ns
            while waits and _goes_on(cluster.of(together[0].broker), cluster.of(waits[0].broker), waits[0], last_ns):
                together.append(waits.pop(0))
                last_ns = max(last_ns, together[-1].last_ns)
            gone, still = self._gone(together), self._still(together)
            brokers = {one.broker for one in together}
            others = [] if gone or still or len(brokers) > 1 else self._others(together)
            if gone or still or others or len(brokers) > 1:
                key = "gone" if gone else "still" if still else "unknown", *sorted(gone or still or brokers)
                trouble = troubles.setdefault(key, _Trouble())
                trouble.others = others
                trouble.times += 1
                trouble.waits += together
                trouble.gone |= gone
                trouble.still = [] if gone else still
        for trouble in troubles.values():
            yield self._finding(trouble)

    def _gone(self, together: list[_Wait]) -> dict[str, int]:
        """The brokers that closed their connections, when they did, and said nothing more until the longest wait was
        over."""
        longest = max(together, key=lambda one: one.last_ns - one.first_ns)
        waiting = {one.broker for one in together}
        since_ns = min(one.first_ns for one in together) - BEFORE_NS
        gone: dict[str, int] = {}
        for address, heard_ns in longest.heard.items():
            closed = [ns for ns in self.context.cluster.closings(address) if since_ns <= ns < longest.last_ns]
            if address not in waiting and closed and heard_ns <= max(closed) + ABOUT_NS:
                gone[address] = max(closed)
        return gone

    def _still(self, together: list[_Wait]) -> list[str]:
        """The brokers that let wait what they can answer at once; none where that tells none apart."""
        first_ns, last_ns = min(one.first_ns for one in together), max(one.last_ns for one in together)
        still = {broker for broker, since_ns, until_ns in self._prompt if since_ns < last_ns and until_ns > first_ns}
        others = {one.broker for one in together} - still
        cluster = self.context.cluster
        mine = cluster.of(together[0].broker)
        return sorted(one for one in still if cluster.of(one) == mine) if others else []

    def _others(self, together: list[_Wait]) -> list[int]:
        """The nodes that have the other replicas of all that was written, of a leader that answered others meanwhile;
        none where that is not known."""
        if not any(one.answered_ns >= one.first_ns + ALIVE_NS for one in together):
            return []
        cluster, broker = self.context.cluster, together[0].broker
        mine, leader = cluster.of(broker), cluster.node_at(broker)
        others: set[int] | None = None
        for topic, index in {place for one in together for place in one.written}:
            known = self.context.replicas.of(mine, topic, index)
            nodes = set(known.in_sync or known.all) - {leader} if known is not None else set()
            others = nodes if others is None else others & nodes
        return sorted(others or ())

    def _finding(self, trouble: _Trouble) -> Finding:
        cluster, case, waits = self.context.cluster, self.context.case(), trouble.waits
        for one in waits:
            case.add(one.packet, one.last_ns)
        case.first_ns = min(one.first_ns for one in waits)
        brokers = list(dict.fromkeys(one.broker for one in waits))
        clients = list(dict.fromkeys(one.client for one in waits))
        apis = list(dict.fromkeys(one.api for one in waits))
        longest = max(one.last_ns - one.first_ns for one in waits)
        culprits = [*trouble.gone, *trouble.still]
        at = listed([cluster.broker_text(one) for one in brokers if one not in culprits])
        how_often = f" {times(trouble.times)}" if trouble.times > 1 else ""
        why = [
            f"{cluster.broker_text(one)} closed its connections at {clock(ns)} and said nothing more"
            for one, ns in trouble.gone.items()
        ]
        why += [f"{cluster.broker_text(one)} stood still" for one in trouble.still]
        if trouble.others:
            nodes = listed([cluster.node_text(cluster.of(brokers[0]), node) for node in trouble.others])
            who = f"one of {nodes}" if len(trouble.others) > 1 else nodes
            why.append(f"it answered others meanwhile, so {who} was slow to copy it, or its own disk to take it")
        return found(
            "replica_wait",
            "warning" if case.count >= FEW or longest >= (GONE_NS if trouble.gone else LONG_NS) else "info",
            listed([cluster.broker_text(one) for one in culprits]) or at,
            f"{listed(apis)} waited up to {duration(longest)} at {at} for replicas on other brokers{how_often}"
            f"{span(case.first_ns, case.last_ns)}: "
            + ("; ".join(why) or "one that has replicas of them all was gone or stood still"),
            "Writes with acks=all wait until a replica that is gone has left the ISR (broker.session.timeout.ms of the "
            "controller, replica.lag.time.max.ms). See why its broker went or stood still: its log, pauses, disks. One "
            "that is stopped in order takes leave first, and nobody waits. The leader's RemoteTimeMs is what it waited "
            "for replicas, its LocalTimeMs what its own disk took.",
            case,
            {
                "brokers": brokers,
                "gone": list(trouble.gone),
                "still": trouble.still,
                "followers": trouble.others,
                "longest_ns": longest,
                "clients": clients,
                "apis": apis,
            },
            clients=clients,
            brokers=[*brokers, *culprits],
            explains={
                "slow": as_brokers(*brokers, *culprits),
                "request_timed_out": as_brokers(*brokers),
                "broker_unreachable": as_brokers(*culprits),
                "closed_by_broker": as_brokers(*culprits),
                "unanswered": as_brokers(*culprits),
            },
            rank=INCIDENT,
        )


def _goes_on(cluster: str, other: str, wait: _Wait, last_ns: int) -> bool:
    return cluster == other and wait.first_ns <= last_ns + TOGETHER_NS
