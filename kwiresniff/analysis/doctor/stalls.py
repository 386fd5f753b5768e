"""Brokers that stall: for some time one answers nothing, though it is asked for what it could answer at once.

A pause of garbage collection, a process that is stopped, a disk that hangs. What a request waits for elsewhere, such as
acks=all for the replicas, says nothing of the broker that was asked: those that only wait for it are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, patience_of
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, client_text
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_brokers, found
from kwiresniff.analysis.doctor.selection import waited
from kwiresniff.analysis.doctor.wording import duration, listed, span
from kwiresniff.base.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    HEARTBEAT,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    PRODUCE,
    SASL_HANDSHAKE,
)
from kwiresniff.model import ConnectionAttempt, Exchange
from kwiresniff.results.findings import Finding, scope_of

#: Silence is a stall from here on, and an error from there on.
STALL_NS = 1_000_000_000
SEVERE_NS = 2_000_000_000
#: What is answered so soon after a stall belongs to it.
AFTER_NS = 250_000_000
#: Stalls remembered of all brokers.
MAX_STALLS = 5_000

#: APIs that a broker answers from what it has, waiting for nobody.
_PROMPT = frozenset({
    LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR, HEARTBEAT, SASL_HANDSHAKE, API_VERSIONS,
    DESCRIBE_CONFIGS, DESCRIBE_CLUSTER,
})  # fmt: skip


class _Stall:
    __slots__ = ("broker", "case", "first_ns", "last_ns", "over", "prompt")

    def __init__(
        self, broker: str, first_ns: int, last_ns: int, case: Case, *, prompt: bool = False, over: bool = True
    ) -> None:
        self.broker = broker
        self.first_ns = first_ns
        self.last_ns = last_ns
        self.case = case
        self.prompt = prompt
        self.over = over


class StallRule(Rule):
    """Brokers that stall, and those that waited for them."""

    codes = ("broker_stalled",)
    apis = None
    selection = waited(STALL_NS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._newest: dict[str, _Stall] = {}
        self._stalls: list[_Stall] = []
        self._silent: dict[str, _Stall] = {}
        self._refused: dict[str, int] = {}

    def attempt(self, attempt: ConnectionAttempt) -> None:
        """Notes a broker that refuses connections: it is down, and starts afterwards."""
        if attempt.refused and (attempt.server in self._refused or len(self._refused) < MAX_SUBJECTS):
            self._refused[attempt.server] = attempt.last_ns

    def exchange(self, exchange: Exchange) -> None:
        """Notes a response after a silence, or one that waited through the same silence."""
        response, request = exchange.response, exchange.request
        if response is None:
            return
        ns = response.first_ns
        if request is None or ns - request.last_ns < STALL_NS:
            return
        broker, before = exchange.connection.broker, self.context.cluster.answer_before_ns
        asked = request.last_ns + self._patience(exchange)
        if exchange.waiting == "throttled":  # the broker reads nothing of the client for a while, or holds its response
            asked += max(exchange.queued, 0) + max(exchange.held, 0)
        stall = self._newest.get(broker)
        if stall is not None and ns <= stall.last_ns + AFTER_NS and asked <= stall.last_ns - STALL_NS:
            self._add(stall, exchange, ns - max(asked, stall.first_ns) >= STALL_NS)
            return
        silent_since = max(before, asked)  # a broker that has not answered before is starting
        if (
            not before
            or ns - silent_since < STALL_NS
            or before < self._refused.get(broker, 0)
            or exchange.waiting == "rebalance"
            or exchange.connection.id in self.context.cut
            or len(self._stalls) >= MAX_STALLS
        ):
            return
        first_ns = max(before, request.last_ns)
        stall = self._newest[broker] = _Stall(broker, first_ns, ns, self.context.case())
        self._stalls.append(stall)
        self._add(stall, exchange, True)

    def _add(self, stall: _Stall, exchange: Exchange, silent: bool) -> None:
        assert exchange.request is not None
        stall.case.add(exchange.request.first_packet, exchange.request.first_ns)
        stall.case.note("clients", [client_of(exchange)])
        stall.case.note("apis", [exchange.api])
        # What waited behind another request of its connection says nothing of the broker: it may wait for replicas.
        alone = exchange.broker_ns is None or exchange.broker_ns >= STALL_NS // 2
        stall.prompt |= silent and alone and is_prompt(exchange)

    @staticmethod
    def _patience(exchange: Exchange) -> int:
        return patience_of(exchange) if exchange.api_key == FETCH else 0

    def ending(self, ending: Ending) -> None:
        """Requests that a client gave up on, or that the capture has no answer to."""
        if ending.reason not in ("closed by client", "capture ended"):
            return
        broker = ending.connection.broker
        for request in ending.requests:
            waited_ns = ending.first.last_ns + ending.waited_ns - request.last_ns - request.patience_ns
            if waited_ns < SEVERE_NS or (request.api_key not in _PROMPT and request.api_key != FETCH):
                continue
            if broker not in self._silent and len(self._silent) >= MAX_SUBJECTS:
                return
            stall = self._silent.get(broker)
            if stall is None:
                stall = _Stall(broker, request.last_ns, 0, self.context.case(), prompt=True, over=False)
                self._silent[broker] = stall
            stall.first_ns = min(stall.first_ns, request.last_ns)
            stall.last_ns = max(stall.last_ns, request.last_ns + waited_ns)
            stall.case.add(request.packet, request.first_ns)
            stall.case.note("clients", [client_text(ending.connection.client_id, ending.connection.client)])
            stall.case.note("apis", [request.api])

    def findings(self) -> Iterator[Finding]:
        """Stalls of one time are one finding."""
        cluster = self.context.cluster
        unended = [
            one
            for one in self._silent.values()
            if cluster.last_answer_ns.get(one.broker, 0) <= one.first_ns and not cluster.went(one.broker, one.first_ns)
        ]
        stalls = sorted([*self._stalls, *unended], key=lambda one: one.first_ns)
        while stalls:
            together = [stalls.pop(0)]
            last_ns = together[0].last_ns
            while stalls and stalls[0].first_ns < last_ns - STALL_NS // 2:
                together.append(stalls.pop(0))
                last_ns = max(last_ns, together[-1].last_ns)
            long = last_ns - together[0].first_ns >= SEVERE_NS
            if any(one.prompt for one in together) and (long or sum(one.case.count for one in together) > 1):
                yield self._finding(together)

    def _finding(self, together: list[_Stall]) -> Finding:
        case = self.context.case()
        for stall in together:
            case.merge(stall.case)
        culprits = list(dict.fromkeys(one.broker for one in together if one.prompt))
        brokers = list(dict.fromkeys(one.broker for one in together))
        mine = [one for one in together if one.prompt]
        first, last = min(one.first_ns for one in mine), max(one.last_ns for one in mine)
        case.first_ns, case.last_ns = first, last
        texts = [self.context.cluster.broker_text(one) for one in culprits]
        took = f" for {duration(last - first)}"
        ended = "" if all(one.over for one in mine) else ", and no answer came any more"
        if len(brokers) > len(culprits):
            title = f"{len(brokers)} brokers stalled{span(first, last)}; {listed(texts)} answered nothing itself{ended}"
        elif len(culprits) > 1:
            title = f"{len(culprits)} brokers answered nothing{took},{span(first, last)}{ended}"
        else:
            title = f"the broker stalled: it answered nothing{took},{span(first, last)}{ended}"
        lossy = self.context.is_lossy(case.count)
        if lossy:
            title += "; or its answers are among what the capture lost"
        clients = case.noted("clients")
        # With acks=all the other brokers wait for the replicas of one that stands still.
        cluster = self.context.cluster
        waiting = {*brokers, *(one for broker in culprits for one in cluster.addresses(cluster.of(broker)))}
        return found(
            "broker_stalled",
            "info" if lossy else "error" if last - first >= SEVERE_NS else "warning",
            listed(texts),
            title,
            "The whole broker stood still, so it is not one request that is slow: look at its pauses of garbage "
            "collection, a disk that hung, CPU taken away (a stopped process, a paused virtual machine).",
            case,
            {"brokers": culprits, "waiting_brokers": [one for one in brokers if one not in culprits],
             "longest_ns": last - first, "clients": clients, "apis": case.noted("apis")},
            brokers=brokers,
            explains={
                "slow": as_brokers(*waiting),
                "replica_wait": as_brokers(*waiting),
                "unanswered": as_brokers(*waiting),
                "request_timed_out": as_brokers(*waiting),
                "leader_change": scope_of("left", culprits),
                "broker_unreachable": as_brokers(*culprits),
                "long_rebalance": as_brokers(*culprits),
            },
            rank=INCIDENT,
        )  # fmt: skip


def is_prompt(exchange: Exchange) -> bool:
    """Whether the broker could have answered without waiting for other brokers or clients."""
    if exchange.api_key in _PROMPT or exchange.api_key == FETCH:
        return True
    body = exchange.request.body if exchange.request is not None else None
    return exchange.api_key == PRODUCE and body is not None and body.get("acks") == 1
