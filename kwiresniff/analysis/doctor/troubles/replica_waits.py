"""Writes that wait for a second or more, and which brokers were gone or silent meanwhile.

With acks=all, and for what coordinators store, a leader waits for all replicas in sync. One whose broker has gone is in
sync until the controller fences it (``broker.session.timeout.ms``) or its lag is too old (``replica.lag.time.max.ms``),
and clients that never wrote to that broker wait as well. Where only one leader makes them wait, and answers others
meanwhile, it waits for the replicas that Metadata names, or for its own log: clients' traffic does not show which.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, clipped
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.troubles.stalls import is_prompt
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
from kwiresniff.results.findings import scope_of

#: What is answered when all replicas in sync have it; a Produce with acks=1 is prompt.
_STORED: Final = frozenset(
    {PRODUCE, OFFSET_COMMIT, TXN_OFFSET_COMMIT, END_TXN, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN}
)
#: A write that waits for so long waits for more than its way to a replica and back.
WAIT_NS: Final = 1_000_000_000
#: Waits so shortly one after the other are one time of trouble.
TOGETHER_NS: Final = 2_000_000_000
#: A broker may have gone so long before the first of them, and an answer may come so shortly after the end of another
#: connection.
BEFORE_NS: Final = 15_000_000_000
ABOUT_NS: Final = 100_000_000
#: A leader that answered others for so long, while a write waited, did not stand still itself.
ALIVE_NS: Final = 500_000_000
#: Partitions that are remembered of a write: those of one leader mostly have the same followers.
MAX_WRITTEN: Final = 20
#: Waits that are remembered, and brokers of which is kept with each when they last answered.
MAX_WAITS: Final = 500
MAX_HEARD: Final = 20
#: Fewer, and none of so long, is what a busy moment costs; of a broker that was seen to go less is enough.
FEW: Final = 3
LONG_NS: Final = 5_000_000_000
GONE_NS: Final = 2_000_000_000


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


class WriteWaits(Observer):
    """`writes_waited`: writes with acks=all, and what coordinators store, took a second or more, several brokers in one
    time, or one while a broker was gone or silent, or with replicas that Metadata names.

    By the brokers that they may have waited for. Numbers: ``brokers`` (addresses that were written to), ``gone`` (pairs
    of an address and when it closed its connections, after which it said nothing more until the longest wait was over),
    ``still`` (addresses that took as long for what they can answer at once), ``others`` (nodes with the other replicas
    of all that was written, of a leader that answered others meanwhile), ``times``, ``longest_ns``, ``clients``,
    ``apis``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("writes_waited",)
    apis: ClassVar[frozenset[int] | None] = None

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
            if self.context.has_room(self._prompt, MAX_WAITS, broker):
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

    def observations(self) -> Iterator[Observation]:
        """Waits for the same are one observation: where a broker was seen to go, or several waited for the same."""
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
            yield self._observation(trouble)

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

    def _observation(self, trouble: _Trouble) -> Observation:
        _cluster, case, waits = self.context.cluster, self.context.case(), trouble.waits
        late_ns = 0
        for one in waits:
            case.add(one.packet, one.last_ns)
            # Of Produce that is observed with the writes of its topic.
            late_ns += one.last_ns - one.first_ns if one.api != "Produce" else 0
        case.first_ns = min(one.first_ns for one in waits)
        brokers = list(dict.fromkeys(one.broker for one in waits))
        clients = list(dict.fromkeys(one.client for one in waits))
        apis = list(dict.fromkeys(one.api for one in waits))
        longest_ns = max(one.last_ns - one.first_ns for one in waits)
        numbers = {
            "brokers": brokers,
            "gone": [list(one) for one in trouble.gone.items()],
            "still": trouble.still,
            "others": trouble.others,
            "times": trouble.times,
            "longest_ns": longest_ns,
            "clients": clients,
            "apis": apis,
        }
        about = [*[f"client:{one}" for one in clients], *[f"broker:{one}" for one in (*brokers, *trouble.gone)]]
        about += [f"broker:{one}" for one in trouble.still]
        harm = Harm(requests_late=sum(one.api != "Produce" for one in waits), late_ns=late_ns) if late_ns else HARMLESS
        return observation_of("writes_waited", case, about, numbers, harm)


def _goes_on(cluster: str, other: str, wait: _Wait, last_ns: int) -> bool:
    return cluster == other and wait.first_ns <= last_ns + TOGETHER_NS


@cause("replica_wait", explains=("writes_waited", "late_writes"))
def replica_wait(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`replica_wait` (warning from 3 requests on or 5 s, 2 s where a broker was seen to go, else info): writes with
    acks=all, and what coordinators store, wait for replicas on other brokers: on one that closed its connections and
    said nothing more, on one that let wait what it can answer at once, or, where the capture shows neither, at several
    brokers at a time.

    Seen must be writes that took a second or more, without time in a queue, a mute or a rebalance. One whose broker has
    gone is in sync until the controller fences it (``broker.session.timeout.ms``) or its lag is too old
    (``replica.lag.time.max.ms``). At one leader that answered others meanwhile, it is one of the nodes that Metadata
    names as its replicas in sync, or its own disk, which clients' traffic does not tell apart; where other writes tell
    it, `slow_broker` is told instead.
    """
    cluster, numbers = context.cluster, one.numbers
    brokers, gone, still, others = (numbers[name] for name in ("brokers", "gone", "still", "others"))
    culprits = [*[address for address, _ in gone], *still]
    at = listed([cluster.broker_text(broker) for broker in brokers if broker not in culprits])
    how_often = f" {times(numbers['times'])}" if numbers["times"] > 1 else ""
    why = [
        f"{cluster.broker_text(address)} closed its connections at {clock(ns)} and said nothing more"
        for address, ns in gone
    ]
    why += [f"{cluster.broker_text(address)} stood still" for address in still]
    if others:
        nodes = listed([cluster.node_text(cluster.of(brokers[0]), node) for node in others])
        who = f"one of {nodes}" if len(others) > 1 else nodes
        why.append(f"it answered others meanwhile, so {who} was slow to copy it, or its own disk to take it")
    longest_ns = numbers["longest_ns"]
    grave = one.count >= FEW or longest_ns >= (GONE_NS if gone else LONG_NS)
    shared = "for a replica that they share, or each for its own disk; which, the capture does not show"
    waited = f"{listed(numbers['apis'])} waited up to {duration(longest_ns)} at {at}"
    when = f"{how_often}{span(one.first_ns, one.last_ns)}"
    return told(
        one,
        f"{waited} for replicas on other brokers{when}: {'; '.join(why)}" if why else f"{waited}{when}, {shared}",
        "Writes with acks=all wait until a replica that is gone has left the ISR (broker.session.timeout.ms "
        "of the controller, replica.lag.time.max.ms). See why its broker went or stood still: its log, pauses, "
        "disks. One that is stopped in order takes leave first, and nobody waits. The leader's RemoteTimeMs is "
        "what it waited for replicas, its LocalTimeMs what its own disk took.",
        subject=listed([cluster.broker_text(address) for address in culprits]) or at,
        explained=(one, *late_writes_of(observed, one)),
        supports=tuple(why),
        contradicts=() if gone else ("no broker closed its connections meanwhile",),
        numbers={
            "brokers": brokers,
            "gone": [address for address, _ in gone],
            "still": still,
            "followers": others,
            "longest_ns": longest_ns,
            "clients": numbers["clients"],
            "apis": numbers["apis"],
        },
        severity="warning" if grave else "info",
        explains={
            "slow": scope_of("broker", [*brokers, *culprits]),
            "request_timed_out": scope_of("broker", brokers),
            "own_queue": scope_of("client", numbers["clients"]),
            **dict.fromkeys(("broker_unreachable", "closed_by_broker", "unanswered"), scope_of("broker", culprits)),
        },
    )


def late_writes_of(observed: Observed, waits: Observation) -> list[Observation]:
    """The late writes at the brokers of some waits, in the same time."""
    late = observed.about([f"broker:{one}" for one in waits.numbers["brokers"]], "late_writes")
    return [one for one in late if one.first_ns <= waits.last_ns and waits.first_ns <= one.last_ns]
