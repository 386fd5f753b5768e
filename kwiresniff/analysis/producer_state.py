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


class Transactions:
    """The transactions of a producer id: the ``open`` one, the ``last`` that have ended, and how many ended how."""

    __slots__ = ("ended", "last", "longest_ns", "open")

    def __init__(self) -> None:
        self.open: TransactionState | None = None
        self.last: deque[TransactionState] = deque(maxlen=MAX_TRANSACTIONS)
        self.ended: dict[str, int] = {}
        self.longest_ns = -1

    def begin(self, epoch: int, ns: int, packet: int) -> TransactionState:
        """The open transaction; begins one when none is open."""
        if self.open is None:
            self.open = TransactionState(epoch, ns, packet)
        return self.open

    def end(self, state: str, epoch: int, ns: int, packet: int, by: str = "") -> None:
        """Closes the open transaction as ``state``; one of ``epoch`` that began before the capture has an end only."""
        found = self.open or TransactionState(epoch, None, packet)
        self.open = None
        found.state, found.end_ns, found.by = state, ns, by
        if found.begin_ns is not None:
            self.longest_ns = max(self.longest_ns, ns - found.begin_ns)
        self.ended[state] = self.ended.get(state, 0) + 1
        self.last.append(found)

    def attribute_end(self, state: str, by: str, since_ns: int) -> None:
        """Names, now that it is known, the instance because of which the coordinator ended the last transaction."""
        last = self.last[-1] if self.last else None
        if last is not None and last.by == COORDINATOR and last.end_ns is not None and last.end_ns >= since_ns:
            self.ended[last.state] -= 1
            last.state, last.by = state, by
            self.ended[state] = self.ended.get(state, 0) + 1

    def reopen_ended(self, epoch: int) -> None:
        """Takes the last transaction, of ``epoch``, for open again if the coordinator seemed to have ended it by
        itself: its producer asks for the end only now.
        """
        last = self.last[-1] if self.last and self.open is None else None
        if last is not None and last.by == COORDINATOR and last.epoch == epoch:
            self.ended[last.state] -= 1
            self.open = self.last.pop()

    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many there are of each state, in the order in which the states were met, the open one last."""
        ended = dict(self.ended)
        if self.open is not None:
            ended[OPEN] = 1
        return tuple((state, count) for state, count in ended.items() if count)

    def results(self) -> tuple[Transaction, ...]:
        """The last ones and the open one as results."""
        found = [one.result() for one in self.last]
        return tuple(found if self.open is None else [*found, self.open.result()])


class Epochs:
    """The epochs of a producer id, their owners, and the instances that were fenced by a newer epoch."""

    __slots__ = ("fencings", "highest", "lowest", "owners")

    def __init__(self, epoch: int) -> None:
        self.highest = self.lowest = epoch
        self.owners: dict[int, str] = {}  # who was given which epoch, the last ones
        self.fencings: list[Fencing] = []

    def seen(self, epoch: int) -> None:
        """Notes an epoch in use; -1 is none."""
        if epoch >= 0:
            self.highest = max(self.highest, epoch)
            self.lowest = min(self.lowest, epoch) if self.lowest >= 0 else epoch

    def give(self, client: str, epoch: int) -> None:
        """Notes that a coordinator gives ``client`` an epoch."""
        self.owners[epoch] = client
        if len(self.owners) > MAX_NAMES:
            del self.owners[next(iter(self.owners))]

    def fence(self, client: str, epoch: int, code: str, ns: int, packet: int) -> None:
        """Notes that a broker has refused ``client`` because of its old epoch by the error ``code``."""
        if len(self.fencings) < MAX_NAMES:
            by = next((owner for given, owner in reversed(self.owners.items()) if given > epoch), "")
            by_epoch = max((given for given in self.owners if given > epoch), default=-1)
            self.fencings.append(Fencing(ns, packet, client, epoch, by, by_epoch, code))


class ProducerState:
    """The state of one producer id in a cluster, from the exchanges with one ``node`` on (``identity.clusters``)."""

    __slots__ = (
        "batches", "clients", "epochs", "errors", "first_ns", "last_ns", "node", "producer_id", "records", "sequences",
        "timeout_ms", "transactional_id", "transactions",
    )  # fmt: skip

    def __init__(self, producer_id: int, epoch: int, ns: int, node: int = 0) -> None:
        self.node = node
        self.producer_id = producer_id
        self.transactional_id: str | None = None
        self.timeout_ms: int | None = None
        self.epochs = Epochs(epoch)
        self.clients: dict[str, None] = {}
        self.batches = self.records = 0
        self.sequences: dict[str, Sequence] = {}
        self.errors: dict[str, int] = {}
        self.transactions = Transactions()
        self.first_ns = self.last_ns = ns

    def seen(self, client: str, epoch: int, ns: int) -> None:
        """Notes that ``client`` uses the producer id in an epoch."""
        self.last_ns = max(self.last_ns, ns)
        self.epochs.seen(epoch)
        if client not in self.clients and len(self.clients) < MAX_NAMES:
            self.clients[client] = None

    def begin(self, epoch: int, ns: int, packet: int) -> TransactionState:
        """The open transaction; begins one when none is open."""
        return self.transactions.begin(epoch, ns, packet)

    def end(self, state: str, ns: int, packet: int, by: str = "") -> None:
        """Closes the open transaction as ``state``."""
        self.transactions.end(state, self.epochs.highest, ns, packet, by)

    def result(self, cluster: str | None = None) -> Producer:
        """The producer as a result, with the name of its cluster where there are several."""
        flaws = [
            SequenceFlaw(partition, one.missing, one.duplicates, one.reused)
            for partition, one in sorted(self.sequences.items())
            if one.missing or one.duplicates or one.reused
        ]
        transactions = self.transactions
        return Producer(
            producer_id=self.producer_id,
            transactional_id=self.transactional_id,
            clients=tuple(self.clients),
            epochs=(self.epochs.lowest, self.epochs.highest),
            timeout_ms=self.timeout_ms,
            batches=self.batches,
            records=self.records,
            partitions=len(self.sequences),
            flaws=tuple(flaws),
            errors=tuple(sorted(self.errors.items(), key=lambda item: (-item[1], item[0]))),
            ended=transactions.counts(),
            transactions=transactions.results(),
            longest_ns=transactions.longest_ns if transactions.longest_ns >= 0 else None,
            fencings=tuple(self.epochs.fencings),
            first_ns=self.first_ns,
            last_ns=self.last_ns,
            cluster=cluster,
        )
