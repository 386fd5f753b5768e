"""Starts Python workers on this machine (``spark.python.daemon.module``) with the Spark that is installed.

Spark puts its own package before that one as an archive, of which nobody keeps compiled modules: a second for each
process that imports it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import PurePath

#: How the files are called that Spark puts before what is installed: itself, what it stands on, the jar of its core.
_ARCHIVES = ("pyspark.zip", "py4j-", "spark-core_")


def without_archives(path: Sequence[str]) -> list[str]:
    """The places of a module search path that are no archives of Spark's own."""
    return [place for place in path if not PurePath(place).name.startswith(_ARCHIVES)]


if __name__ == "__main__":
    sys.path[:] = without_archives(sys.path)
    from pyspark.daemon import manager

    manager()
