"""All producers that traffic has named, by their ids and their transactional ids, in bounded memory."""

from __future__ import annotations

from typing import Any

from kwiresniff.analysis.memory_budget import ENTRY_BYTES, MemoryBudget, text_bytes
from kwiresniff.analysis.places import request_place
from kwiresniff.analysis.producer_sequences import MAX_HOLES, Sequence
from kwiresniff.analysis.producer_state import ProducerState
from kwiresniff.base.field_values import field_text
from kwiresniff.base.flows import host_of
from kwiresniff.base.placeholders import NO_CLIENT_ID
from kwiresniff.model import Exchange

#: Producers, partitions and transactions of all together: some ten thousand producers.
MAX_REMEMBERED_BYTES = 64 << 20
#: A producer with its transactions, and a partition with its holes.
PRODUCER_BYTES = 4_000
SEQUENCE_BYTES = 400 + MAX_HOLES * 20


class ProducerTable:
    """The producers that were seen; the ``budget`` counts those that were refused.

    ``producers`` are those of the cluster that ``turn_to`` was told last.
    """

    def __init__(self) -> None:
        self.producers: dict[int, ProducerState] = {}
        self.budget = MemoryBudget(MAX_REMEMBERED_BYTES)
        self._by_transactional_id: dict[str, int] = {}
        self._node = 0
        self._clusters = {0: (self.producers, self._by_transactional_id)}

    def turn_to(self, cluster: int, node: int) -> None:
        """Turns to the producers of the cluster with a number, for an exchange with one of its nodes."""
        self._node = node
        found = self._clusters.get(cluster)
        if found is None:
            found = self._clusters[cluster] = {}, {}
        self.producers, self._by_transactional_id = found

    def all_producers(self) -> list[ProducerState]:
        """Those of all clusters."""
        return [state for producers, _ in self._clusters.values() for state in producers.values()]

    def seen(self, producer_id: int, epoch: int, exchange: Exchange) -> ProducerState | None:
        """Notes that a client uses a producer id with an epoch; None where there is no room for it."""
        state = self.producers.get(producer_id)
        _, ns = request_place(exchange)
        if state is None:
            if not self.budget.admit_or_count(PRODUCER_BYTES):
                return None
            state = self.producers[producer_id] = ProducerState(producer_id, epoch, ns, self._node)
        state.seen(client_name(exchange), epoch, ns)
        return state

    def name(self, state: ProducerState, transactional_id: Any) -> None:
        """Notes the transactional id of a producer, if it has one and there is room for it."""
        if not transactional_id:
            return
        text = field_text(transactional_id)
        known = text in self._by_transactional_id
        if known or self.budget.admit_or_count(2 * ENTRY_BYTES + text_bytes(text)):
            self._by_transactional_id[text] = state.producer_id
            state.transactional_id = text

    def of_transactional_id(self, transactional_id: Any) -> ProducerState | None:
        """The producer that has this transactional id, the last one where there were several."""
        if not transactional_id:
            return None
        return self.producers.get(self._by_transactional_id.get(field_text(transactional_id), -1))

    def sequence(self, state: ProducerState, partition: str) -> Sequence | None:
        """The sequence numbers of a producer in a partition; None where there is no room for them."""
        sequence = state.sequences.get(partition)
        if sequence is None and self.budget.admit_or_count(SEQUENCE_BYTES + text_bytes(partition)):
            sequence = state.sequences[partition] = Sequence()
        return sequence


def client_name(exchange: Exchange) -> str:
    """A client by its id and its address."""
    return f"{exchange.client_id or NO_CLIENT_ID} {host_of(exchange.connection.client)}"
