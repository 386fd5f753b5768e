"""How the C library treats memory that is freed."""

from __future__ import annotations

#: glibc's ``M_TRIM_THRESHOLD`` and ``M_MMAP_THRESHOLD`` (mallopt(3)), and the most that the second takes.
_TRIM, _MMAP = -1, -3
_KEPT_BYTES = 64 << 20
_LARGE_BYTES = 32 << 20


def keep_freed_memory() -> None:
    """Keep up to 64 MB of what is freed for what comes next, where the C library is glibc; elsewhere nothing.

    Frames of a megabyte come and go all the time. Given back to the kernel and asked for again, each costs a page fault
    for every 4 KB: a third of the time of ``stats`` on large batches.
    """
    import ctypes  # 3 ms, which only a long reading is worth

    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(_MMAP, _LARGE_BYTES)
    mallopt(_TRIM, _KEPT_BYTES)
