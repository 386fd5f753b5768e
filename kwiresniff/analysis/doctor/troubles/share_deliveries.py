"""What members of share groups do with the records that they acquire (KIP-932).

A member acquires records by ShareFetch while the acquisition lock lasts, and accepts, releases or rejects them in
ShareAcknowledge or its next ShareFetch. Released records, and those of an expired lock, are delivered again until the
limit of deliveries is reached.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.bodies import group_of, request_body, response_body
from kwiresniff.analysis.doctor.cause import Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, clipped
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, duration, listed, times
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.base.api_keys import SHARE_ACKNOWLEDGE, SHARE_FETCH
from kwiresniff.base.field_values import field_number, field_text
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Body, Exchange

#: A member that restarts costs one delivery.
MANY_DELIVERIES = 3
#: Records that come to another member so much later had to wait for the end of the lock.
WAITED_NS: Final = 1_000_000_000
#: A member that asks for nothing for so long is gone, or hangs, where its lock is over.
SILENT_NS: Final = 10_000_000_000
#: The epoch with which a member ends its share session.
FINAL_EPOCH: Final = -1
#: Groups with a topic, and acquired batches of a member, that are remembered.
MAX_GROUPS = 1_000
MAX_ACQUIRED = 1_000
RELEASE: Final = 2
REJECT: Final = 3
INVALID_RECORD_STATE: Final = 121


class _Deliveries:
    """The deliveries and acknowledgements of a topic's records in a group."""

    __slots__ = (
        "acquired",
        "held",
        "held_records",
        "late",
        "lock_ms",
        "most",
        "often",
        "rejected",
        "released",
        "repeated",
    )

    def __init__(self, context: Context) -> None:
        self.late: Case = context.case()
        self.repeated: Case = context.case()
        self.held: Case = context.case()
        self.lock_ms = self.most = self.held_records = 0
        #: Records delivered for the ``MANY_DELIVERIES``-th time; acknowledgements that released or rejected records.
        self.often = self.released = self.rejected = 0
        #: When a batch was acquired, by which client and in which packet, and its records, by member, partition and
        #: first offset.
        self.acquired: dict[tuple[str, int, int], tuple[int, str, int, int]] = {}


class ShareDeliveries(Observer):
    """``late_acknowledgements``: members of a share group acknowledged records that were not theirs any more;
    ``held_by_lock``: a member acquired records and asked for nothing more, and others got them a second later or more,
    or had not got them when the lock was over (``over`` false);
    ``delivered_again``: records were delivered to a share group 3 times or more.

    By group and topic. Numbers of ``held_by_lock``: ``records``, ``waited_ns`` at most, ``lock_ms`` (0 where it is not
    known); of the first: ``longest_ns`` from acquisition to acknowledgement, ``lock_ms``; of the last: ``records``,
    ``deliveries`` at most, how many acknowledgements ``released`` and ``rejected`` records of the topic.
    """

    kinds = ("late_acknowledgements", "held_by_lock", "delivered_again")
    apis = frozenset({SHARE_FETCH, SHARE_ACKNOWLEDGE})
    judges = frozenset({"INVALID_RECORD_STATE"})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._topics: Subjects[tuple[str, str], _Deliveries] = context.subjects(
            lambda: _Deliveries(context), 20, MAX_GROUPS
        )
        self._heard: dict[str, int] = {}  # when members asked for something last

    def exchange(self, exchange: Exchange) -> None:
        request, response = request_body(exchange), response_body(exchange)
        if not request:
            return
        group_id, member = group_of(request), clipped(field_text(request.get("member_id")))
        if member in self._heard or self.context.has_room(self._heard, MAX_GROUPS, member):
            self._heard[member] = request_place(exchange)[1]
        if request.get("share_session_epoch") == FINAL_EPOCH:  # it releases what it has left
            for (group, _), of_topic in self._topics.items():
                if group == group_id:
                    of_topic.acquired = {key: one for key, one in of_topic.acquired.items() if key[0] != member}
        refused: set[tuple[str, int]] = set()
        for topic, part in self.context.members(response, "responses"):
            codes = part.get("acknowledge_error_code"), part.get("error_code")
            if INVALID_RECORD_STATE in codes:
                refused.add((topic, field_number(part.get("partition_index"))))
        for topic, part in self.context.members(request):
            known = self._topics.of((group_id, topic)) if part.get("acknowledgement_batches") else None
            if known is not None:
                self._acknowledge(exchange, known, member, topic, part, refused)
        for topic, part in self.context.members(response, "responses"):
            known = self._topics.of((group_id, topic)) if part.get("acquired_records") else None
            if known is not None:
                self._acquire(exchange, known, member, topic, part)

    def _acknowledge(
        self, exchange: Exchange, known: _Deliveries, member: str, topic: str, part: Body, refused: set[tuple[str, int]]
    ) -> None:
        index = field_number(part.get("partition_index"))
        packet, ns = request_place(exchange)
        since_ns = ns
        for batch in part["acknowledgement_batches"]:
            first, last = field_number(batch.get("first_offset")), field_number(batch.get("last_offset"))
            types = batch.get("acknowledge_types") or ()
            each = last - first + 1 if len(types) == 1 else 1
            known.released += each * sum(one == RELEASE for one in types)
            known.rejected += each * sum(one == REJECT for one in types)
            since_ns = min(since_ns, known.acquired.pop((member, index, first), (ns, "", 0, 0))[0])
        if (topic, index) in refused:
            known.late.add(packet, ns, ns - since_ns)
            known.late.note("clients", [client_of(exchange)])
            known.late.note("partitions", [f"{topic}-{index}"])

    def _acquire(self, exchange: Exchange, known: _Deliveries, member: str, topic: str, part: Body) -> None:
        index, (packet, ns) = field_number(part.get("partition_index")), place_of(exchange)
        lock_ms = field_number(response_body(exchange).get("acquisition_lock_timeout_ms"))
        known.lock_ms = lock_ms or known.lock_ms
        for batch in part["acquired_records"]:
            first, last = field_number(batch.get("first_offset")), field_number(batch.get("last_offset"))
            count = field_number(batch.get("delivery_count"))
            if count > 1:
                self._wait(known, member, (index, first), last - first + 1, packet, ns)
            if self.context.has_room(known.acquired, MAX_ACQUIRED, member, entries=3):
                known.acquired[member, index, first] = ns, client_of(exchange), packet, last - first + 1
            known.most = max(known.most, count)
            if count >= MANY_DELIVERIES:
                known.often += last - first + 1 if count == MANY_DELIVERIES else 0
                known.repeated.add(packet, ns)
                known.repeated.note("clients", [client_of(exchange)])
                known.repeated.note("partitions", [f"{topic}-{index} from {first}"])

    def _wait(
        self, known: _Deliveries, member: str, place: tuple[int, int], records: int, packet: int, ns: int
    ) -> None:
        """Records that another member had acquired, and nothing was heard of it since."""
        for key, (acquired_ns, client, *_) in known.acquired.items():
            waits = ns - max(acquired_ns, self._heard.get(key[0], ns)) >= WAITED_NS
            if key[0] != member and key[1:] == place and waits:
                known.held.add(packet, acquired_ns, ns - acquired_ns, until_ns=ns)
                known.held.note("clients", [client])
                known.held_records += records
                del known.acquired[key]
                break

    def _held(self, known: _Deliveries) -> tuple[Case, int]:
        """The records that others had to wait for, and those that nobody has got though the lock is over, of members
        that ask for nothing more."""
        case, records, end_ns = self.context.case([known.held]), known.held_records, self.context.end_ns
        for (member, *_), (acquired_ns, client, packet, count) in known.acquired.items():
            patience_ns = max(known.lock_ms * MILLISECOND_NS, SILENT_NS)
            if end_ns - acquired_ns >= patience_ns and end_ns - self._heard.get(member, end_ns) >= SILENT_NS:
                case.add(packet, acquired_ns, end_ns - acquired_ns, until_ns=end_ns)
                case.note("clients", [client])
                records += count
        return case, records

    def observations(self) -> Iterator[Observation]:
        for (group_id, topic), known in self._topics.items():
            about = {f"group:{group_id}", f"topic:{topic}"}
            late, repeated, (held, records) = known.late, known.repeated, self._held(known)
            if held.count:
                waits = {"records": records, "waited_ns": held.most, "lock_ms": known.lock_ms}
                waits["over"] = records == known.held_records
                harm = Harm(requests_late=held.count, late_ns=held.total)
                yield observation_of("held_by_lock", held, about, {"group": group_id, **waits}, harm)
            if late.count:
                numbers = {"group": group_id, "longest_ns": late.most, "lock_ms": known.lock_ms}
                yield observation_of("late_acknowledgements", late, about, numbers, Harm(requests_failed=late.count))
            if repeated.count:
                again = {
                    "group": group_id,
                    "records": max(known.often, 1),
                    "deliveries": known.most,
                    "released": known.released,
                    "rejected": known.rejected,
                    "from": repeated.noted("partitions"),
                }
                yield observation_of("delivered_again", repeated, about, again)


@cause("share_lock_expired", explains=("late_acknowledgements", "delivered_again"))
def expired_lock(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`share_lock_expired` (warning): members of a share group acknowledge records that are not theirs any more
    (INVALID_RECORD_STATE): the acquisition lock had ended, and the group gave the records to somebody else, or will.
    Seen must be the refused acknowledgement; that it came later than the lock lasts speaks for it.
    """
    numbers, clients, topic = one.numbers, one.named("client"), one.name("topic")
    lock_ns, longest_ns = numbers["lock_ms"] * MILLISECOND_NS, numbers["longest_ns"]
    outlasted = 0 < lock_ns < longest_ns
    lock = f", longer than the lock on them lasts ({duration(lock_ns)})" if outlasted else ""
    again = [
        each
        for each in observed.about([f"group:{numbers['group']}"], "delivered_again")
        if topic in each.named("topic") and not each.numbers["released"]
    ]
    return told(
        one,
        subject=f"group {numbers['group']}",
        title=f"{listed(clients)} acknowledged records of {topic} that were not theirs any more "
        f"(INVALID_RECORD_STATE), {times(one.count)}, up to {duration(longest_ns)} after they had acquired "
        f"them{lock}: what they did is done again",
        remedy="Let a member acquire fewer records at a time (max.poll.records with "
        "share.acquire.mode=record_limit), acknowledge each when it is done, or renew the lock (KIP-1222); or "
        "raise share.record.lock.duration.ms of the group.",
        explained=(one, *again),
        supports=(f"the lock lasts {duration(lock_ns)}",) if lock_ns else (),
        contradicts=()
        if outlasted or not lock_ns
        else (f"{duration(longest_ns)} after the acquisition that was seen is before the end of the lock",),
        numbers={**numbers, "topic": topic, "clients": clients},
        severity="warning",
    )


@cause("share_lock_held", explains=("held_by_lock",))
def held_by_lock(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`share_lock_held` (warning): a member of a share group acquired records, and nothing was heard of it since: it
    was killed, or hangs. Others get these records only when the acquisition lock is over, and, where it has partitions
    for itself, when the group gives these to them (`share.session.timeout.ms`). A member that leaves in order releases
    what it has.
    """
    numbers, clients, topic = one.numbers, one.named("client"), one.name("topic")
    waited = duration(numbers["waited_ns"])
    got = f"others got them {waited} later, when the lock on them was over"
    missing = f"others had not got them all {waited} later, after the end of the lock"
    lock = f" (share.record.lock.duration.ms {duration(numbers['lock_ms'] * MILLISECOND_NS)})" * bool(
        numbers["lock_ms"]
    )
    return told(
        one,
        subject=f"group {numbers['group']}",
        title=f"{listed(clients)} acquired {counted(numbers['records'], 'record')} of {topic} and asked for nothing "
        f"more: {got if numbers['over'] else missing}{lock}",
        remedy="See why that member ended or hangs. To make others wait less, lower share.record.lock.duration.ms of "
        "the group to what the work on one fetch takes, and share.session.timeout.ms; let members acquire fewer "
        "records at a time (max.poll.records with share.acquire.mode=record_limit).",
        numbers={**numbers, "topic": topic, "clients": clients},
        severity="warning",
    )


@cause("share_redelivery", explains=("delivered_again",))
def returned_records(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`share_redelivery` (warning): records are delivered to a share group 3 times or more: its members release them
    again and again, or lose them by an end of the lock, until the limit of deliveries is reached (5 by default) and
    nobody gets them any more. Records that no member can process look like that.
    """
    numbers, clients, topic = one.numbers, one.named("client"), one.name("topic")
    released, rejected = numbers["released"], numbers["rejected"]
    how = f"{listed(clients)} released records {times(released)}" if released else "the lock on them ended"
    if rejected:
        how += f" and rejected {counted(rejected, 'record')}, which nobody gets again"
    return told(
        one,
        subject=f"group {numbers['group']}",
        title=f"{counted(numbers['records'], 'record')} of {topic} {_was(numbers['records'])} delivered up to "
        f"{numbers['deliveries']} times ({listed(numbers['from'])}): {how}",
        remedy="Records that no member can process: look at the first of them (kwiresniff read -Y 'api == "
        "ShareFetch') and at the log of the members. After group.share.delivery.count.limit deliveries (5 by "
        "default) they are archived without having been processed: reject them at once, or write them to a "
        "topic of their own.",
        numbers={**numbers, "topic": topic, "clients": clients},
        severity="warning",
    )


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
