"""Memory that is freed is kept for what comes next, as the kernel's own count of page faults tells."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

#: Takes and frees 200 times what a large frame and its parts take, and prints the page faults that this cost.
PROGRAM = """
import resource, sys
from kwiresniff.cli.memory import keep_freed_memory
if sys.argv[1] == "kept":
    keep_freed_memory()
def use():
    one, other = b"x" * (3 << 20), b"y" * (5 << 20)
    return len(one) + len(other)
use()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(200):
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
