"""How much clients do with each request: records of a Produce, records that a Fetch brings, commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, client_text, is_cut
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, NUMBER_BYTES
from kwiresniff.base.api_keys import FETCH, OFFSET_COMMIT, PRODUCE
from kwiresniff.base.field_values import field_text
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
    ``fetches`` in all, ``longest_wait_ms`` as they ask, ``at_once`` where they were not held, ``groups``, ``topics``,
    ``largest_request_bytes``.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        "commits", "produces", "empty_fetches", "unacknowledged_writes", "closed_after_write", "old_messages",
    )  # fmt: skip
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH, OFFSET_COMMIT})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        #: By kind; with all fetches of each client, of which ``empty_fetches`` are a part.
        self._cases = {kind: context.tally() for kind in (*self.kinds, "fetches")}
        #: By connection, when its last record without acknowledgement was sent, and in how large a request.
        self._unasked: dict[int, tuple[int, int]] = {}

    def exchange(self, exchange: Exchange) -> None:
        """Counts an exchange by its API."""
        request, response = exchange.request, exchange.response
        if request is None:
            return
        client, packet, ns = client_of(exchange), request.first_packet, request.first_ns
        if exchange.api_key == OFFSET_COMMIT:
            case = self._cases["commits"].case(client)
            case.add(packet, ns)
            if request.body is not None and case.count <= FEW:
                case.note("groups", [field_text(request.body.get("group_id"))])
        elif exchange.api_key == PRODUCE:
            self._produce(exchange, client, request)
        elif response is not None and not exchange.errors and _is_read(response):
            self._cases["fetches"].case(client).count += 1
            if not (exchange.problems and is_cut(exchange, "response")) and not _brings_records(response):
                case = self._cases["empty_fetches"].case(client)
                case.add(packet, ns, exchange.waiting == "long poll")
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
            case = self._cases["closed_after_write"].case(client, connection.broker)
            # All of them at one moment are those of a broker that stops.
            if abs(connection.closed_ns - case.last_ns) > AT_ONCE_NS:
                case.add(connection.closed_packet or connection.first_packet, connection.closed_ns, size_bytes)

    def _produce(self, exchange: Exchange, client: str, request: Message) -> None:
        packet, ns, digest = request.first_packet, request.first_ns, request.digest
        acks: int | None
        if digest is not None and not digest.is_cut:
            has_batches, records, acks = digest.batches > 0, digest.records, digest.acks
        elif request.body is not None:
            has_batches, records, acks = self._read(client, request, request.body)
        else:
            return
        if has_batches:
            self._cases["produces"].case(client).add(packet, ns, records)
        if acks == 0:
            self._cases["unacknowledged_writes"].case(client).add(packet, ns)
            number = exchange.connection.id
            if number in self._unasked or self.context.budget.admit(_UNASKED_BYTES):
                self._unasked[number] = request.last_ns, request.size_bytes

    def _read(self, client: str, request: Message, body: Body) -> tuple[bool, int, int | None]:
        """Whether the records of a Produce that has no digest can be counted, how many there are, and its acks."""
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
                        case = self._cases["old_messages"].case(client)
                        case.add(request.first_packet, request.first_ns)
                        case.note("topics", [self.context.topic_of(topic)])
        return batches > 0 and not sealed, records, body.get("acks")

    def observations(self) -> Iterator[Observation]:
        """By client, and of connections that were closed by broker."""
        enough = {"commits": ENOUGH_COMMITS, "produces": ENOUGH_PRODUCES}
        for kind in self.kinds:
            for client, broker, case in self._cases[kind]:
                numbers = self._numbers(kind, client, case)
                if case.count >= enough.get(kind, 1) and numbers.get("fetches", ENOUGH_FETCHES) >= ENOUGH_FETCHES:
                    about = [f"client:{client}", *([f"broker:{broker}"] if broker else [])]
                    yield observation_of(kind, case, about, {"broker": broker, **numbers} if broker else numbers)

    def _numbers(self, kind: str, client: str, case: Case) -> dict[str, Any]:
        if kind == "commits":
            return {"groups": case.noted("groups")}
        if kind == "produces":
            return {"records": case.total, "requests": case.count}
        if kind == "empty_fetches":
            known = self._cases["fetches"].known(client)
            wait_ms = max((int(wait) for wait in case.noted("waits")), default=0)
            return {
                "fetches": known.count if known is not None else case.count,
                "longest_wait_ms": wait_ms,
                "at_once": wait_ms > 0 and case.total < case.count / 2,
            }
        if kind == "closed_after_write":
            return {"largest_request_bytes": case.most}
        return {"topics": case.noted("topics")} if kind == "old_messages" else {}


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
