"""Memory that is freed is kept for what comes next, as the kernel's own count of page faults tells."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: Puts a large frame together from its segments 100 times, and prints the page faults that this cost.
PROGRAM = """
import resource, sys
from kwiresniff.base.process_memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def use():
    frame = b"".join([bytes([number % 256]) * 1448 for number in range(700)])
    return frame[4:]
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(100):
    use()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str) -> int:
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_large_frames_do_not_cost_a_page_fault_for_every_page() -> None:
    kept, given_back = faults("kept"), faults("given back")
    assert kept < 10_000 < given_back


#: Frees a hundred megabytes in small pieces below one that is still in use, and prints the megabytes that are held.
FREEING = """
from kwiresniff.base.process_memory import give_back_memory
def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 >> 20
pieces = [b"%1000d" % number for number in range(100_000)]
last = b"%1000d" % 0
del pieces
before = held()
give_back_memory()
print(before, held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="needs glibc")
def test_what_was_freed_goes_back_to_the_kernel() -> None:
    """Small pieces, too, that lie below others that are still in use."""
    done = subprocess.run([sys.executable, "-c", FREEING], capture_output=True, text=True, check=True)
    before, after = map(int, done.stdout.split())
    assert before > 100 and after < 40
