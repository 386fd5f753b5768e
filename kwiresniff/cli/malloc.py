"""How the C library treats memory that is freed."""

from __future__ import annotations

import contextlib

#: Just below the most that glibc learns from (``DEFAULT_MMAP_THRESHOLD_MAX`` in mallopt(3)).
_LARGE_BYTES = (32 << 20) - (64 << 10)


def keep_freed_memory() -> None:
    """Keep up to 64 MB of what is freed for what comes next, where the C library is glibc; elsewhere nothing.

    Frames of a megabyte come and go all the time. Given back to the kernel and asked for again, each costs a page fault
    for every 4 KB: a third of the time of ``stats`` on large batches.

    glibc learns from what is freed: memory of that size is from now on part of the heap, and twice as much stays there
    (mallopt(3), ``M_MMAP_THRESHOLD`` and ``M_TRIM_THRESHOLD``). So one piece is asked for and freed at once, of which
    nothing is ever touched: some microseconds, where calling mallopt through ctypes takes milliseconds.
    """
    with contextlib.suppress(MemoryError):
        bytes(_LARGE_BYTES)
