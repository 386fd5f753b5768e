"""Pieces of work as tasks of Spark, one each, on every kind of cluster, Spark Connect included.

They are a function of numbers, in as many partitions as there are numbers. That takes one kind of Python worker; a data
source takes several, to be known, planned and read, and each of them a second to start. Plain pickles for the same
reason: Arrow has to be loaded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, astuple
from functools import partial
from itertools import islice
from typing import Any

from kwiresniff.pipeline.observed_connections import observed_connections
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.plan import WorkUnit
from kwiresniff.pipeline.task import run_unit
from kwiresniff.pipeline.unit_reader import Settings, UnitReader

#: A text that a task gives back has up to some kilobytes for each of them.
OBSERVED_A_TEXT = 2_000


def in_tasks(spark: Any, work: Callable[[str], list[str]], pieces: Sequence[str]) -> list[str]:
    """Runs ``work`` on each of the pieces as a task, and returns what all gave. Workers find it by its name, so it is a
    function of a module.
    """
    from pyspark.sql.functions import udf

    count = len(pieces)
    function = udf(partial(_work, work, tuple(pieces)), "ARRAY<STRING>", useArrow=False)
    # Twice the same is not wanted, which Spark would take the liberty to do with a function of its arguments alone.
    found = spark.range(0, count, 1, count).select(function.asNondeterministic()("id")).collect()
    return [text for row in found for text in row[0]]


def _work(work: Callable[[str], list[str]], pieces: Sequence[str], at: int) -> list[str]:
    return work(pieces[at])


def run_units(spark: Any, tasks: Sequence[Sequence[WorkUnit]], job: dict[str, Any]) -> None:
    """Has units read, written and committed; ``job`` has ``settings``, ``tables`` and ``out``."""
    in_tasks(spark, _run, [json.dumps({**job, "units": [asdict(unit) for unit in task]}) for task in tasks])


def _run(piece: str) -> list[str]:
    job = json.loads(piece)
    settings = from_plain(Settings, job["settings"])
    for unit in job["units"]:
        run_unit(from_plain(WorkUnit, unit), settings, job["tables"], job["out"])
    return []


def observe(spark: Any, units: Sequence[WorkUnit], settings: Settings) -> Iterator[tuple[str, Any]]:
    """The connections that each source has seen, with its name, as plain values."""
    job = {"settings": asdict(settings)}
    for text in in_tasks(spark, _observe, [json.dumps({**job, "unit": asdict(unit)}) for unit in units]):
        source, found = json.loads(text)
        for one in found:
            yield source, one


def _observe(piece: str) -> list[str]:
    job = json.loads(piece)
    unit = from_plain(WorkUnit, job["unit"])
    seen = map(astuple, observed_connections(UnitReader(unit, from_plain(Settings, job["settings"])).segments()))
    return [json.dumps((unit.source.name, some)) for some in iter(lambda: list(islice(seen, OBSERVED_A_TEXT)), [])]
