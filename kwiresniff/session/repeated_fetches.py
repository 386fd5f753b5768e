"""Fetches of a session that name what the fetch before them named, told from their bytes.

A consumer that keeps up names one partition again and again, because its position has moved. Such a fetch differs from
the one before in numbers of a fixed size alone, where the position is among them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The first versions of Fetch with current_leader_epoch; with compact arrays, tagged fields and last_fetched_epoch;
#: and with ids in place of names (KIP-320, KIP-482, KIP-595, KIP-516).
_EPOCH_SINCE: Final = 9
COMPACT_SINCE: Final = 12
_IDS_SINCE: Final = 13

#: How arrays of one element begin, and the bytes of an INT32 and of an id.
_ONE: Final = b"\x00\x00\x00\x01"
_ONE_COMPACT: Final = 2
_INT32_BYTES: Final = 4
_UUID_BYTES: Final = 16


class NamedPartition:
    """The one partition that a fetch names: its bytes before and behind the numbers that change from fetch to fetch.

    These begin ``offset`` bytes behind the first of ``before``, and end at ``end``.
    """

    STATE: ClassVar[tuple[str, ...]] = ("after", "before", "end", "offset")
    __slots__ = STATE

    def __init__(self, frame: bytes, start: i64, offset: i64, end: i64) -> None:
        self.before = frame[start:offset]
        self.after = frame[end:]
        self.offset: i64 = offset - start
        self.end: i64 = end - start

    def is_in(self, frame: bytes, start: i64) -> bool:
        """Whether a fetch, with an array of topics that begins at ``start``, names this partition and nothing else."""
        return frame[start : start + self.offset] == self.before and frame[start + self.end :] == self.after


def named_partition(frame: bytes, start: int, version: int) -> NamedPartition | None:
    """The partition that a fetch names in an array that begins at ``start``; None where it is not just one.

    ``frame`` has been read as such a fetch, from version 7 on, to its end.
    """
    if version >= COMPACT_SINCE:
        if frame[start] != _ONE_COMPACT or (version < _IDS_SINCE and frame[start + 1] >= 0x80):
            return None
        # The length of a name is there as one more.
        at = start + 1 + (_UUID_BYTES if version >= _IDS_SINCE else frame[start + 1])
        is_one, at = frame[at] == _ONE_COMPACT, at + 1
    else:
        at = start + 6 + int.from_bytes(frame[start + 4 : start + 6], "big")
        is_one, at = frame[start : start + 4] == frame[at : at + 4] == _ONE, at + 4
    if not is_one:
        return None
    offset = at + _INT32_BYTES
    # fetch_offset, log_start_offset and partition_max_bytes, and the epochs.
    end = offset + 20 + 4 * (version >= _EPOCH_SINCE) + 4 * (version >= COMPACT_SINCE)
    return NamedPartition(frame, start, offset, end)
