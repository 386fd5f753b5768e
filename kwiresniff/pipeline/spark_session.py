"""A Spark session for this work: small, quiet, with a Java that it can run on."""

from __future__ import annotations

import atexit
import os
import re
import socket
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from kwiresniff.errors import KwiresniffError
from kwiresniff.pipeline.failures import first_line
from kwiresniff.pipeline.java import cached, find_java, fingerprint, lower_priority

#: In local mode the driver is the executor. Decoding happens in Python beside it, so the JVM only moves rows.
DRIVER_MEMORY = "1g"
#: Of Spark Connect, when the URL names none; and how long a server or a master may take to accept a connection.
CONNECT_PORT = 15002
CONNECT_TIMEOUT_S = 10
#: Spark's setting without which a data source must not have ``pushFilters``.
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
#: The attempts of a task on a cluster, Spark's default.
TASK_ATTEMPTS = 4
#: Variables of the environment that name a folder or a program to start Spark with.
_PATHS = ("HADOOP_CONF_DIR", "JAVA_HOME", "PYSPARK_PYTHON", "SPARK_CONF_DIR", "SPARK_HOME")
_MASTER = re.compile(r"local(\[.*\])?$|local-cluster\[|spark://|k8s://|yarn$")
#: C1 alone and the serial collector halve the start: no job here runs JVM code long enough to repay more.
_JVM_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.net.preferIPv4Stack=true"
#: Spark warns of a dozen things that nobody has to do anything about, and of what it repairs by itself with stacks of
#: both languages. What stops a job is raised.
_LOGGING = """\
rootLogger.level = {level}
rootLogger.appenderRef.stderr.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = Spark: %p %c{{1}}: %m%n
# What its interactive shells print when they change the level themselves.
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = {level}
"""


def start_session(master: str = "local[*]", *, remote: str | None = None, ui: bool = False, **settings: str) -> Any:
    """A session on ``master``, or on a Spark Connect server. It does not know the data source yet: who needs none need
    not wait for that.

    ``settings`` are Spark's own, with ``__`` for the dots. Raises KwiresniffError when Spark is not installed, when
    there is no Java, and when the cluster does not answer.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise KwiresniffError(f'the pipeline needs Spark ({error}); pip install "kwiresniff[spark]"') from error
    builder: Any = SparkSession.builder.appName("kwiresniff")
    if remote is None:
        builder = _classic(builder, master, ui)
    builder = builder.config(PUSHDOWN, "true").config("spark.sql.session.timeZone", "UTC")
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    return _started(builder, master) if remote is None else _connected(builder, remote)


def _started(builder: Any, master: str) -> Any:
    """The session; raises KwiresniffError where there is no cluster, or one that runs nothing."""
    try:
        return builder.getOrCreate()
    except Exception as error:
        what = first_line(error)
        if "stopped SparkContext" in what:  # all that is left when a cluster has given it up
            what = "its workers cannot run anything; their logs say why"
        raise KwiresniffError(f"{master}: Spark does not start: {what}") from error


def _connected(builder: Any, remote: str) -> Any:
    """A session on a Spark Connect server. Spark itself would try for minutes to reach one that is not there."""
    place = urlsplit(remote)
    try:
        _reach(place.hostname or "", place.port or CONNECT_PORT)
    except (OSError, ValueError) as error:
        raise KwiresniffError(f"{remote}: no Spark Connect server answers there ({error})") from None
    try:
        return builder.remote(remote).getOrCreate()
    except ImportError as error:
        raise KwiresniffError(f"{remote}: {error}; pip install 'pyspark[connect]'".replace("\n", " ")) from None


def _reach(host: str, port: int) -> None:
    """Raises OSError when no connection is accepted there."""
    socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()


def _check_master(master: str) -> None:
    """Raises KwiresniffError for what is no master, and for standalone ones none of which answers."""
    if not _MASTER.match(master):  # Spark's launcher would print the stack of another program
        raise KwiresniffError(f"{master}: no Spark master; one is local[*], spark://HOST:7077, yarn or k8s://URL")
    refused: list[str] = []
    for place in master.removeprefix("spark://").split(",") if master.startswith("spark://") else ():
        host, _, port = place.rpartition(":")
        try:
            return _reach(host.strip("[]"), int(port))
        except (OSError, ValueError) as error:
            refused.append(str(error))
    if refused:  # Spark itself would try for a minute
        raise KwiresniffError(f"{master}: no Spark master answers there ({refused[0]})")


def make_paths_absolute() -> None:
    """Makes the relative paths absolute that the environment has for Spark's start, which may happen elsewhere."""
    for name in _PATHS:
        value = os.environ.get(name, "")
        if os.sep in value:  # a program by its name alone is found on PATH
            os.environ[name] = os.path.abspath(value)


def _packaged_home() -> str:
    """The folder of the Spark that comes with the Python package, or that was downloaded beside it (SPARK-32017).

    Without ``SPARK_HOME`` pyspark takes the folder above the current one for it where that has ``bin/spark-submit``.
    """
    package = find_spec("pyspark")
    assert package is not None and package.origin is not None
    folder = Path(package.origin).parent
    downloaded = folder / "spark-distribution"
    return str(downloaded if (downloaded / "jars").is_dir() else folder)


def _classic(builder: Any, master: str, ui: bool) -> Any:
    _check_master(master)
    home = os.environ["SPARK_HOME"] = os.environ.get("SPARK_HOME") or _packaged_home()
    java = find_java()
    os.environ["JAVA_HOME"] = java.home()
    # Workers run what this process runs, not whatever python3 is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if master.startswith("local"):
        # Alone among Spark's modes this one gives up when a task fails once, a worker that was killed included.
        master = re.sub(r"^local\[([^,\]]+)\]$", rf"local[\1,{TASK_ATTEMPTS}]", master)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        if not master.startswith("local-cluster"):  # Spark makes the secret, which stays in its process
            builder = builder.config("spark.authenticate", "true")
    level = "error" if ui else "off"
    logging = cached(f"log4j2-{level}.properties", _LOGGING.format(level=level))
    # That folder is on the class path. Java archives classes of jars alone, and refuses where there is anything else.
    archive = ""
    jars = fingerprint(Path(home) / "jars")
    if "SPARK_CONF_DIR" not in os.environ:
        archive = java.archive_options(f"spark-{version('pyspark')}-{jars}")
    if "AtExit" in archive:
        atexit.register(_leave_writing)
    options = f"{_JVM_OPTIONS} -Dlog4j2.configurationFile={logging} {archive}"
    if "PYTHONSAFEPATH" in os.environ:  # executors elsewhere do not inherit it
        builder = builder.config("spark.executorEnv.PYTHONSAFEPATH", os.environ["PYTHONSAFEPATH"])
    return (
        builder.master(master)
        .config("spark.ui.enabled", str(ui).lower())
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", DRIVER_MEMORY)
        .config("spark.driver.extraJavaOptions", options)
        # Files are named one by one; a job to look at them would take longer than looking.
        .config("spark.sql.sources.parallelPartitionDiscovery.threshold", "10000")
        .config("spark.sql.shuffle.partitions", "2" if master.startswith("local") else "200")
    )


def _leave_writing() -> None:
    """Leaves Java alone with its archive, behind whatever else is to be done: the next run may begin at once."""
    from pyspark import SparkContext

    process = getattr(getattr(SparkContext, "_gateway", None), "proc", None)
    if process is not None:
        lower_priority(process.pid)
