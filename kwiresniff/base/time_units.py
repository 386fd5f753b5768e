"""Units of time in nanoseconds, and times that several rooms reckon with.

They are ``Final`` numbers, which compiled modules have as machine integers.
"""

from __future__ import annotations

from typing import Final

MILLISECOND_NS: Final = 1_000_000
SECOND_NS: Final = 1_000_000_000
DAY_NS: Final = 86_400_000_000_000
#: 1970-01-01 by ``date.toordinal``.
EPOCH_ORDINAL: Final = 719_163
#: Later times (from 2116 on) are left to Python's integers: compiled arithmetic on these fits 64 bits.
MAX_NS: Final = (1 << 62) - 1
#: A broker may answer so much later than the end of a long poll or of a rebalance: timers tick, threads wait.
OVERRUN_NS: Final = 1_000_000_000
