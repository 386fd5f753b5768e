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
    """Has glibc keep up to 64 MB of freed memory: giving back frames of a megabyte costs a third of the time of
    ``stats``.

    glibc learns from a piece that is freed to keep such pieces (mallopt(3), ``M_MMAP_THRESHOLD``): one is asked for and
    freed untouched, in microseconds, where calling mallopt through ctypes takes milliseconds.
    """
    with contextlib.suppress(MemoryError):
        bytes(_LARGE_BYTES)


@contextlib.contextmanager
def memory_of_a_pass() -> Iterator[None]:
    """Collects garbage rarely while a capture is read, a tenth of the time less, and gives memory back then."""
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
    """Gives freed memory of glibc and of Arrow back to the kernel: a millisecond for each 10 MB."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    with contextlib.suppress(ImportError, OSError, AttributeError):  # no ctypes, no library, another one than glibc
        import ctypes

        ctypes.CDLL(None).malloc_trim(0)
