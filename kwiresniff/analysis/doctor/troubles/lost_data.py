"""Data that never arrives at the other end of a connection, as TCP shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kwiresniff.analysis.doctor.cause import Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_arriving
from kwiresniff.analysis.doctor.evidence import Case, client_text
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, grouped, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection, Problem
from kwiresniff.results.findings import scope_of

#: Open connections with a message that has not ended.
MAX_WAITING: Final = 2_000
#: Connections of one path that are compared.
MAX_STUCK: Final = 100
#: A client that closes sooner was leaving; a capture that ends sooner may just lack the rest.
GAVE_UP_NS: Final = 1_000_000_000
LATE_NS: Final = 5_000_000_000
#: Retransmissions of a segment from which on its loss is no coincidence.
MANY_TIMES: Final = 3
#: The smallest segment that a path may be too narrow for; IPv6 has 1,220 bytes at least (RFC 8200).
LARGE_BYTES: Final = 1_000
#: A connection without answers for so long was idle.
IDLE_NS: Final = 1_000_000_000
#: Findings that follow from lost data.
_FOLLOW: Final = ("retransmits", "unanswered", "slow", "request_timeout", "broker_stalled")


class _Stuck(NamedTuple):
    """A connection on which data was lost: the size of the data, its retransmissions, the bytes that are present, when
    the connection was opened, since when its receiver waited, and how long before that the last answer had come."""

    opened_ns: int
    since_ns: int
    size_bytes: int
    retransmits: int
    present_bytes: int
    largest: int
    answered: bool
    idle_ns: int


class LostData(Observer):
    """``data_lost``: messages that begin to arrive and never end, and segments that are sent again and never
    acknowledged.

    By client's host, broker and direction. The receiver acknowledged all that is in the capture, so the capture did not
    lose the rest. Numbers: ``connections``; ``size_bytes`` of the smallest piece that was lost; ``retransmits``;
    ``present_bytes`` of the messages at most; ``answered``: connections that were opened after the first loss and had
    answers before theirs; the ``largest`` segment that arrived on these, and ``largest_before`` on the others; for how
    long all of them had been idle at least when a client sent what was lost (``idle_ns``). Each costs a request and the
    time that was waited.
    """

    kinds = ("data_lost",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rests: dict[int, tuple[int, int, int, int, int]] = {}
        self._paths: Subjects[tuple[str, str, int], tuple[Case, list[_Stuck]]] = context.subjects(
            lambda: (context.case(), []), MAX_STUCK
        )

    def problem(self, problem: Problem) -> None:
        """Takes an incomplete message, or a gap, where the receiver acknowledged nothing beyond what is present."""
        details = problem.details or {}
        if not details.get("unacknowledged") or len(self._rests) >= MAX_WAITING:
            return
        side = 0 if "request" in (details.get("direction"), problem.code.rpartition("_")[2]) else 1
        present = details.get("present_bytes") or 0
        size = (details.get("size_bytes") or 0) - present or details.get("missing_bytes") or 0
        place = problem.packet or 0, problem.timestamp_ns or 0
        self._rests.setdefault(details.get("connection", 0), (side, size, present, *place))

    def connection(self, connection: Connection) -> None:
        rest, again = self._rests.pop(connection.id, None), connection.unacknowledged
        over_ns = connection.closed_ns if connection.closed_by else self.context.end_ns
        if again is not None and again.retransmits >= MANY_TIMES:
            side, size, present, packet, since_ns = again.side, again.size_bytes, 0, again.packet, again.first_ns
        elif (
            rest is not None
            and not _is_left(rest[0], connection)
            and not (rest[0] == 1 and is_arriving(connection, rest[4], over_ns, rest[2]))
            and (connection.closed_by or over_ns - connection.last_ns >= GAVE_UP_NS)
            and over_ns - rest[4] >= (GAVE_UP_NS if connection.closed_by else LATE_NS)
        ):
            side, size, present, packet, since_ns = rest
        else:
            return
        path = self._paths.of((host_of(connection.client), connection.broker, side))
        if path is None:
            return
        case, stuck = path
        waited_ns, answered_ns = max(over_ns - since_ns, 0), self.context.cluster.ended_answer_ns
        case.add(packet, since_ns, waited_ns, until_ns=over_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        if len(stuck) < MAX_STUCK:
            answered = min(connection.bytes) > 0
            idle_ns = max(since_ns - answered_ns, 0) if answered_ns and side == 0 else 0
            # Retransmissions are seen on the sender's side, where nothing shows what arrives.
            largest, times = (0, again.retransmits) if again is not None else (connection.largest_segments[side], 0)
            stuck.append(_Stuck(connection.first_ns, since_ns, size, times, present, largest, answered, idle_ns))

    def observations(self) -> Iterator[Observation]:
        for (host, broker, side), (case, stuck) in self._paths.items():
            first_ns = min(one.since_ns for one in stuck)
            later = [one for one in stuck if one.opened_ns > first_ns and one.answered]
            before = [one for one in stuck if one.opened_ns <= first_ns]
            sizes = [one.size_bytes for one in stuck if one.size_bytes]
            numbers = {
                "direction": ("request", "response")[side],
                "connections": case.count,
                "size_bytes": min(sizes, default=0),
                "retransmits": sum(one.retransmits for one in stuck),
                "present_bytes": max(one.present_bytes for one in stuck),
                "answered": len(later),
                "largest": max((one.largest for one in later), default=0),
                "largest_before": max((one.largest for one in before), default=0),
                "longest_ns": case.most,
                "idle_ns": min(one.idle_ns for one in stuck),
            }
            harm = Harm(requests_failed=case.count, seconds_down=case.total / 1e9)
            yield observation_of("data_lost", case, [f"host:{host}", f"broker:{broker}"], numbers, harm)


def _is_left(side: int, connection: Connection) -> bool:
    """Whether the sender of a message closed the connection before the message had ended."""
    return connection.closed_by == ("client", "broker")[side]


class NarrowPath(Cause):
    """`path_mtu` (error): packets of full size do not arrive, and nobody says so: a "black hole" of path MTU discovery.
    A tunnel or VPN on the way takes smaller packets than the interfaces at the ends, and the ICMP message that should
    say so is dropped (RFC 2923, section 2.1). Seen must be large data that never arrives on a connection which was
    opened after another had got stuck in the same way, and on which short messages had gone both ways before. There
    must be no segment on it that is as large as those which arrived before. A filter that drops large packets looks
    the same. A host that is down answers nothing; a broker that stands still does not begin an answer.
    """

    codes = ("path_mtu",)
    explains = ("data_lost", "unanswered")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By client's host and direction: a narrow part of the path is mostly near the client."""
        large = [one for one in observed.of("data_lost") if one.numbers["size_bytes"] >= LARGE_BYTES]
        paths = grouped(large, lambda one: (one.name("host"), str(one.numbers["direction"])))
        for (host, direction), lost in paths.items():
            if any(one.numbers["answered"] for one in lost):
                yield self._explanation(host, direction, lost, observed)

    def _explanation(self, host: str, direction: str, lost: list[Observation], observed: Observed) -> Explanation:
        brokers = [broker for one in lost for broker in one.named("broker")]
        names = listed(brokers)
        ends = f"{host} to {names}" if direction == "request" else f"{names} to {host}"
        arrived = max(one.numbers["largest"] for one in lost)
        before = max(one.numbers["largest_before"] for one in lost)
        times = sum(one.numbers["retransmits"] for one in lost)
        present = max(one.numbers["present_bytes"] for one in lost)
        connections = sum(one.count for one in lost)
        smallest = min(one.numbers["size_bytes"] for one in lost)
        if times:
            seen = f"{smallest:,} bytes of data were sent again {times} times on {connections} connections"
            seen += " and never acknowledged"
        else:
            seen = f"on {counted(connections, 'connection')} {'requests' if direction == 'request' else 'answers'} "
            seen += f"began ({present} bytes) and never ended" if present else "never arrived"
        limit = f", segments of up to {arrived:,} bytes arrive" if arrived else ""
        later = sum(one.numbers["answered"] for one in lost)
        stands = arrived < max(before, LARGE_BYTES)
        alive = [broker for broker in brokers if self._answers_others(broker, lost)]
        return Explanation(
            code="path_mtu",
            subject=ends,
            title=f"packets of full size do not arrive: {seen}, while short messages were answered{limit}",
            remedy="Something on the way takes smaller packets than the ends think (a tunnel, a VPN, an overlay "
            "network) and the ICMP message that says so is lost; or a filter drops large ones. Try: ping -M do -s "
            "1472. Let ICMP type 3 code 4 (IPv6: type 2) pass, or lower the MTU of the interfaces, or clamp the MSS.",
            explained=(*lost, *_unanswered(observed, lost)),
            supports=(
                f"short messages went both ways on {counted(later, 'connection')} opened after the first loss",
                "the receiver acknowledged what is there and nothing more: it is not the capture that lost the rest",
                *(f"{broker} answered others meanwhile" for broker in alive),
                *([f"before, segments of {before:,} bytes arrived, then of {arrived:,} at most"] * (before > arrived)),
            ),
            contradicts=() if stands else (f"segments of {arrived:,} bytes arrived later, as large as before",),
            stands=stands,
            severity="error",
            numbers={
                "size_bytes": smallest,
                "retransmits": times,
                "largest_bytes": arrived,
                "clients": sorted({client for one in lost for client in one.named("client")}),
            },
            explains=symptoms("broker", brokers, *_FOLLOW, "connection_churn"),
        )

    def _answers_others(self, broker: str, lost: list[Observation]) -> bool:
        return self.context.cluster.last_answer_ns.get(broker, 0) > min(one.first_ns for one in lost)


def _unanswered(observed: Observed, some: list[Observation]) -> list[Observation]:
    """The requests without an answer of the clients, and at the brokers, that these are about."""
    brokers = scope_of("broker", [broker for one in some for broker in one.named("broker")])
    clients = scope_of("client", [client for one in some for client in one.named("client")])
    return [one for one in observed.about(brokers, "unanswered") if one.about & clients]


class IdleForgotten(Cause):
    """`idle_forgotten` (error; warning where they are reset, which clients learn at once): connections work until they
    are idle for some time, and what is sent on them afterwards is lost or answered with a reset. Something on the way
    forgets them: NAT, a firewall, a load balancer. Seen must be two of them, all idle for a second or more before; of
    what is lost also that one of these had been opened, and had worked, after another was lost already. Must not be
    seen: data of the same host that is lost on a connection in use. A broker that closes what is idle sends a FIN,
    which the capture has where the client is alive.
    """

    codes = ("idle_forgotten",)
    explains = ("data_lost", "closed_by_broker", "unanswered")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        resets = [one for one in observed.of("closed_by_broker") if one.numbers["idle_ns"]]
        lost = [one for one in observed.of("data_lost") if one.numbers["direction"] == "request"]
        for host, some in grouped([*lost, *resets], _host_of).items():
            again = any(one.numbers.get("answered", 1) for one in some)
            if sum(one.count for one in some) > 1 and again and all(one.numbers["idle_ns"] >= IDLE_NS for one in some):
                yield self._explanation(host, some, observed)

    def _explanation(self, host: str, some: list[Observation], observed: Observed) -> Explanation:
        brokers, clients = ([name for one in some for name in one.named(kind)] for kind in ("broker", "client"))
        brokers, clients = list(dict.fromkeys(brokers)), list(dict.fromkeys(clients))
        names = [self.context.cluster.broker_text(broker) for broker in brokers]
        idle_ns = min(one.numbers["idle_ns"] for one in some)
        lost = [one for one in some if one.kind == "data_lost"]
        longest_ns = max((one.numbers["longest_ns"] for one in lost), default=0)
        what = "what is sent on connections" if lost else "connections are reset when they are used again"
        then = f" is lost, without a word, for {duration(longest_ns)} at most" if lost else ""
        return Explanation(
            code="idle_forgotten",
            subject=f"{host} to {listed(names)}",
            title=f"{what} after {duration(idle_ns // IDLE_NS * IDLE_NS)} or more without traffic{then}, "
            f"{times(sum(one.count for one in some))}, while new connections work",
            remedy="Something on the way (NAT, firewall, load balancer, proxy) forgets connections that are idle for "
            "so long: set connections.max.idle.ms of the client below that, let TCP send keep-alives "
            "(socket.keepalive.enable), or raise the timeout there. Clients ask again on a new connection.",
            explained=(*some, *_unanswered(observed, lost)),
            supports=tuple(f"{counted(one.count, 'connection')}, {one.kind.replace('_', ' ')}" for one in some),
            severity="error" if lost else "warning",
            numbers={"idle_ns": idle_ns, "brokers": brokers, "clients": clients, "longest_ns": longest_ns},
            explains=symptoms("host", [host], "retransmits")
            | symptoms("broker", brokers, "request_timeout", "broker_stalled", "slow")
            | symptoms("client", clients, "connection_churn", "metadata_storm", "own_queue"),
        )


def _host_of(one: Observation) -> str:
    """The host of the client that an observation is about."""
    return one.name("host") or one.name("client").rpartition(" ")[2]


@cause("data_lost", explains=("data_lost",))
def broken_path(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`data_lost` (error; warning where it is one connection): data is sent and TCP never acknowledges it, or an answer
    begins and never ends. Kernels acknowledge whatever their processes do, so it is the path, or a host that is gone or
    cut off, and not Kafka. Seen must be that the segments were sent again and again, or that the receiver waited after
    it had acknowledged all that came. Where it is only large data, it is `path_mtu`.
    """
    host, broker, times = one.name("host"), one.name("broker"), one.numbers["retransmits"]
    name, longest = context.cluster.broker_text(broker), duration(one.numbers["longest_ns"])
    ends = (host, name) if one.numbers["direction"] == "request" else (name, host)
    alive = context.cluster.last_answer_ns.get(broker, 0) > one.last_ns
    if times:
        title = (
            f"what {ends[0]} sends is lost, or its acknowledgements are: sent again {times} times without one, on "
            f"{counted(one.count, 'connection')} for {longest} at most"
        )
    else:
        title = (
            f"messages begin to arrive and never end, on {counted(one.count, 'connection')}; their receiver "
            f"waited {longest} at most"
        )
    return told(
        one,
        subject=" to ".join(ends),
        title=title,
        remedy="It is the path, or the host is gone (power, network interface, a container that was removed): "
        "a kernel acknowledges whatever its process does. Look at firewalls, security groups, overlay networks "
        "and load balancers between the two, and ping both ways.",
        supports=("TCP acknowledges data whether or not the process reads it",),
        contradicts=(f"{name} answered afterwards",) if alive else (),
        severity="error" if one.count > 1 else "warning",
        numbers={"retransmits": times, "longest_ns": one.numbers["longest_ns"], "clients": one.named("client")},
        explains=symptoms("broker", [broker], "retransmits", "unanswered", "request_timeout", "broker_stalled", "slow"),
    )
