"""The sequence numbers of one producer in one partition: what is missing, what was sent again, and what was sent with
the sequence of another batch.

Source: KIP-98, "Idempotent Producer": the first sequence of a batch follows the last one of the batch before, from 0
with every epoch, and begins at 0 again after 2,147,483,647.
"""

from __future__ import annotations

from typing import Final

#: Batches that are remembered by their checksum: as many as brokers remember of each producer.
MAX_RECENT: Final = 5
#: Holes that are remembered; a batch that comes late fills one.
MAX_HOLES: Final = 100
_WRAP: Final = 1 << 31


class Sequence:
    """The sequence numbers of one producer in one partition; takes batches in the order of their requests."""

    __slots__ = ("_epoch", "_holes", "_next", "_recent", "duplicates", "missing", "reused")

    def __init__(self) -> None:
        self.missing = 0
        self.duplicates = 0
        self.reused = 0
        self._epoch = -1
        self._next = -1
        self._holes: list[tuple[int, int]] = []
        self._recent: dict[int, int] = {}

    def add(self, epoch: int, base: int, records: int, crc: int) -> None:
        """A batch of ``records`` from the sequence ``base`` on; ``crc`` is the checksum of all its bytes that brokers
        leave as they are.
        """
        if base < 0 or epoch < self._epoch:
            return
        if epoch > self._epoch:
            # What came before is over. An epoch begins at 0; of the first one the capture may have begun later.
            expected = base if self._epoch < 0 else 0
            self._epoch, self._next = epoch, expected
            self._holes.clear()
            self._recent.clear()
        before = self._recent.pop(base, crc)
        self._recent[base] = crc
        if len(self._recent) > MAX_RECENT:
            del self._recent[next(iter(self._recent))]
        if before != crc:
            self.reused += 1
            return
        ahead = (base - self._next) % _WRAP
        if ahead == 0:
            self._next = (base + records) % _WRAP
        elif ahead < _WRAP // 2:
            self.missing += ahead
            if len(self._holes) < MAX_HOLES:
                self._holes.append((self._next, ahead))
            self._next = (base + records) % _WRAP
        elif not self._fill(base, records):
            self.duplicates += 1

    def _fill(self, base: int, records: int) -> bool:
        """Whether a batch that comes late belongs into a hole."""
        for at, (start, size) in enumerate(self._holes):
            before = (base - start) % _WRAP
            if before + records <= size:
                after = size - before - records
                parts = [(start, before), ((base + records) % _WRAP, after)]
                self._holes[at : at + 1] = [part for part in parts if part[1]]
                self.missing -= records
                return True
        return False
