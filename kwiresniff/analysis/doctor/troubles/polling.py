"""Consumers whose application has stopped polling: heartbeats come from a thread of their own and go on.

Such a member keeps its partitions until ``max.poll.interval.ms`` (5 minutes by default) is over, and nobody reads
them. A consumer with nothing to read still asks, again and again; one that fetches and commits nothing for long, on
connections that stand, is busy with what it has, hangs, or has paused its partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped, is_replica, went_wrong
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.places import place_of
from kwiresniff.base.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from kwiresniff.base.field_values import field_text
from kwiresniff.model import Connection, Exchange

#: A consumer that asks for nothing for so long does not poll; between two fetches that found nothing, half a second
#: passes (fetch.max.wait.ms).
LONG_NS: Final = 10_000_000_000
#: Heartbeats in that time that show it alive.
FEW_BEATS = 2
#: Clients that are remembered.
MAX_MEMBERS = 5_000


class _Member:
    """When a client last fetched or committed, and its heartbeats since. ``ns`` of 0: it is not known to fetch."""

    __slots__ = ("beat_ns", "beats", "case", "connection", "group", "ns", "packet")

    def __init__(self) -> None:
        self.ns = 0
        self.packet = 0
        self.connection = 0
        self.beats = 0
        self.beat_ns = 0
        self.group = ""
        self.case: Case | None = None

    def is_silent(self) -> bool:
        """Whether its heartbeats went on for long while it fetched nothing."""
        return self.ns > 0 and self.beats >= FEW_BEATS and self.beat_ns - self.ns >= LONG_NS


class SilentMembers(Observer):
    """``not_polling``: a member fetched and committed nothing for 10 s or more on connections that stand, while its
    heartbeats went on.

    Numbers: ``longest_ns``, ``group``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("not_polling",)
    apis: ClassVar[frozenset[int] | None] = frozenset({
        FETCH, OFFSET_COMMIT, HEARTBEAT, CONSUMER_GROUP_HEARTBEAT, JOIN_GROUP, SYNC_GROUP, LEAVE_GROUP,
    })  # fmt: skip

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._members: Subjects[str, _Member] = context.subjects(_Member, 6, MAX_MEMBERS)
        self._on: dict[int, _Member] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Notes a sign of an application that polls, or of a client that lives."""
        api_key = exchange.api_key
        if api_key == FETCH and is_replica(exchange):
            return
        client = client_of(exchange)
        member = self._members.get(client)
        if member is None and api_key == FETCH:
            member = self._members.of(client)
        if member is None:
            return
        if api_key in (FETCH, OFFSET_COMMIT):
            self._polled(member, exchange)
        elif api_key in (HEARTBEAT, CONSUMER_GROUP_HEARTBEAT) and not _moves(exchange):
            self._beat(member, exchange)
        else:
            member.ns = 0  # its partitions may be others', or none, from here on

    def failure(self, exchange: Exchange) -> None:
        """A fetch that was not answered, or that brought an error: what the client waits for is not its application."""
        if exchange.api_key != FETCH or (member := self._members.get(client_of(exchange))) is None:
            return
        if went_wrong(exchange) or exchange.outcome == "unanswered":
            member.ns = 0

    def connection(self, connection: Connection) -> None:
        """One that was closed: a client that has lost its broker has nobody to ask."""
        member = self._on.pop(connection.id, None)
        if member is not None and connection.closed_by:
            if member.is_silent():
                self._note(member, member.beat_ns)
            member.ns = 0

    def _polled(self, member: _Member, exchange: Exchange) -> None:
        packet, ns = place_of(exchange)
        response, request = exchange.response, exchange.request
        begun_ns = request.first_ns if request is not None else ns
        if member.is_silent() and begun_ns - member.ns >= LONG_NS:
            self._note(member, begun_ns)
        if response is not None and (exchange.api_key == FETCH or member.ns):
            member.packet, member.ns = packet, max(member.ns, response.last_ns)
        if exchange.api_key == FETCH and member.connection != exchange.connection.id:
            if self._on.get(member.connection) is member:
                del self._on[member.connection]
            member.connection = exchange.connection.id
            self._on[member.connection] = member
        member.beats = 0

    def _beat(self, member: _Member, exchange: Exchange) -> None:
        request = exchange.request
        if request is None or exchange.response is None:
            return
        member.beats += 1
        member.beat_ns = request.first_ns
        if not member.group and request.body is not None:
            member.group = clipped(field_text(request.body.get("group_id")))

    def _note(self, member: _Member, until_ns: int) -> None:
        if member.case is None:
            member.case = self.context.case()
        member.case.add(member.packet, member.ns, until_ns - member.ns, until_ns=until_ns)

    def observations(self) -> Iterator[Observation]:
        for client, member in self._members.items():
            case = self.context.case()
            if member.case is not None:
                case.merge(member.case)
                case.most = member.case.most
            if member.is_silent():
                case.add(member.packet, member.ns, member.beat_ns - member.ns, until_ns=member.beat_ns)
            if not case.count:
                continue
            group = member.group
            yield observation_of(
                "not_polling",
                case,
                {f"client:{client}", *([f"group:{group}"] if group else [])},
                {"longest_ns": case.most, "group": group or None},
            )


def _moves(exchange: Exchange) -> bool:
    """Whether a heartbeat was answered with an error, or with another assignment."""
    body = exchange.response.body if exchange.response is not None else None
    return bool(exchange.errors) or (body or {}).get("assignment") is not None
