"""The start of Python workers."""

from __future__ import annotations

from kwiresniff.pipeline.worker_daemon import without_archives


def test_spark_is_not_taken_from_its_archives() -> None:
    """What Spark puts on the path of workers (PythonUtils.sparkPythonPath) goes, what anybody else puts there stays."""
    ours = ["", "/home/me", "/opt/jobs/pyspark-tools.zip", "/opt/jobs/graphs.jar", "/usr/lib/python3.12"]
    spark = "/opt/spark"
    theirs = [
        f"{spark}/python/lib/pyspark.zip",
        f"{spark}/python/lib/py4j-0.10.9.9-src.zip",
        f"{spark}/jars/spark-core_2.13-4.3.0.jar",
    ]
    assert without_archives([ours[0], *theirs, *ours[1:]]) == ours
