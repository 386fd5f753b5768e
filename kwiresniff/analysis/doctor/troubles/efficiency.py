"""How much clients do with each request: records of a Produce, of a transaction, that a Fetch brings, commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, is_cut
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.base.api_keys import END_TXN, FETCH, OFFSET_COMMIT, PRODUCE
from kwiresniff.base.field_values import field_text
from kwiresniff.base.time_units import MILLISECOND_NS
from kwiresniff.model import Body, Exchange, Message

#: Commits of offsets and of transactions, Produce requests and fetches of a client below which nothing is said of them.
ENOUGH_COMMITS = 100
ENOUGH_PRODUCES = 100
ENOUGH_FETCHES = 500
#: Of the first commits of a client the group is noted, of its first empty fetches how long they may wait.
FEW = 3


class RequestSizes(Observer):
    """``commits``, ``produces``, ``empty_fetches``: how many of these a client sent, and what was in them;
    ``transactions``: how many it ended.

    ``old_messages``: records in the format of before Kafka 0.11. Numbers: ``records``, ``requests`` that wrote them,
    ``alone`` of them while no other was under way, ``waited_ns`` for the answers to these and to EndTxn, ``fetches`` in
    all, ``longest_wait_ms`` as they ask, ``at_once`` where the broker took less than half of that, ``groups``,
    ``topics``.
    """

    kinds: ClassVar[tuple[str, ...]] = (
        "commits", "produces", "transactions", "empty_fetches", "old_messages",
    )  # fmt: skip
    apis: ClassVar[frozenset[int] | None] = frozenset({PRODUCE, FETCH, OFFSET_COMMIT, END_TXN})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        #: By kind; with all fetches of each client, of which ``empty_fetches`` are a part, and those of its Produce
        #: requests that it sent ``alone``.
        self._cases = {kind: context.tally() for kind in (*self.kinds, "fetches", "alone")}

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
        elif exchange.api_key == END_TXN:
            self._cases["transactions"].case(client).add(packet, ns, exchange.latency_ns or 0)
        elif response is not None and not exchange.errors and _is_read(response):
            self._cases["fetches"].case(client).count += 1
            if not (exchange.problems and is_cut(exchange, "response")) and not _brings_records(response):
                case = self._cases["empty_fetches"].case(client)
                case.add(packet, ns, exchange.latency_ns or 0)
                if case.count <= FEW:
                    case.note("waits", [str((request.body or {}).get("max_wait_ms", 0))])

    def _produce(self, exchange: Exchange, client: str, request: Message) -> None:
        packet, ns, digest = request.first_packet, request.first_ns, request.digest
        if digest is not None and not digest.is_cut:
            has_batches, records = digest.batches > 0, digest.records
        elif request.body is not None:
            has_batches, records = self._read(client, request, request.body)
        else:
            return
        if has_batches:
            self._cases["produces"].case(client).add(packet, ns, records)
            alone, response = self._cases["alone"].case(client), exchange.response
            if response is not None:
                if ns >= alone.last_ns:
                    alone.add(packet, ns, response.last_ns - ns)
                alone.last_ns = max(alone.last_ns, response.last_ns)

    def _read(self, client: str, request: Message, body: Body) -> tuple[bool, int]:
        """Whether the records of a Produce that has no digest can be counted, how many how many there are."""
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
        return batches > 0 and not sealed, records

    def observations(self) -> Iterator[Observation]:
        """By client."""
        enough = {"commits": ENOUGH_COMMITS, "transactions": ENOUGH_COMMITS, "produces": ENOUGH_PRODUCES}
        for kind in self.kinds:
            for client, _, case in self._cases[kind]:
                numbers = self._numbers(kind, client, case)
                if case.count >= enough.get(kind, 1) and numbers.get("fetches", ENOUGH_FETCHES) >= ENOUGH_FETCHES:
                    yield observation_of(kind, case, [f"client:{client}"], numbers)

    def _numbers(self, kind: str, client: str, case: Case) -> dict[str, Any]:
        if kind == "commits":
            return {"groups": case.noted("groups")}
        if kind == "produces":
            alone = self._cases["alone"].case(client)
            return {"records": case.total, "requests": case.count, "alone": alone.count, "waited_ns": alone.total}
        if kind == "transactions":
            written = self._cases["produces"].known(client)
            waited_ns = case.total + self._cases["alone"].case(client).total
            return {"records": written.total if written is not None else 0, "waited_ns": waited_ns}
        if kind == "empty_fetches":
            known = self._cases["fetches"].known(client)
            wait_ms = max((int(wait) for wait in case.noted("waits")), default=0)
            return {
                "fetches": known.count if known is not None else case.count,
                "longest_wait_ms": wait_ms,
                "at_once": case.total < case.count * wait_ms * MILLISECOND_NS / 2,
            }
        return {"topics": case.noted("topics")}


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
