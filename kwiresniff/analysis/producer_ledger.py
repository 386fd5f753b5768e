"""Producers by their ids: sequences, transactions from beginning to end, and who fenced whom.

Sources: KIP-98 (idempotence, transactions), KIP-360 and KIP-588 (an instance that goes on takes its id along and gets a
new epoch), KIP-890 (a transaction begins with its first Produce, and every end gives a new epoch). A coordinator ends
a transaction that outlives ``transaction.timeout.ms``; what producers, brokers and consumers are answered shows that.

Bounded: see ``producer_table``; what finds no room is counted in ``left_out``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kwiresniff.analysis.body_entities import READ_COMMITTED, isolation_level
from kwiresniff.analysis.cluster_evidence import cluster_of
from kwiresniff.analysis.late_names import renamer
from kwiresniff.analysis.places import place_of, request_place
from kwiresniff.analysis.producer_state import (
    ABORTED,
    COMMITTED,
    COORDINATOR,
    FENCED,
    FENCED_CODES,
    MAX_NAMES,
    ProducerState,
    TransactionState,
)
from kwiresniff.analysis.producer_table import ProducerTable, client_name
from kwiresniff.analysis.record_counts import batches_in, records_in
from kwiresniff.base.api_keys import (
    ADD_OFFSETS_TO_TXN,
    ADD_PARTITIONS_TO_TXN,
    END_TXN,
    FETCH,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    WRITE_TXN_MARKERS,
)
from kwiresniff.base.field_values import field_text
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Body, Exchange, TopicNames
from kwiresniff.results.producers import Producer

#: A coordinator that ends a transaction for a new instance lets that one in so soon afterwards.
LET_IN_NS = 60_000_000_000
#: By this a producer learns that its transaction is over already.
OVER_CODE = "INVALID_TXN_STATE"


class ProducerLedger:
    """Collects from exchanges whose bodies are decoded, batch headers included, or that have digests."""

    def __init__(self, topic_name: TopicNames | None = None, clusters: Clusters | None = None) -> None:
        """``clusters`` are those of other analyses of the same exchanges."""
        self._topic_name = topic_name
        self._clusters = clusters or Clusters()
        self._table = ProducerTable()
        #: The time of the newest message, of whomever.
        self.last_ns = 0
        self._takers = {
            INIT_PRODUCER_ID: self._init,
            PRODUCE: self._produce,
            ADD_PARTITIONS_TO_TXN: self._add_partitions,
            ADD_OFFSETS_TO_TXN: self._add_offsets,
            TXN_OFFSET_COMMIT: self._add_offsets,
            END_TXN: self._end,
            WRITE_TXN_MARKERS: self._markers,
            FETCH: self._fetch,
        }

    def exchange(self, exchange: Exchange) -> None:
        """Take in an exchange."""
        message = exchange.response or exchange.request
        if message is not None and message.last_ns > self.last_ns:
            self.last_ns = message.last_ns
        node = cluster_of(self._clusters, exchange)
        take = self._takers.get(exchange.api_key)
        if take is not None:
            self._table.turn_to(self._clusters.scope(node), node)
        if take is None or self._has_nothing(exchange):
            return
        request = exchange.request.body if exchange.request is not None else None
        response = exchange.response.body if exchange.response is not None else None
        if request:
            take(exchange, request, response or {})

    def _has_nothing(self, exchange: Exchange) -> bool:
        """Whether an exchange is known to name no producer without a look into its bodies."""
        request = exchange.request
        if exchange.api_key == FETCH:  # whose answer lists aborted transactions to who reads what is committed
            return not self._table.producers or (
                request is not None and isolation_level(request) not in (READ_COMMITTED, -1)
            )
        if exchange.api_key == PRODUCE and request is not None and request.digest is not None:
            for topic in request.digest.parts or ():
                for part in topic.partitions:
                    if part.is_idempotent:
                        return False
            return True
        return False

    @property
    def left_out(self) -> int:
        """Producers, partitions and names that found no room."""
        return self._table.budget.refused

    def producers(self) -> list[Producer]:
        """Every producer, those with transactional ids first, by the time of their first request."""
        rename = renamer(self._topic_name)
        labels = self._clusters.labels()
        found = [
            _renamed(state.result(labels.get(self._clusters.scope(state.node))), rename)
            for state in self._table.all_producers()
        ]
        return sorted(found, key=lambda one: (one.transactional_id is None, one.first_ns, one.producer_id))

    # -- one API each -------------------------------------------------------------------------------------------

    def _init(self, exchange: Exchange, request: Body, response: Body) -> None:
        producer_id, epoch = response.get("producer_id", -1), response.get("producer_epoch", -1)
        name = request.get("transactional_id")
        if exchange.errors or producer_id < 0:
            state = self._table.of_transactional_id(name)
            if state is not None:
                self._errors(state, exchange, request.get("producer_epoch", -1))
            return
        packet, ns = place_of(exchange)
        before = self._table.of_transactional_id(name)
        state = self._table.seen(producer_id, epoch, exchange)
        if state is None:
            return
        client = client_name(exchange)
        if name:
            self._table.name(state, name)
            state.timeout_ms = request.get("transaction_timeout_ms", state.timeout_ms)
        # One that goes on brings the id that it has; one that does not is a new instance.
        is_new = request.get("producer_id", -1) < 0
        if before is not None and is_new:
            if before.transactions.open is not None:
                before.end(FENCED, ns, packet, client)
            else:
                before.transactions.attribute_end(FENCED, client, ns - LET_IN_NS)
        elif before is not None and before.transactions.open is not None:
            before.end(ABORTED, ns, packet)
        state.epochs.give(client, epoch)

    def _produce(self, exchange: Exchange, request: Body, response: Body) -> None:
        packet, ns = request_place(exchange)
        users: dict[int, int] = {}
        for topic in request.get("topic_data") or ():
            name = self._topic_of(topic)
            for part in topic.get("partition_data") or ():
                partition = f"{name}-{part.get('index', -1)}"
                for batch in batches_in(part):
                    producer_id, epoch = batch.get("producer_id", -1), batch.get("producer_epoch", -1)
                    if not isinstance(producer_id, int) or producer_id < 0:
                        continue
                    state = self._table.seen(producer_id, epoch, exchange)
                    if state is None:
                        continue
                    users[producer_id] = epoch
                    self._table.name(state, request.get("transactional_id"))
                    self._batch(state, partition, epoch, batch)
                    if batch.get("is_transactional") and not _is_fenced(exchange):
                        transaction = state.begin(epoch, ns, packet)
                        transaction.note(transaction.partitions, [partition])
                        transaction.records += records_in(batch)
        for producer_id, epoch in users.items():
            state = self._table.producers[producer_id]
            if exchange.errors:
                self._errors(state, exchange, epoch)
            elif (under_way := state.transactions.open) is not None:
                self._written(under_way, response)

    def _written(self, transaction: TransactionState, response: Body) -> None:
        """Notes where a transaction begins in each partition: Fetch responses name an aborted one by that offset."""
        for topic in response.get("responses") or ():
            for part in topic.get("partition_responses") or ():
                name = f"{self._topic_of(topic)}-{part.get('index', -1)}"
                offset = part.get("base_offset", -1)
                if offset >= 0 and (name in transaction.offsets or len(transaction.offsets) < MAX_NAMES):
                    transaction.offsets.setdefault(name, offset)

    def _batch(self, state: ProducerState, partition: str, epoch: int, batch: Body) -> None:
        records = records_in(batch)
        state.batches += 1
        state.records += records
        sequence = self._table.sequence(state, partition)
        if sequence is not None:
            sequence.add(epoch, batch.get("base_sequence", -1), records, batch.get("crc", 0))

    def _add_partitions(self, exchange: Exchange, request: Body, response: Body) -> None:
        packet, ns = request_place(exchange)
        for one in request.get("transactions") or [request]:
            producer_id = one.get("producer_id", one.get("v3_and_below_producer_id", -1))
            epoch = one.get("producer_epoch", one.get("v3_and_below_producer_epoch", -1))
            if producer_id < 0 or one.get("verify_only"):
                continue  # brokers that ask whether a transaction is open
            state = self._table.seen(producer_id, epoch, exchange)
            if state is None:
                continue
            self._table.name(state, one.get("transactional_id", one.get("v3_and_below_transactional_id")))
            if exchange.errors:
                self._errors(state, exchange, epoch)
                continue
            transaction = state.begin(epoch, ns, packet)
            for topic in one.get("topics") or one.get("v3_and_below_topics") or ():
                name = self._topic_of(topic)
                transaction.note(transaction.partitions, [f"{name}-{index}" for index in topic.get("partitions") or ()])

    def _add_offsets(self, exchange: Exchange, request: Body, response: Body) -> None:
        producer_id, epoch = request.get("producer_id", -1), request.get("producer_epoch", -1)
        state = self._table.seen(producer_id, epoch, exchange) if producer_id >= 0 else None
        if state is None:
            return
        self._table.name(state, request.get("transactional_id"))
        if exchange.errors:
            self._errors(state, exchange, epoch)
        else:
            packet, ns = request_place(exchange)
            transaction = state.begin(epoch, ns, packet)
            transaction.note(transaction.groups, [field_text(request.get("group_id"))])

    def _end(self, exchange: Exchange, request: Body, response: Body) -> None:
        producer_id, epoch = request.get("producer_id", -1), request.get("producer_epoch", -1)
        state = self._table.seen(producer_id, epoch, exchange) if producer_id >= 0 else None
        if state is None or exchange.response is None:
            return
        self._table.name(state, request.get("transactional_id"))
        packet, ns = request_place(exchange)
        if not exchange.errors:
            state.transactions.reopen_ended(
                epoch
            )  # what the coordinator wrote to brokers was what it is asked for here
            state.end(COMMITTED if request.get("committed") else ABORTED, ns, packet)
            self._go_on(state, exchange, response)
            return
        self._errors(state, exchange, epoch)
        if state.transactions.open is not None and any(name == OVER_CODE for _, _, name, _ in exchange.errors):
            state.end(ABORTED, ns, packet, COORDINATOR)

    def _go_on(self, state: ProducerState, exchange: Exchange, response: Body) -> None:
        """The end of a transaction may give the next epoch, or when these are used up another id."""
        producer_id, epoch = response.get("producer_id", -1), response.get("producer_epoch", -1)
        if producer_id < 0:
            return
        following = self._table.seen(producer_id, epoch, exchange)
        if following is not None:
            self._table.name(following, state.transactional_id)
            following.timeout_ms = state.timeout_ms
            following.epochs.give(client_name(exchange), epoch)

    def _markers(self, exchange: Exchange, request: Body, response: Body) -> None:
        """Takes in WriteTxnMarkers: an end that no producer has asked for was the coordinator's own decision."""
        packet, ns = request_place(exchange)
        for marker in request.get("markers") or ():
            state = self._table.producers.get(marker.get("producer_id", -1))
            if state is not None and state.transactions.open is not None:
                state.end(COMMITTED if marker.get("transaction_result") else ABORTED, ns, packet, COORDINATOR)

    def _fetch(self, exchange: Exchange, request: Body, response: Body) -> None:
        """Takes in the aborted transactions that a Fetch response lists for consumers of committed records."""
        packet, ns = place_of(exchange)
        for topic in response.get("responses") or ():
            for part in topic.get("partitions") or ():
                for aborted in part.get("aborted_transactions") or ():
                    state = self._table.producers.get(aborted.get("producer_id", -1))
                    open_one = state.transactions.open if state is not None else None
                    if state is None or open_one is None:
                        continue
                    index = part.get("partition_index", part.get("partition", -1))
                    if open_one.offsets.get(f"{self._topic_of(topic)}-{index}", -2) == aborted.get("first_offset"):
                        state.end(ABORTED, ns, packet, COORDINATOR)

    # -- errors -------------------------------------------------------------------------------------------------

    def _errors(self, state: ProducerState, exchange: Exchange, epoch: int) -> None:
        packet, ns = place_of(exchange)
        for name in dict.fromkeys(name for _, _, name, _ in exchange.errors):
            if name not in state.errors and len(state.errors) >= MAX_NAMES:
                continue
            state.errors[name] = state.errors.get(name, 0) + 1
            # Without an epoch of its own it is not an instance that was sent away.
            if name in FENCED_CODES and epoch >= 0:
                state.epochs.fence(client_name(exchange), epoch, name, ns, packet)

    def _topic_of(self, member: Body) -> str:
        name = member.get("name") or member.get("topic")
        if name:
            return field_text(name)
        topic_id = field_text(member.get("topic_id"))
        return (self._topic_name(topic_id) if self._topic_name is not None else None) or topic_id


def _renamed(producer: Producer, rename: Callable[[Any], Any]) -> Producer:
    """A producer whose topic ids are replaced by names that became known later."""
    flaws = tuple(flaw._replace(partition=rename(flaw.partition)) for flaw in producer.flaws)
    transactions = tuple(one._replace(partitions=rename(one.partitions)) for one in producer.transactions)
    return producer._replace(flaws=flaws, transactions=transactions)


def _is_fenced(exchange: Exchange) -> bool:
    return any(name in FENCED_CODES for _, _, name, _ in exchange.errors)
