"""Logs of one partition that contradict each other, by which two brokers are known to be of two clusters.

A log has one end. Where one broker gives out offsets again that another has given out, either the log was truncated
(an unclean leader election), or there are two logs. Then the other broker goes on where it was, as if nothing had
happened: that contradicts a truncation. A batch that its producer sends again after a leader change is answered with
its first offset and counts for nothing. Consumers that read from a follower (KIP-392) are given an older high
watermark, but not one that the leader had left behind before ``FOLLOWS_NS``.
"""

from __future__ import annotations

from sys import getsizeof
from typing import Final

#: Bytes of what is remembered of partitions; those that find no room are not compared.
MAX_LOG_BYTES = 8 << 20
#: Brokers of one partition whose ends are compared: its replicas, and those of a mirror or two.
MAX_ENDS: Final = 8
#: Pairs of nodes known to be of two clusters.
MAX_APART = 1_024
#: Batches of idempotent producers that are remembered of each broker and partition, as in ``topic_state``.
MAX_BATCHES: Final = 5
#: Contradictions in which a broker went on behind its log's end; one may be an unseen election.
ENOUGH: Final = 2
#: A follower further behind is out of sync: replica.lag.time.max.ms before Kafka 2.5.
FOLLOWS_NS: Final = 10_000_000_000
_END_BYTES: Final = 1_000


class _End:
    """The log of a partition at one broker: ``passed_over`` nodes gave its offsets again; ``batches`` are the last ones
    of idempotent producers. It reached ``settled`` FOLLOWS_NS ago, ``marked`` at ``marked_ns``.
    """

    __slots__ = ("batches", "marked", "marked_ns", "offset", "passed_over", "settled")

    def __init__(self) -> None:
        self.offset = -1
        self.marked = self.settled = -1
        self.marked_ns = 0
        self.passed_over: set[int] = set()
        self.batches: list[tuple[str, bytes]] = []


class LogEnds:
    """``apart`` are pairs of nodes whose logs contradict each other."""

    def __init__(self) -> None:
        self.apart: set[tuple[int, int]] = set()
        self._partitions: dict[tuple[str, int], dict[int, _End]] = {}
        self._doubts: dict[tuple[int, int], int] = {}
        self._held_bytes = 0

    def appended(self, node: int, topic: str, index: int, base: int, records: int, batch: tuple[str, bytes]) -> None:
        """A broker has answered that it appended records at offset ``base``. ``batch`` is the client's host with id,
        epoch and sequence of an idempotent producer, or empty bytes."""
        ends = self._ends(topic, index)
        end = None if ends is None else self._end(ends, node)
        if ends is None or end is None:
            return
        if batch[1]:
            if any(batch in other.batches for other in ends.values()):
                return
            end.batches.append(batch)
            del end.batches[:-MAX_BATCHES]
        behind = base + records
        if base < end.offset:  # truncated, or made anew
            end.offset = behind
            end.marked = end.settled = -1
            end.passed_over.clear()
            return
        self._goes_on(ends, node, base)
        end.offset = behind
        for other, its in ends.items():
            if other != node and base < its.offset:
                its.passed_over.add(node)

    def served(self, node: int, topic: str, index: int, high_watermark: int, ns: int) -> None:
        """A broker has answered a consumer with the high watermark of a partition at ``ns``."""
        ends = self._ends(topic, index)
        end = None if ends is None else self._end(ends, node)
        if ends is None or end is None or high_watermark < end.offset:
            return
        self._goes_on(ends, node, high_watermark)
        end.offset = high_watermark
        if ns - end.marked_ns >= FOLLOWS_NS:
            end.settled, end.marked, end.marked_ns = end.marked, high_watermark, ns
        for other, its in ends.items():
            if other != node and its.settled > high_watermark:
                its.passed_over.add(node)

    def _goes_on(self, ends: dict[int, _End], node: int, offset: int) -> None:
        """A broker's log goes on at ``offset``, which is not before its end."""
        end = ends[node]
        for other in end.passed_over:
            if ends[other].offset >= end.offset:
                continue  # that log has come so far that this may be the same one
            pair = (min(node, other), max(node, other))
            doubts = self._doubts.get(pair, 0) + (ENOUGH if offset == end.offset else 1)
            if doubts < ENOUGH and len(self._doubts) < MAX_APART:
                self._doubts[pair] = doubts
            elif doubts >= ENOUGH and len(self.apart) < MAX_APART:
                self.apart.add(pair)
                self._doubts.pop(pair, None)
        end.passed_over.clear()

    def _ends(self, topic: str, index: int) -> dict[int, _End] | None:
        ends = self._partitions.get((topic, index))
        if ends is None and self._admit(getsizeof(topic)):
            ends = self._partitions[topic, index] = {}
        return ends

    def _end(self, ends: dict[int, _End], node: int) -> _End | None:
        end = ends.get(node)
        if end is None and len(ends) < MAX_ENDS and self._admit(0):
            end = ends[node] = _End()
        return end

    def _admit(self, size: int) -> bool:
        if self._held_bytes + _END_BYTES + size > MAX_LOG_BYTES:
            return False
        self._held_bytes += _END_BYTES + size
        return True
