"""Consumers whose application has stopped polling while their heartbeats, from a thread of their own, go on.

Such a member keeps its partitions until ``max.poll.interval.ms`` (5 minutes by default) is over. A consumer with
nothing to read still fetches; one that fetches and commits nothing for long, on connections that stand, is busy, hangs,
or has paused its partitions. One that commits what it has committed before does poll, and gets no further.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.bodies import group_of, request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, is_replica, went_wrong
from kwiresniff.analysis.doctor.observation import HARMLESS, Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import duration, listed
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import (
    CONSUMER_GROUP_HEARTBEAT,
    FETCH,
    HEARTBEAT,
    JOIN_GROUP,
    LEAVE_GROUP,
    OFFSET_COMMIT,
    SYNC_GROUP,
)
from kwiresniff.model import Connection, Exchange

#: A consumer that asks for nothing for so long does not poll; fetches wait for half a second (``fetch.max.wait.ms``).
LONG_NS: Final = 10_000_000_000
#: Heartbeats in that time by which it is alive.
FEW_BEATS = 2
#: Commits of the same offsets by which it polls all the same.
FEW_SAME: Final = 3
#: Partitions of a commit that are compared.
MAX_SHOWN = 20
#: Clients that are remembered.
MAX_MEMBERS = 5_000


class _Member:
    """When a client last fetched or committed anything new (``ns``, 0: not known to fetch), and its heartbeats since;
    what it ``committed`` last, how often since then (``same``), and how often at most in a time that counts: ``vain``,
    of what is in ``stuck``.
    """

    __slots__ = (
        "beat_ns",
        "beats",
        "case",
        "committed",
        "connection",
        "group",
        "ns",
        "packet",
        "same",
        "stuck",
        "vain",
    )

    def __init__(self) -> None:
        self.ns = self.packet = self.connection = self.beats = self.beat_ns = self.same = self.vain = 0
        self.group = ""
        self.committed: list[str] = []
        self.stuck: list[str] = []
        self.case: Case | None = None

    def is_silent(self) -> bool:
        """Whether its heartbeats went on for long while it fetched nothing."""
        return self.ns > 0 and self.beats >= FEW_BEATS and self.beat_ns - self.ns >= LONG_NS

    def note_same(self) -> None:
        """Notes what it committed again and again while it was silent."""
        if self.same > self.vain:
            self.vain, self.stuck = self.same, self.committed


class SilentMembers(Observer):
    """``not_polling``: a member fetched and committed nothing new for 10 s or more on connections that stand, while its
    heartbeats went on.

    Numbers: ``longest_ns``, ``group``; ``same``: how often it committed the same offsets meanwhile, and which
    (``committed``).
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
        api_key = exchange.api_key
        if api_key == FETCH and is_replica(exchange):
            return
        client = client_of(exchange)
        member = self._members.of(client) if api_key == FETCH else self._members.get(client)
        if member is None:
            return
        if api_key in (FETCH, OFFSET_COMMIT):
            if api_key == FETCH or not self._is_same(member, exchange):
                self._polled(member, exchange)
        elif api_key in (HEARTBEAT, CONSUMER_GROUP_HEARTBEAT) and not _moves(exchange):
            self._beat(member, exchange)
        else:
            if api_key == LEAVE_GROUP and member.is_silent() and member.same >= FEW_SAME:
                self._note(member, member.beat_ns)  # else it leaves because it does not poll
            member.ns = 0  # its partitions may be others', or none, from here on

    def failure(self, exchange: Exchange) -> None:
        """A fetch without an answer, or with an error: the client does not wait for its application."""
        if exchange.api_key != FETCH or (member := self._members.get(client_of(exchange))) is None:
            return
        if went_wrong(exchange) or exchange.outcome == "unanswered":
            member.ns = 0
            if member.case is not None and request_place(exchange)[1] <= member.case.last_ns:
                member.case, member.vain = None, 0  # it was under way all the time

    def connection(self, connection: Connection) -> None:
        """A client without a connection to its broker cannot fetch."""
        member = self._on.pop(connection.id, None)
        if member is not None and connection.closed_by:
            if member.is_silent():
                self._note(member, member.beat_ns)
            member.ns = 0

    def _is_same(self, member: _Member, commit: Exchange) -> bool:
        """Whether a member commits again what it has committed before."""
        parts = self.context.parts_in(request_body(commit))[:MAX_SHOWN]
        committed = [f"{topic}-{part.index} at {part.offset}" for topic, part in parts]
        same = committed == member.committed and bool(committed)
        member.same = member.same + 1 if same else 0
        member.committed = committed
        return same

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
        member.same = 0 if exchange.api_key == FETCH else member.same

    def _beat(self, member: _Member, exchange: Exchange) -> None:
        request = exchange.request
        if request is None or exchange.response is None:
            return
        member.beats += 1
        member.beat_ns = request.first_ns
        if not member.group and request.body is not None:
            member.group = group_of(request.body)

    def _note(self, member: _Member, until_ns: int) -> None:
        if member.case is None:
            member.case = self.context.case()
        member.case.add(member.packet, member.ns, until_ns - member.ns, until_ns=until_ns)
        member.note_same()

    def observations(self) -> Iterator[Observation]:
        for client, member in self._members.items():
            case = self.context.case([member.case] if member.case is not None else [])
            if member.is_silent():
                case.add(member.packet, member.ns, member.beat_ns - member.ns, until_ns=member.beat_ns)
                member.note_same()
            if case.count:
                about = [f"client:{client}", *([f"group:{member.group}"] if member.group else [])]
                numbers: dict[str, Any] = {"longest_ns": case.most, "group": member.group or None}
                numbers |= {"same": member.vain, "committed": member.stuck[:5]}
                harm = Harm(seconds_down=case.most / 1e9) if member.vain >= FEW_SAME else HARMLESS
                yield observation_of("not_polling", case, about, numbers, harm)


def _moves(exchange: Exchange) -> bool:
    """Whether a heartbeat was answered with an error, or with another assignment."""
    return bool(exchange.errors) or response_body(exchange).get("assignment") is not None


@cause("not_polling", "polls_in_vain", explains=("not_polling",))
def silent_application(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`not_polling` (warning; info where it goes back each time to records that it had been given, as one does that
    waits until they are due): a member fetches and commits nothing for 10 s or more on connections that stand, and its
    heartbeats go on: its application does not poll, or has paused its partitions. Must not be seen: fetches that find
    nothing, errors, other partitions. That it falls behind is a symptom.

    `polls_in_vain` (warning): it commits the same offsets again meanwhile, 3 times or more, as some clients do at each
    poll after `auto.commit.interval.ms`: it polls, and gets no further: its client cannot decode a record and raises
    the same error at each poll. An application that has paused all its partitions looks the same.
    """
    if one.numbers["same"] >= FEW_SAME:
        return _in_vain(one)
    client, group, longest = one.name("client"), one.name("group"), duration(one.numbers["longest_ns"])
    often = f", {one.count} times, {longest} at most" if one.count > 1 else ""
    later = observed.about(one.about, "read_later")
    is_meant = sum(each.count for each in later) >= one.count
    return told(
        one,
        f"fetched and committed nothing for {longest} while its heartbeats went on{often}"
        f"{f' (group {group})' if group else ''}"
        + (", and then asked for records again that it had been given" if is_meant else ""),
        _MEANT if is_meant else _HANGS,
        supports=tuple(each.sentence for each in later),
        severity="info" if is_meant else "warning",
        explains=symptoms("client", [client], "consumer_lag"),
    )


def _in_vain(one: Observation) -> Explanation:
    numbers, client, group = one.numbers, one.name("client"), one.name("group")
    return told(
        one,
        f"polls and gets no further: for {duration(numbers['longest_ns'])} it fetched nothing, and committed the same "
        f"offsets {numbers['same'] + 1} times{f' (group {group})' if group else ''}: {listed(numbers['committed'], 4)}",
        "Its log has the exception: a record at one of these offsets that cannot be decoded (a deserializer that does "
        "not fit, a record that is damaged) is raised again at each poll until the application seeks behind it. "
        "Look at that record (kwiresniff read -Y 'api == Fetch'), and let the application skip what it cannot decode.",
        code="polls_in_vain",
        doubt="It may have paused all its partitions.",
        severity="warning",
        explains=symptoms("client", [client], "consumer_lag", "partition_not_read", "no_progress"),
    )


_MEANT: Final = (
    "An application that hangs does not go back: this one pauses its partitions, seeks back, and waits, as a delay "
    "queue does until a record is due, or one that tries again after a while."
)
_HANGS: Final = (
    "Its application does not poll, or has paused its partitions, and nobody else reads them meanwhile: look at what "
    "it does with records (a call that hangs, a deadlock, a batch that takes long; a thread dump shows it). After "
    "max.poll.interval.ms the group takes its partitions away."
)
