"""Memory that is freed: whether it is kept for what comes next or given back; how often Python looks for garbage."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator

#: Objects made and not gone after which Python looks for garbage. There is little of it: what is made stays until the
#: end of its connection, or of the reading, or goes by itself. To look through it time and again took a quarter of the
#: time of captures of many connections. A hundred bytes each, in the worst case.
GARBAGE_THRESHOLD = 100_000

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


@contextlib.contextmanager
def memory_of_a_pass() -> Iterator[None]:
    """Has one pass over a capture take its memory quickly, and leave none behind, in a process that lives on.

    Meanwhile Python collects garbage rarely, and not what was there before: a tenth of the time of the pass. In the end
    what the pass has left in reference cycles goes, and the kernel gets back what has been freed.
    """
    keep_freed_memory()
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.collect()
        gc.unfreeze()
        give_back_memory()


def give_back_memory() -> None:
    """Gives the kernel back what has been freed, of the C library where it is glibc, and of Arrow where it is loaded.

    glibc gives back by itself only what lies behind everything that is in use. It takes a millisecond for each 10 MB.
    """
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(ImportError, OSError, AttributeError):  # no ctypes, no library, another one than glibc
        import ctypes

        ctypes.CDLL(None).malloc_trim(0)
