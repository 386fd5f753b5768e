"""The current folder of the process, from which some libraries and programs read settings and code."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

#: Refers to a folder without the right to list it, where the system has that (Linux).
_REFERENCE = getattr(os, "O_PATH", os.O_RDONLY)


@contextmanager
def outside_current_folder() -> Iterator[None]:
    """Makes the root folder the current one meanwhile: nothing is imported or started from the user's. Relative paths
    must be made absolute before.
    """
    before = os.open(".", _REFERENCE)
    try:
        os.chdir(os.sep)
        try:
            yield
        finally:
            os.fchdir(before)
    finally:
        os.close(before)
