"""How much memory a piece of a program takes, in a process of its own."""

from __future__ import annotations

import subprocess
import sys

from tests.support.paths import ROOT

#: ``peak`` is the most that was resident so far, in bytes. ``ru_maxrss`` tells it where there is no ``/proc``: on Linux
#: it begins with what the parent had.
_PREAMBLE = """
import resource, sys
from pathlib import Path
sys.path.append(ROOT)
from tests.support.exchanges import *

def peak():
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))

"""


def resident(imports: str, program: str) -> tuple[int, str]:
    """The bytes by which ``program`` raised the most memory that was resident, and what it printed."""
    whole = f"ROOT = {str(ROOT)!r}{_PREAMBLE}{imports}\nbefore = peak()\n{program}\nprint(peak() - before)"
    done = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True)
    *printed, grown = done.stdout.splitlines()
    return int(grown), "\n".join(printed)
