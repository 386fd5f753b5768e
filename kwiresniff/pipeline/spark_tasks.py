"""Pieces of work as tasks of Spark, one each, on every kind of cluster, Spark Connect included.

They are a function of numbers, in as many partitions as there are numbers. That takes one kind of Python worker; a data
source takes several, to be known, planned and read, and each of them a second to start. Plain pickles for the same
reason: Arrow has to be loaded.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from kwiresniff.pipeline.observed_connections import ObservedConnection, observed_connections
from kwiresniff.pipeline.plan import WorkUnit
from kwiresniff.pipeline.task import run_unit
from kwiresniff.pipeline.unit_reader import Settings, UnitReader

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def in_tasks(spark: Any, work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """Runs ``work`` on each of the pieces as a task, and returns what each gave. Workers find it, and the classes of
    pieces and results, by their names in modules.
    """
    from pyspark.sql.functions import udf

    count = len(pieces)
    function = udf(partial(_work, work, tuple(pieces)), "BINARY", useArrow=False)
    # Twice the same is not wanted, which Spark would take the liberty to do with a function of its arguments alone.
    found = spark.range(0, count, 1, count).select(function.asNondeterministic()("id")).collect()
    return [pickle.loads(row[0]) for row in found]


def _work(work: Callable[[Piece], Result], pieces: Sequence[Piece], at: int) -> bytes:
    return pickle.dumps(work(pieces[at]))


def run_units(
    spark: Any, tasks: Sequence[Sequence[WorkUnit]], settings: Settings, tables: Sequence[str], out: str
) -> None:
    """Has units read, written and committed."""
    in_tasks(spark, partial(_run, settings, tables, out), tasks)


def _run(settings: Settings, tables: Sequence[str], out: str, task: Sequence[WorkUnit]) -> None:
    for unit in task:
        run_unit(unit, settings, tables, out)


def observe(spark: Any, units: Sequence[WorkUnit], settings: Settings) -> dict[str, list[ObservedConnection]]:
    """The connections that each source has seen, by its name."""
    found = in_tasks(spark, partial(_observe, settings), units)
    return {unit.source.name: seen for unit, seen in zip(units, found, strict=True)}


def _observe(settings: Settings, unit: WorkUnit) -> list[ObservedConnection]:
    return list(observed_connections(UnitReader(unit, settings).segments()))
