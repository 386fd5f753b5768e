"""The connections that a source has seen: when each was open, its sequence numbers, and how much of it was captured."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kwiresniff.base.flows import reverse
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import DECRYPTED, FIN, RST, SYN, Segment
from kwiresniff.pipeline.sequence_ranges import Range, SequenceRanges

#: Connections looked at in one source at once, of some kilobytes each; of more the oldest is taken for ended.
MAX_OBSERVED = 200_000


@dataclass(frozen=True, slots=True)
class ObservedConnection:
    """A connection as one source has seen it. ``flow`` is the smaller one of its two flow keys, hexadecimal.

    Of each pair the first is that flow's. ``initial`` are sequence numbers of the SYNs, and ``first`` those of the
    first bytes, -1 where none was seen; ``parts`` are the ranges of the stream, counted from there, that are in the
    capture, and ``size`` how many different bytes of it are. ``syn_ns`` and ``answered_ns`` are when SYN and answer
    passed, -1 when they were not seen; ``marks`` are sequence numbers that both ends remember, and when they passed.
    """

    flow: str
    first_ns: int
    last_ns: int
    initial: tuple[int, int]
    first: tuple[int, int]
    parts: tuple[tuple[Range, ...], tuple[Range, ...]]
    marks: tuple[tuple[Range, ...], tuple[Range, ...]]
    size: int
    syn_ns: int
    answered_ns: int

    @property
    def whole(self) -> bool:
        """Whether both SYNs were seen."""
        return -1 not in self.initial

    @property
    def length(self) -> tuple[int, int]:
        """How far the parts reach in each direction."""
        one, other = (parts[-1][1] - parts[0][0] if parts else 0 for parts in self.parts)
        return one, other


class _Seen:
    """A connection being looked at."""

    __slots__ = ("answered_ns", "closed", "covered", "first_ns", "initial", "last_ns", "syn_ns")

    def __init__(self, ns: int) -> None:
        self.first_ns = self.last_ns = ns
        self.initial = [-1, -1]
        self.covered = SequenceRanges(), SequenceRanges()
        self.syn_ns = self.answered_ns = -1
        self.closed = False

    def add(self, way: int, ns: int, seq: int, flags: int, size: int) -> None:
        self.first_ns, self.last_ns = min(self.first_ns, ns), max(self.last_ns, ns)
        if flags & SYN:
            self.initial[way] = seq
            seq = (seq + 1) & SEQ_MASK
            if self.syn_ns >= 0 and self.initial[1 - way] >= 0 and self.answered_ns < 0:
                self.answered_ns = ns
            elif self.syn_ns < 0:
                self.syn_ns = ns
        self.covered[way].add(seq, size, ns)
        self.closed = self.closed or bool(flags & (FIN | RST))


def observed_connections(segments: Iterable[Segment]) -> Iterator[ObservedConnection]:
    """The connections of a source. A port that is used again, with another SYN, begins another one."""
    found: dict[bytes, _Seen] = {}
    for _, ns, flow, seq, _, flags, _, start, end, _ in segments:
        if flags & DECRYPTED:
            continue
        other = reverse(flow)
        key, way = (flow, 0) if flow <= other else (other, 1)
        seen = found.get(key)
        if seen is not None and flags & SYN and seen.initial[way] != seq and (seen.initial[way] >= 0 or seen.closed):
            yield _observed(key, found.pop(key))
            seen = None
        if seen is None:
            if len(found) >= MAX_OBSERVED:
                oldest = next(iter(found))
                yield _observed(oldest, found.pop(oldest))
            seen = found[key] = _Seen(ns)
        seen.add(way, ns, seq, flags, end - start)
    for key, seen in found.items():
        yield _observed(key, seen)


def _observed(key: bytes, seen: _Seen) -> ObservedConnection:
    one, other = seen.covered
    return ObservedConnection(
        key.hex(),
        seen.first_ns,
        seen.last_ns,
        (seen.initial[0], seen.initial[1]),
        (one.first, other.first),
        (tuple(one.parts), tuple(other.parts)),
        (tuple(one.marks.items()), tuple(other.marks.items())),
        one.size + other.size,
        seen.syn_ns,
        seen.answered_ns,
    )
