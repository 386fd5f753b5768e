"""Captures to tables of exchanges on Spark, for more captures than one process can read.

Importing this package registers the data source with the Spark session that is there; ``session`` starts one. The
functions that do the work know nothing of Spark: ``plan`` says what a task does, ``unit_reader`` and ``rows`` do it.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kwiresniff.pipeline.spark_session import start_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def register(spark: SparkSession | None = None) -> None:
    """Makes ``spark.read.format("kwiresniff")`` known to a session, by default the active one."""
    from pyspark.sql import SparkSession

    from kwiresniff.pipeline import spark_source

    found = spark if spark is not None else SparkSession.getActiveSession()
    if found is not None:
        spark_source.register(found)


def with_variants(frame: DataFrame) -> DataFrame:
    """A frame of exchanges with its bodies as VARIANT, for ``request_body:topics[0].name``."""
    from kwiresniff.pipeline.query import with_variants as change

    found: DataFrame = change(frame)
    return found


def session(master: str = "local[*]", *, remote: str | None = None, ui: bool = False, **settings: str) -> SparkSession:
    """A Spark session with the data source, see ``kwiresniff.pipeline.spark_session``."""
    found: SparkSession = start_session(master, remote=remote, ui=ui, **settings)
    register(found)
    return found


# Whoever has no Spark session has no use for Spark being imported.
if "pyspark.sql" in sys.modules:
    register()
