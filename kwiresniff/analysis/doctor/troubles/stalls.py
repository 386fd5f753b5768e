"""Times in which a broker answered nothing, though it was asked for what it could answer at once.

Requests that wait for others, as with acks=all for the replicas, are kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kwiresniff.analysis.doctor.bodies import request_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in, patience_of
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_of, together
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import SLOW_NS, Observer
from kwiresniff.analysis.doctor.wording import duration, listed, span
from kwiresniff.base.api_keys import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_CONFIGS,
    FETCH,
    FIND_COORDINATOR,
    LIST_OFFSETS,
    METADATA,
    OFFSET_FETCH,
    PRODUCE,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
)
from kwiresniff.model import ConnectionAttempt, Exchange
from kwiresniff.results.findings import scope_of

#: From here on a stall is an error.
SEVERE_NS: Final = 2_000_000_000
#: An answer so soon after a stall belongs to it.
AFTER_NS: Final = 250_000_000
#: Stalls remembered of all brokers.
MAX_STALLS: Final = 5_000
#: APIs that a broker answers without waiting for others. Heartbeat is none: since 4.0 a coordinator answers it when
#: the replicas have what it wrote last for its groups.
_PROMPT: Final = frozenset({
    LIST_OFFSETS, METADATA, OFFSET_FETCH, FIND_COORDINATOR, SASL_HANDSHAKE, API_VERSIONS,
    DESCRIBE_CONFIGS, DESCRIBE_CLUSTER,
})  # fmt: skip


@dataclass(slots=True, eq=False)
class _Stall:
    broker: str
    first_ns: int
    last_ns: int
    case: Case
    prompt: bool = False
    over: bool = True
    authenticating_ns: int = 0

    @property
    def authenticating(self) -> bool:
        """Whether an authentication was under way for four fifths of it."""
        return self.authenticating_ns * 5 >= (self.last_ns - self.first_ns) * 4


class Silences(Observer):
    """`broker_silent`: a broker answered nothing for a second or more, not even what it can answer at once.

    By time; overlapping silences of several brokers are one. Numbers: ``silent`` (addresses that answered nothing
    themselves), ``waiting`` (those that only waited for others), ``lasted_ns``, ``over`` (they answered again),
    ``lossy`` (the capture lacks so much that answers may be among it), ``clients``, ``apis``, whether one
    authentication was under way for four fifths of each silence (``authenticating``), and whether anything else showed
    it than that (``prompt``); it has no harm of its own else.
    """

    kinds = ("broker_silent",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._newest: dict[str, _Stall] = {}
        self._stalls: list[_Stall] = []
        self._silent: dict[str, _Stall] = {}
        self._refused: dict[str, int] = {}

    def attempt(self, attempt: ConnectionAttempt) -> None:
        """Notes a broker that refuses connections: it is down, and starts later."""
        if attempt.refused and (attempt.server in self._refused or len(self._refused) < MAX_SUBJECTS):
            self._refused[attempt.server] = attempt.last_ns

    def slow(self, exchange: Exchange) -> None:
        """Notes a response after a silence, or one that waited through it."""
        response, request = exchange.response, exchange.request
        if response is None:
            return
        ns = response.first_ns
        if request is None or ns - request.last_ns < SLOW_NS:
            return
        broker, before = exchange.connection.broker, self.context.cluster.answer_before_ns
        asked = request.last_ns + (patience_of(exchange) if exchange.api_key == FETCH else 0)
        if exchange.waiting == "throttled":  # the broker reads nothing of the client for a while, or holds its response
            asked += max(exchange.queued, 0) + max(exchange.held, 0)
        stall = self._newest.get(broker)
        if stall is not None and ns <= stall.last_ns + AFTER_NS and asked <= stall.last_ns - SLOW_NS:
            self._add(stall, exchange, asked, ns - max(asked, stall.first_ns) >= SLOW_NS)
            return
        silent_since = max(before, asked)  # a broker that has not answered before is starting
        if (
            not before
            or ns - silent_since < SLOW_NS
            or before < self._refused.get(broker, 0)
            or exchange.waiting == "rebalance"
            or exchange.connection.id in self.context.cut
            or len(self._stalls) >= MAX_STALLS
        ):
            return
        first_ns = max(before, request.last_ns)
        stall = self._newest[broker] = _Stall(broker, first_ns, ns, self.context.case())
        self._stalls.append(stall)
        self._add(stall, exchange, asked, True)

    def _add(self, stall: _Stall, exchange: Exchange, asked_ns: int, silent: bool) -> None:
        assert exchange.request is not None
        if exchange.api_key == SASL_AUTHENTICATE and exchange.response is not None:
            under_way_ns = exchange.response.first_ns - max(asked_ns, stall.first_ns)
            stall.authenticating_ns = max(stall.authenticating_ns, under_way_ns)
        stall.case.add(exchange.request.first_packet, exchange.request.first_ns)
        stall.case.note("clients", [client_of(exchange)])
        stall.case.note("apis", [exchange.api])
        # A request behind another of its connection may wait for replicas.
        alone = exchange.broker_ns is None or exchange.broker_ns >= SLOW_NS // 2
        stall.prompt |= silent and alone and is_prompt(exchange)

    def ending(self, ending: Ending) -> None:
        if ending.reason not in ("closed by client", "capture ended"):
            return
        broker = ending.connection.broker
        for request in ending.requests:
            waited_ns = ending.first.last_ns + ending.waited_ns - request.last_ns - request.patience_ns
            if waited_ns < SEVERE_NS or (request.api_key not in _PROMPT and request.api_key != FETCH):
                continue
            if broker not in self._silent and len(self._silent) >= MAX_SUBJECTS:
                return
            new = _Stall(broker, request.last_ns, 0, self.context.case(), prompt=True, over=False)
            stall = self._silent.setdefault(broker, new)
            stall.first_ns = min(stall.first_ns, request.last_ns)
            stall.last_ns = max(stall.last_ns, request.last_ns + waited_ns)
            stall.case.add(request.packet, request.first_ns)
            stall.case.note("clients", [client_in(ending)])
            stall.case.note("apis", [request.api])

    def observations(self) -> Iterator[Observation]:
        cluster = self.context.cluster
        unended = [
            one
            for one in self._silent.values()
            if cluster.last_answer_ns.get(one.broker, 0) <= one.first_ns and not cluster.went(one.broker, one.first_ns)
        ]
        for stalls in together([*self._stalls, *unended], -SLOW_NS // 2 - 1):
            long = max(one.last_ns for one in stalls) - stalls[0].first_ns >= SEVERE_NS
            several = sum(one.case.count for one in stalls) > 1
            if any((one.prompt and (long or several)) or (one.authenticating and several) for one in stalls):
                yield self._observation(stalls)

    def _observation(self, stalls: list[_Stall]) -> Observation:
        cluster, case = self.context.cluster, self.context.case(stall.case for stall in stalls)
        mine = [one for one in stalls if one.prompt] or [one for one in stalls if one.authenticating]
        silent = list(dict.fromkeys(one.broker for one in mine))
        brokers = list(dict.fromkeys(one.broker for one in stalls))
        case.note("brokers", brokers)
        case.first_ns, case.last_ns = min(one.first_ns for one in mine), max(one.last_ns for one in mine)
        lasted_ns = case.last_ns - case.first_ns
        lossy = self.context.is_lossy(case.count)
        numbers = {
            "silent": silent,
            "waiting": [one for one in brokers if one not in silent],
            "lasted_ns": lasted_ns,
            "over": all(one.over for one in mine),
            "lossy": lossy,
            "clients": case.noted("clients"),
            "apis": case.noted("apis"),
            "authenticating": all(one.authenticating for one in mine),
            "prompt": any(one.prompt for one in mine),
        }
        text = (
            f"{listed([cluster.broker_text(one) for one in silent])} answered nothing for {duration(lasted_ns)},"
            f"{span(case.first_ns, case.last_ns)}, though asked {case.count} times ({listed(case.noted('apis'))})"
        )
        harm = Harm(requests_late=case.count, seconds_down=lasted_ns / 1e9 if lasted_ns >= SEVERE_NS else 0.0)
        about = [f"broker:{one}" for one in brokers]
        return observation_of(
            "broker_silent", case, about, numbers, harm if numbers["prompt"] and not lossy else HARMLESS, text=text
        )


def is_prompt(exchange: Exchange) -> bool:
    """Whether the broker could have answered without waiting for other brokers or clients."""
    if exchange.api_key in _PROMPT or exchange.api_key == FETCH:
        return True
    return exchange.api_key == PRODUCE and request_body(exchange).get("acks") == 1


@cause("broker_stalled", explains=("broker_silent", "late_writes"))
def stalled_broker(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`broker_stalled` (error from 2 s on, else warning; info where the capture lacks as much): a broker answered
    nothing for a second or more, not even what it can answer at once; of several brokers in one time the one that
    answered nothing itself.

    Seen must be requests that wait for nobody else (Metadata, a Fetch beyond its wait, Produce with acks=1),
    and no answer of that broker to anybody meanwhile. A broker that closes its connections went, and did not stall; one
    that answers others is not this, whatever is late there. Answers that the path loses look the same where no other
    client of the broker is in the capture.
    """
    waits = writes_within(observed, one)
    cluster, numbers = context.cluster, one.numbers
    if not numbers["prompt"]:
        return None
    silent, waiting, lossy = numbers["silent"], numbers["waiting"], numbers["lossy"]
    texts = [cluster.broker_text(broker) for broker in silent]
    took, when = f" for {duration(numbers['lasted_ns'])}", span(one.first_ns, one.last_ns)
    ended = "" if numbers["over"] else ", and no answer came any more"
    if waiting:
        title = f"{len(silent) + len(waiting)} brokers stalled{when}; {listed(texts)} answered nothing itself{ended}"
    elif len(silent) > 1:
        title = f"{len(silent)} brokers answered nothing{took},{when}{ended}"
    else:
        title = f"the broker stalled: it answered nothing{took},{when}{ended}"
    # With acks=all the other brokers wait for a replica that stands still.
    nodes = {address for broker in silent for address in cluster.addresses(cluster.of(broker))}
    everywhere = scope_of("broker", [*silent, *waiting, *nodes])
    return told(
        one,
        f"{title}; or its answers are among what the capture lost" if lossy else title,
        "The whole broker stood still, so it is not one request that is slow: look at its pauses of garbage "
        "collection, a disk that hung, CPU taken away (a stopped process, a paused virtual machine).",
        subject=listed(texts),
        explained=(one, *waits),
        numbers={
            "brokers": silent,
            "waiting_brokers": waiting,
            "longest_ns": numbers["lasted_ns"],
            "clients": numbers["clients"],
            "apis": numbers["apis"],
        },
        severity="info" if lossy else "error" if numbers["lasted_ns"] >= SEVERE_NS else "warning",
        explains={
            **dict.fromkeys(("slow", "replica_wait", "unanswered", "request_timed_out"), everywhere),
            **dict.fromkeys(("broker_unreachable", "long_rebalance"), scope_of("broker", silent)),
            "leader_change": scope_of("left", silent),
            "own_queue": scope_of("client", numbers["clients"]),
        },
    )


def writes_within(observed: Observed, silence: Observation) -> list[Observation]:
    """Writes to a silent broker that were late because of the silence alone: they ended soon after it."""
    first_ns, last_ns = silence.first_ns - AFTER_NS, silence.last_ns + AFTER_NS
    return [
        late
        for late in observed.of("late_writes")
        if first_ns <= late.first_ns and late.last_ns <= last_ns and late.numbers["leader"] in silence.numbers["silent"]
    ]
