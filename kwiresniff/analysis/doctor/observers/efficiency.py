"""How much clients do with each request: records of a Produce, records that a Fetch brings, commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, Tally, client_text, is_cut
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.wording import counted, times
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, PRODUCE
from kwiresniff.base.field_values import field_text
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Body, Connection, Exchange, Message

#: Commits, Produce requests and fetches of a client below which nothing is said of them.
ENOUGH_COMMITS = 100
ENOUGH_PRODUCES = 500
ENOUGH_FETCHES = 500
#: How soon a broker closes a connection on which it refuses records that were sent without acknowledgement.
AT_ONCE_NS = 500_000_000
#: Of the first commits of a client the group is noted, of its first empty fetches how long they may wait.
FEW = 3
#: What is remembered of the last records that were sent without acknowledgement on a connection.
_UNASKED_BYTES: Final = ENTRY_BYTES + CONTAINER_BYTES + 3 * NUMBER_BYTES


class RequestSizes(Observer):
    """``commits``, ``produces``, ``empty_fetches``: how many of these a client sent, and what was in them.

    ``unacknowledged_writes``: a client produces with ``acks=0``; ``closed_after_write``: a broker closes connections at
    once after such records; ``old_messages``: records in the format of before Kafka 0.11. Numbers: ``records``,
    ``fetches`` in all, ``longest_wait_ms`` as they ask, ``at_once`` where the broker took less than half of that, ``groups``, ``topics``,
    ``largest_request_bytes``.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        "commits", "produces", "empty_fetches", "unacknowledged_writes", "closed_after_write", "old_messages",
    )  # fmt: skip
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH, OFFSET_COMMIT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._commits = context.tally()
        self._produces = context.tally()
        self._fetches = context.tally()
        self._empty = context.tally()
        self._unsafe = context.tally()
        self._refused = context.tally()
        #: By connection, when its last record without acknowledgement was sent, and in how large a request.
        self._unasked: dict[int, tuple[int, int]] = {}
        self._old = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """Counts an exchange by its API."""
        request, response = exchange.request, exchange.response
        if request is None:
            return
        subject = self.context.client_of(exchange)
        packet, ns = request.first_packet, request.first_ns
        api_key = exchange.api_key
        if api_key == OFFSET_COMMIT:
            case = self._commits.case(subject)
            case.add(packet, ns)
            if request.body is not None and case.count <= FEW:
                case.note("groups", [field_text(request.body.get("group_id"))])
        elif api_key == PRODUCE:
            digest, acks = request.digest, None
            if digest is not None and not digest.is_cut:
                self._count_produce(subject, packet, ns, digest.batches > 0, digest.records, digest.acks)
                acks = digest.acks
            elif request.body is not None:
                self._produce(subject, request.body, packet, ns)
                acks = request.body.get("acks")
            number = exchange.connection.id
            if acks == 0 and (number in self._unasked or self.context.budget.admit(_UNASKED_BYTES)):
                self._unasked[number] = request.last_ns, request.size_bytes
        elif api_key == FETCH and response is not None and not exchange.errors and _is_read(response):
            self._counted(FETCH, self._fetches, subject).count += 1
            if not (exchange.problems and is_cut(exchange, "response")) and not _brings_records(response):
                case = self._empty.case(subject)
                case.add(packet, ns, exchange.latency_ns or 0)
                if case.count <= FEW:
                    case.note("waits", [str((request.body or {}).get("max_wait_ms", 0))])

    def connection(self, connection: Connection) -> None:
        """A broker has no other way to refuse what nobody waits for than to close the connection."""
        unasked = self._unasked.pop(connection.id, None)
        if unasked is None:
            return
        self.context.budget.release(_UNASKED_BYTES)
        asked_ns, size_bytes = unasked
        if connection.closed_by == "broker" and connection.closed_ns - asked_ns <= AT_ONCE_NS:
            client = client_text(connection.client_id, connection.client)
            case = self._refused.case(client, connection.broker)
            # All of them at one moment are those of a broker that stops.
            if abs(connection.closed_ns - case.last_ns) > AT_ONCE_NS:
                case.add(connection.closed_packet or connection.first_packet, connection.closed_ns, size_bytes)

    def _count_produce(
        self, subject: str, packet: int, ns: int, has_batches: bool, records: int, acks: int | None
    ) -> None:
        if has_batches:
            self._counted(PRODUCE, self._produces, subject).add(packet, ns, records)
        if acks == 0:
            self._unsafe.case(subject).add(packet, ns)

    def _counted(self, api_key: int, tally: Tally, subject: str) -> Case:
        """What is counted of a client's requests of an API, which its connection sends all the time."""
        notes = self.context.notes
        if notes is None:
            return tally.case(subject)
        if notes.counted is None or notes.counted_api != api_key:
            notes.counted_api, notes.counted = api_key, tally.case(subject)
        return notes.counted

    def _produce(self, subject: str, body: Body, packet: int, ns: int) -> None:
        records = batches = sealed = 0
        for topic in body.get("topic_data") or ():
            for partition in topic.get("partition_data") or ():
                for batch in partition.get("records") or ():
                    if batch.__class__ is not dict:
                        continue
                    batches += 1
                    records += batch.get("records_count", 1)
                    if batch.get("magic", 2) < 2:
                        # A compressed message of the old format holds others, not counted without opening it.
                        sealed += batch.get("compression") != "none"
                        case = self._old.case(subject)
                        case.add(packet, ns)
                        case.note("topics", [self.context.topic_of(topic)])
        self._count_produce(subject, packet, ns, batches > 0 and not sealed, records, body.get("acks"))

    def observations(self) -> Iterator[Observation]:
        for client, _, case in self._commits:
            if case.count >= ENOUGH_COMMITS:
                groups = case.noted("groups")
                yield _of_client("commits", f"committed offsets {times(case.count)}", client, case, {"groups": groups})
        for client, _, case in self._produces:
            if case.count >= ENOUGH_PRODUCES:
                text = f"sent {counted(case.total, 'record')} in {case.count:,} requests"
                yield _of_client("produces", text, client, case, {"records": case.total, "requests": case.count})
        for client, _, case in self._empty:
            known = self._fetches.known(client)
            whole = known.count if known is not None else case.count
            if whole >= ENOUGH_FETCHES:
                wait_ms = max((int(wait) for wait in case.noted("waits")), default=0)
                numbers = {
                    "fetches": whole,
                    "longest_wait_ms": wait_ms,
                    "at_once": case.total < case.count * wait_ms * MILLISECOND_NS / 2,
                }
                text = f"was given nothing by {case.count:,} of {whole:,} fetches"
                yield _of_client("empty_fetches", text, client, case, numbers)
        for client, _, case in self._unsafe:
            text = f"produced without acknowledgement {times(case.count)}"
            yield _of_client("unacknowledged_writes", text, client, case, {})
        for client, broker, case in self._refused:
            if case.count:
                yield observation_of(
                    "closed_after_write",
                    f"{broker} closed connections of {client} at once after records with acks=0, {times(case.count)}",
                    case,
                    {f"client:{client}", f"broker:{broker}"},
                    {"broker": broker, "largest_request_bytes": case.most},
                )
        for client, _, case in self._old:
            text = f"wrote messages of before Kafka 0.11 {times(case.count)}"
            yield _of_client("old_messages", text, client, case, {"topics": case.noted("topics")})


def _of_client(kind: str, what: str, client: str, case: Case, numbers: dict[str, Any]) -> Observation:
    return observation_of(kind, f"{client} {what}", case, {f"client:{client}"}, numbers)


def _is_read(message: Message) -> bool:
    return message.digest is not None or message.body is not None


def _brings_records(response: Message) -> bool:
    digest = response.digest
    if digest is not None:
        return digest.batches > 0 or digest.is_cut
    for topic in (response.body or {}).get("responses") or ():
        for partition in topic.get("partitions") or topic.get("partition_responses") or ():
            if partition.get("records"):
                return True
    return False
