"""The path between clients and brokers, as TCP shows it.

The time of the path is measured at the capture point between a SYN and its answer, which the broker's kernel sends at
once. Beside the broker that is nothing, beside the client the whole path.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import is_arriving
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_text
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import counted, duration
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, text_bytes
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection, Problem

#: Within a data centre a round trip takes less than a millisecond or two, between those of a region a few.
LONG_NS: Final = 20_000_000
#: Connections that have not ended and wait for the rest of a message.
MAX_WAITING: Final = 2_000
#: Connections of one path that are held against each other.
MAX_STUCK: Final = 100
#: Who closes a connection sooner was not waiting, but leaving; a capture that ends sooner may just not have the rest.
GAVE_UP_NS: Final = 1_000_000_000
LATE_NS: Final = 5_000_000_000
#: How often a segment was sent again before its loss counts as more than chance.
MANY_TIMES: Final = 3


class PathTimes(Observer):
    """``path_time``: the shortest time of the handshakes between a client's host and a broker.

    The shortest one, because others met a busy machine. Numbers: ``round_trip_ns``. From ``LONG_NS`` on it costs each
    request that long.
    """

    kinds: ClassVar[tuple[str, ...]] = ("path_time",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._paths = context.tally()
        self._shortest_ns: dict[Case, int] = {}

    def connection(self, connection: Connection) -> None:
        """Takes one of which the capture has the SYN and its answer."""
        if connection.path_ns is None:
            return
        case = self._paths.case(host_of(connection.client), connection.broker)
        case.add(connection.first_packet, connection.first_ns, _responses(connection), until_ns=connection.last_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        self._shortest_ns[case] = min(self._shortest_ns.get(case, connection.path_ns), connection.path_ns)

    def observations(self) -> Iterator[Observation]:
        """One for each host and broker."""
        for host, broker, case in self._paths:
            path_ns = self._shortest_ns[case]
            late = Harm(requests_late=case.total, late_ns=case.total * path_ns)
            yield observation_of(
                "path_time",
                f"from {host} to {self.context.cluster.broker_text(broker)} and back took {duration(path_ns)} at least "
                f"in {counted(case.count, 'handshake')}",
                case,
                [f"host:{host}", f"broker:{broker}"],
                {"round_trip_ns": path_ns},
                late if path_ns >= LONG_NS else HARMLESS,
            )


def _responses(connection: Connection) -> int:
    """How many requests of a connection were answered."""
    return sum(connection.exchanges.get(outcome, 0) for outcome in ("ok", "error"))


class _Stuck(NamedTuple):
    """A connection on which data was lost for good: of what size, how often it was sent again, how many bytes of the
    message are there, when it was opened and since when its receiver waited.
    """

    opened_ns: int
    since_ns: int
    size_bytes: int
    retransmits: int
    present_bytes: int
    largest: int
    answered: bool


class LostData(Observer):
    """``data_lost``: messages that begin to arrive and never end, and segments that are sent again and never
    acknowledged.

    By client's host, broker and direction. The receiver acknowledged what is there and nothing more, so it was not the
    capture that lost the rest; who closes at once was not waiting for it. Numbers: ``connections`` that ended so;
    ``size_bytes`` of the smallest piece that was lost; ``retransmits``; ``present_bytes`` of the messages at most;
    ``answered``, those of the connections that were opened after the first loss and had answers before theirs;
    ``largest``, the largest segment that arrived on these, and ``largest_before`` on the others. Each costs a request,
    and the time for which it was waited for.
    """

    kinds: ClassVar[tuple[str, ...]] = ("data_lost",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._rests: dict[int, tuple[int, int, int, int, int]] = {}
        self._paths: dict[tuple[str, str, int], tuple[Case, list[_Stuck]]] = {}

    def problem(self, problem: Problem) -> None:
        """Takes a message without its end, or a hole, if the receiver acknowledged nothing behind what is there."""
        details = problem.details or {}
        if not details.get("unacknowledged") or len(self._rests) >= MAX_WAITING:
            return
        side = 0 if "request" in (details.get("direction"), problem.code.rpartition("_")[2]) else 1
        present = details.get("present_bytes") or 0
        size = (details.get("size_bytes") or 0) - present or details.get("missing_bytes") or 0
        place = problem.packet or 0, problem.timestamp_ns or 0
        self._rests.setdefault(details.get("connection", 0), (side, size, present, *place))

    def connection(self, connection: Connection) -> None:
        """Takes one that has ended while its receiver waited."""
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
        path = self._path(host_of(connection.client), connection.broker, side)
        if path is None:
            return
        case, stuck = path
        waited_ns = max(over_ns - since_ns, 0)
        case.add(packet, since_ns, waited_ns, until_ns=over_ns)
        case.note("clients", [client_text(connection.client_id, connection.client)])
        if len(stuck) < MAX_STUCK:
            answered = min(connection.bytes) > 0
            # Where segments are seen that are sent again, it is the sender's side, and what arrives is not seen.
            largest, times = (0, again.retransmits) if again is not None else (connection.largest_segments[side], 0)
            stuck.append(_Stuck(connection.first_ns, since_ns, size, times, present, largest, answered))

    def _path(self, host: str, broker: str, side: int) -> tuple[Case, list[_Stuck]] | None:
        path = self._paths.get((host, broker, side))
        if path is None:
            size = CONTAINER_BYTES + MAX_STUCK * ENTRY_BYTES + text_bytes(host, broker)
            if len(self._paths) < MAX_SUBJECTS and self.context.budget.admit(size):
                path = self._paths[host, broker, side] = self.context.case(), []
        return path

    def observations(self) -> Iterator[Observation]:
        """One for each host, broker and direction."""
        for (host, broker, side), (case, stuck) in self._paths.items():
            first_ns = min(one.since_ns for one in stuck)
            later = [one for one in stuck if one.opened_ns > first_ns and one.answered]
            before = [one for one in stuck if one.opened_ns <= first_ns]
            sizes = [one.size_bytes for one in stuck if one.size_bytes]
            name = self.context.cluster.broker_text(broker)
            ends = f"{host} to {name}" if side == 0 else f"{name} to {host}"
            present = max(one.present_bytes for one in stuck)
            what = f"a message began to arrive ({present} bytes of it)" if present else "data was sent"
            yield observation_of(
                "data_lost",
                f"from {ends}, on {counted(case.count, 'connection')}, {what} and the rest was never received, for "
                f"{duration(case.most)} at most",
                case,
                [f"host:{host}", f"broker:{broker}"],
                {
                    "direction": ("request", "response")[side],
                    "connections": case.count,
                    "size_bytes": min(sizes, default=0),
                    "retransmits": sum(one.retransmits for one in stuck),
                    "present_bytes": present,
                    "answered": len(later),
                    "largest": max((one.largest for one in later), default=0),
                    "largest_before": max((one.largest for one in before), default=0),
                    "longest_ns": case.most,
                },
                Harm(requests_failed=case.count, seconds_down=case.total / 1e9),
            )


def _is_left(side: int, connection: Connection) -> bool:
    """Whether it is the sender of a message that closed the connection before the message had ended."""
    return connection.closed_by == ("client", "broker")[side]
