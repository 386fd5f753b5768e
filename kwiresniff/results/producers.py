"""Idempotent and transactional producers: their sequences, their transactions, and who fenced whom."""

from __future__ import annotations

from typing import NamedTuple


class Transaction(NamedTuple):
    """A transaction of one producer.

    ``state`` is ``open`` at the end of the capture, ``committed``, ``aborted``, or ``fenced`` when a newer instance
    ended it; ``by`` says who ended it where that was not the producer itself. ``begin_ns`` is None when its beginning
    is not in the capture, ``end_ns`` when its end is not; of one that its coordinator ended that is when somebody was
    told.
    """

    epoch: int
    state: str
    by: str
    begin_ns: int | None
    end_ns: int | None
    packet: int
    partitions: tuple[str, ...]
    groups: tuple[str, ...]
    records: int


class Fencing(NamedTuple):
    """An instance with an older epoch that was sent away, and the one that had taken its place where that was seen."""

    timestamp_ns: int
    packet: int
    client: str
    epoch: int
    by_client: str
    by_epoch: int
    error: str


class SequenceFlaw(NamedTuple):
    """Flaws in the sequence numbers of a partition: records that were never sent as far as the capture tells, batches
    that were sent again, and those sent with the sequence number of a batch with other bytes.
    """

    partition: str
    missing_records: int
    duplicate_batches: int
    reused_sequences: int = 0


class Producer(NamedTuple):
    """One producer id. ``clients`` are those that have used it, the last one last; ``epochs`` the lowest and highest
    epoch. ``flaws`` are the partitions whose sequence is not whole. ``ended`` counts transactions by their state;
    ``transactions`` are the last ones and those that are open, ``timeout_ms`` what the producer has asked for.
    ``cluster`` is None where all brokers are taken for one cluster.
    """

    producer_id: int
    transactional_id: str | None
    clients: tuple[str, ...]
    epochs: tuple[int, int]
    timeout_ms: int | None
    batches: int
    records: int
    partitions: int
    flaws: tuple[SequenceFlaw, ...]
    errors: tuple[tuple[str, int], ...]
    ended: tuple[tuple[str, int], ...]
    transactions: tuple[Transaction, ...]
    longest_ns: int | None
    fencings: tuple[Fencing, ...]
    first_ns: int
    last_ns: int
    cluster: str | None = None
