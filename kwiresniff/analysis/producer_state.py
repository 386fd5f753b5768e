"""The state of one producer id while it is collected, and how it becomes a ``Producer``."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

from kwiresniff.analysis.producer_sequences import Sequence
from kwiresniff.results.producers import Fencing, Producer, SequenceFlaw, Transaction

#: Transactions that are kept apart, the last ones; all are counted.
MAX_TRANSACTIONS: Final = 100
#: Names of a transaction's partitions and groups, of a producer's clients, and fencings that are kept.
MAX_NAMES: Final = 50

OPEN, COMMITTED, ABORTED, FENCED = "open", "committed", "aborted", "fenced"
COORDINATOR = "its coordinator"
#: By these codes a broker refuses an instance with an old epoch (KIP-360).
FENCED_CODES = frozenset({"PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"})


class TransactionState:
    """A transaction that is open, or has ended."""

    __slots__ = ("begin_ns", "by", "end_ns", "epoch", "groups", "offsets", "packet", "partitions", "records", "state")

    def __init__(self, epoch: int, begin_ns: int | None, packet: int) -> None:
        self.epoch = epoch
        self.begin_ns = begin_ns
        self.end_ns: int | None = None
        self.packet = packet
        self.state = OPEN
        self.by = ""
        self.partitions: dict[str, None] = {}
        self.groups: dict[str, None] = {}
        self.offsets: dict[str, int] = {}  # where it begins in each partition
        self.records = 0

    def note(self, names: dict[str, None], found: Iterable[str]) -> None:
        """Adds names of partitions or groups to the transaction."""
        for name in found:
            if len(names) < MAX_NAMES:
                names[name] = None

    def result(self) -> Transaction:
        return Transaction(
            self.epoch, self.state, self.by, self.begin_ns, self.end_ns, self.packet, tuple(self.partitions),
            tuple(self.groups), self.records,
        )  # fmt: skip


class ProducerState:
    """The state of one producer id."""

    __slots__ = (
        "batches", "clients", "ended", "epoch", "errors", "fencings", "first_ns", "last_ns", "longest_ns", "lowest",
        "open", "owners", "producer_id", "records", "sequences", "timeout_ms", "transactional_id", "transactions",
    )  # fmt: skip

    def __init__(self, producer_id: int, epoch: int, ns: int) -> None:
        self.producer_id = producer_id
        self.transactional_id: str | None = None
        self.timeout_ms: int | None = None
        self.epoch = self.lowest = epoch
        self.clients: dict[str, None] = {}
        self.owners: dict[int, str] = {}  # who was given which epoch, the last ones
        self.batches = self.records = 0
        self.sequences: dict[str, Sequence] = {}
        self.errors: dict[str, int] = {}
        self.open: TransactionState | None = None
        self.transactions: deque[TransactionState] = deque(maxlen=MAX_TRANSACTIONS)
        self.ended: dict[str, int] = {}
        self.longest_ns = -1
        self.fencings: list[Fencing] = []
        self.first_ns = self.last_ns = ns

    def seen(self, client: str, epoch: int, ns: int) -> None:
        """Notes that ``client`` uses the producer id in an epoch."""
        self.last_ns = max(self.last_ns, ns)
        if epoch >= 0:
            self.epoch, self.lowest = max(self.epoch, epoch), min(self.lowest, epoch) if self.lowest >= 0 else epoch
        if client not in self.clients and len(self.clients) < MAX_NAMES:
            self.clients[client] = None

    def give(self, client: str, epoch: int) -> None:
        """Notes that a coordinator gives ``client`` an epoch."""
        self.owners[epoch] = client
        if len(self.owners) > MAX_NAMES:
            del self.owners[next(iter(self.owners))]

    def begin(self, epoch: int, ns: int, packet: int) -> TransactionState:
        """The open transaction; begins one when none is open."""
        if self.open is None:
            self.open = TransactionState(epoch, ns, packet)
        return self.open

    def end(self, state: str, ns: int, packet: int, by: str = "") -> None:
        """Closes the open transaction as ``state``; one that began before the capture has an end only."""
        found = self.open or TransactionState(self.epoch, None, packet)
        self.open = None
        found.state, found.end_ns, found.by = state, ns, by
        if found.begin_ns is not None:
            self.longest_ns = max(self.longest_ns, ns - found.begin_ns)
        self.ended[state] = self.ended.get(state, 0) + 1
        self.transactions.append(found)

    def attribute_end(self, state: str, by: str, since_ns: int) -> None:
        """Names, now that it is known, the instance because of which the coordinator ended the last transaction."""
        last = self.transactions[-1] if self.transactions else None
        if last is not None and last.by == COORDINATOR and last.end_ns is not None and last.end_ns >= since_ns:
            self.ended[last.state] -= 1
            last.state, last.by = state, by
            self.ended[state] = self.ended.get(state, 0) + 1

    def result(self) -> Producer:
        """The producer as a result."""
        flaws = [
            SequenceFlaw(partition, one.missing, one.duplicates)
            for partition, one in sorted(self.sequences.items())
            if one.missing or one.duplicates
        ]
        transactions = [one.result() for one in self.transactions]
        if self.open is not None:
            transactions.append(self.open.result())
        ended = dict(self.ended)
        if self.open is not None:
            ended[OPEN] = 1
        return Producer(
            producer_id=self.producer_id,
            transactional_id=self.transactional_id,
            clients=tuple(self.clients),
            epochs=(self.lowest, self.epoch),
            timeout_ms=self.timeout_ms,
            batches=self.batches,
            records=self.records,
            partitions=len(self.sequences),
            flaws=tuple(flaws),
            errors=tuple(sorted(self.errors.items(), key=lambda item: (-item[1], item[0]))),
            ended=tuple((state, count) for state, count in ended.items() if count),
            transactions=tuple(transactions),
            longest_ns=self.longest_ns if self.longest_ns >= 0 else None,
            fencings=tuple(self.fencings),
            first_ns=self.first_ns,
            last_ns=self.last_ns,
        )
