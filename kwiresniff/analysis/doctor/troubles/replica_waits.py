"""Writes that wait for a second or more, and the brokers that were gone or silent meanwhile.

With acks=all, and for what coordinators store, a leader waits for all replicas in sync. A replica whose broker has gone
is in sync until the controller fences it (``broker.session.timeout.ms``) or its lag is too old
(``replica.lag.time.max.ms``). A single leader that answers others meanwhile waits for the replicas that Metadata names,
or for its own log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of, together
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import SLOW_NS, Observer
from kwiresniff.analysis.doctor.troubles.stalls import is_prompt
from kwiresniff.analysis.doctor.wording import clock, duration, listed, span, times
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import (
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    INIT_PRODUCER_ID,
    OFFSET_COMMIT,
    PRODUCE,
    TXN_OFFSET_COMMIT,
)
from kwiresniff.model import Exchange

#: APIs that are answered when all replicas in sync have stored the data.
_STORED: Final = frozenset(
    {PRODUCE, OFFSET_COMMIT, TXN_OFFSET_COMMIT, END_TXN, INIT_PRODUCER_ID, ADD_PARTITIONS_TO_TXN}
)
#: The pause between two waits of one time of trouble.
TOGETHER_NS: Final = 2_000_000_000
#: A broker may have gone so long before the first wait, and answer so shortly after it closed another connection.
BEFORE_NS: Final = 15_000_000_000
ABOUT_NS: Final = 100_000_000
#: A leader that answered others so long after the start of a wait did not stand still.
ALIVE_NS: Final = 500_000_000
#: Partitions remembered of a write.
MAX_WRITTEN: Final = 20
#: Waits that are remembered, and brokers of each whose last answer is.
MAX_WAITS: Final = 500
MAX_HEARD: Final = 20
#: A follower leaves the ISR so long after it stopped copying (``replica.lag.time.max.ms``).
LEFT_NS: Final = 30_000_000_000
#: Fewer and shorter waits are a busy moment; where a broker was seen to go, shorter ones count.
FEW: Final = 3
LONG_NS: Final = 5_000_000_000
GONE_NS: Final = 2_000_000_000


class _Wait(NamedTuple):
    """A write that waited. ``heard`` is when each broker of the cluster had last answered by its end, ``answered_ns``
    when its own broker had; ``written`` are the partitions."""

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
    """Waits for the same brokers: ``gone`` with the time, ``still`` (those that delayed what they can answer at once),
    ``others``: the nodes with the other replicas of what was written."""

    def __init__(self) -> None:
        self.times = 0
        self.waits: list[_Wait] = []
        self.gone: dict[str, int] = {}
        self.still: list[str] = []
        self.others: list[int] = []


class WriteWaits(Observer):
    """`writes_waited`: writes with acks=all, and what coordinators store, took a second or more: at several brokers in
    one time, or at one while a broker was gone or silent, or with replicas that Metadata names.

    By the brokers that they may have waited for. Numbers: ``brokers`` (written to), ``gone`` (pairs of an address and
    when it closed its connections, after which it sent nothing until the longest wait was over), ``still`` (addresses
    that delayed what they can answer at once), ``others`` (nodes with the other replicas of all that was written, of a
    leader that answered others meanwhile), ``times``, ``longest_ns``, ``clients``, ``apis``.
    """

    kinds = ("writes_waited",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._waits: list[_Wait] = []
        #: Requests that wait for nobody and took as long: broker, begin, end.
        self._prompt: list[tuple[str, int, int]] = []

    def slow(self, exchange: Exchange) -> None:
        response, took_ns = exchange.response, exchange.broker_ns or 0
        if response is None or took_ns < SLOW_NS:
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
        parts = self.context.parts(exchange.request) if exchange.api_key == PRODUCE else []
        written = [(topic, part.index) for topic, part in parts[:MAX_WRITTEN]]
        entries = 2 + len(addresses) + len(written)
        if exchange.connection.id in self.context.cut:
            return
        if self.context.has_room(self._waits, MAX_WAITS, broker, entries=entries):
            heard = {address: cluster.last_answer_ns.get(address, 0) for address in addresses}
            who, (packet, ns) = client_of(exchange), place_of(exchange)
            answered_ns = cluster.answer_before_ns
            self._waits.append(_Wait(broker, who, exchange.api, packet, first_ns, ns, heard, answered_ns, written))

    def observations(self) -> Iterator[Observation]:
        cluster = self.context.cluster
        troubles: dict[tuple[str, ...], _Trouble] = {}
        for waits in together(self._waits, TOGETHER_NS, lambda one: cluster.of(one.broker)):
            gone, still = self._gone(waits), self._still(waits)
            brokers = {one.broker for one in waits}
            others = [] if gone or still or len(brokers) > 1 else self._others(waits)
            if gone or still or others or len(brokers) > 1:
                key = "gone" if gone else "still" if still else "unknown", *sorted(gone or still or brokers)
                trouble = troubles.setdefault(key, _Trouble())
                trouble.others = others
                trouble.times += 1
                trouble.waits += waits
                trouble.gone |= gone
                trouble.still = [] if gone else still
        for trouble in troubles.values():
            yield self._observation(trouble)

    def _gone(self, waits: list[_Wait]) -> dict[str, int]:
        """The brokers that closed their connections, with the time, and sent nothing more until the longest wait was
        over."""
        longest = max(waits, key=lambda one: one.last_ns - one.first_ns)
        waiting = {one.broker for one in waits}
        since_ns = min(one.first_ns for one in waits) - BEFORE_NS
        gone: dict[str, int] = {}
        for address, heard_ns in longest.heard.items():
            closed = [ns for ns in self.context.cluster.closings(address) if since_ns <= ns < longest.last_ns]
            if address not in waiting and closed and heard_ns <= max(closed) + ABOUT_NS:
                gone[address] = max(closed)
        return gone

    def _still(self, waits: list[_Wait]) -> list[str]:
        """The brokers that delayed what they can answer at once; none where all did."""
        first_ns, last_ns = min(one.first_ns for one in waits), max(one.last_ns for one in waits)
        still = {broker for broker, since_ns, until_ns in self._prompt if since_ns < last_ns and until_ns > first_ns}
        others = {one.broker for one in waits} - still
        cluster = self.context.cluster
        mine = cluster.of(waits[0].broker)
        return sorted(one for one in still if cluster.of(one) == mine) if others else []

    def _others(self, waits: list[_Wait]) -> list[int]:
        """The nodes with the other replicas of all that was written, of a leader that answered others meanwhile; none
        where that is not known."""
        if not any(one.answered_ns >= one.first_ns + ALIVE_NS for one in waits):
            return []
        cluster, broker = self.context.cluster, waits[0].broker
        mine, leader = cluster.of(broker), cluster.node_at(broker)
        others: set[int] | None = None
        for topic, index in {place for one in waits for place in one.written}:
            known = self.context.replicas.of(mine, topic, index)
            nodes = set(known.in_sync or known.all) - {leader} if known is not None else set()
            others = nodes if others is None else others & nodes
        return sorted(others or ())

    def _observation(self, trouble: _Trouble) -> Observation:
        case, waits = self.context.case(), trouble.waits
        for one in waits:
            case.add(one.packet, one.last_ns)
        case.first_ns = min(one.first_ns for one in waits)
        brokers = list(dict.fromkeys(one.broker for one in waits))
        clients = list(dict.fromkeys(one.client for one in waits))
        numbers = {
            "brokers": brokers,
            "gone": [list(one) for one in trouble.gone.items()],
            "still": trouble.still,
            "others": trouble.others,
            "times": trouble.times,
            "longest_ns": max(one.last_ns - one.first_ns for one in waits),
            "clients": clients,
            "apis": list(dict.fromkeys(one.api for one in waits)),
        }
        about = [f"client:{one}" for one in clients]
        about += [f"broker:{one}" for one in (*brokers, *trouble.gone, *trouble.still)]
        # The lateness of Produce is that of ``late_writes``.
        late = [one.last_ns - one.first_ns for one in waits if one.api != "Produce"]
        harm = Harm(requests_late=len(late), late_ns=sum(late))
        return observation_of("writes_waited", case, about, numbers, harm)


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
    it, `slow_broker` is told instead. A node that alone falls out of the ISR within 30 s is the one that they waited
    for, though it may answer clients.
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
    mine, behind = cluster.of(brokers[0]), ""
    fell = _fell_behind(one, observed, mine) if not culprits else None
    if fell is not None:
        behind = cluster.node_text(mine, fell)
        why = [f"{behind} stopped copying, and fell out of the ISR; it is in the list of brokers"]
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
        subject=listed([cluster.broker_text(address) for address in culprits]) or behind or at,
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
        explains=symptoms("broker", [*brokers, *culprits], "slow")
        | symptoms("broker", brokers, "request_timed_out")
        | symptoms("client", numbers["clients"], "own_queue")
        | symptoms("broker", culprits, "closed_by_broker", "unanswered")
        | symptoms("broker", [address for address, _ in gone], "broker_unreachable")
        | symptoms("node", [f"{mine}/{fell}"] if fell is not None else [], "under_replicated"),
    )


def _fell_behind(waits: Observation, observed: Observed, cluster_id: str) -> int | None:
    """The node that alone fell out of the ISR while or soon after writes waited, and is in the list of brokers."""
    for each in observed.of("under_replicated"):
        numbers = each.numbers
        missing: list[int] = [node for node, _ in numbers["missing"]]
        new = numbers["was_whole"] and waits.first_ns <= each.first_ns <= waits.last_ns + LEFT_NS
        if each.name("node").startswith(f"{cluster_id}/") and new and len(missing) == 1 and not numbers["absent"]:
            return missing[0]
    return None


def late_writes_of(observed: Observed, waits: Observation) -> list[Observation]:
    """The late writes at the brokers of some waits, in the same time."""
    late = observed.about([f"broker:{one}" for one in waits.numbers["brokers"]], "late_writes")
    return [one for one in late if one.first_ns <= waits.last_ns and waits.first_ns <= one.last_ns]
