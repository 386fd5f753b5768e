"""The options that the pipeline's commands have in common, and what is made of them."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import click

from kwiresniff.analysis.filter import compile_filter
from kwiresniff.base.current_folder import outside_current_folder
from kwiresniff.capture.topic_file import read_topic_file
from kwiresniff.cli.click_commands import remember_traceback
from kwiresniff.cli.options import (
    DECODE_AS,
    MAX_DECOMPRESSED,
    REDACT,
    REDACT_KEY_FILE,
    SCHEMAS_HELP,
    VALUE_FORMAT,
    DurationType,
    gathered,
    with_options,
)
from kwiresniff.cli.redact_key import redact_key
from kwiresniff.errors import SchemaError
from kwiresniff.export.table_columns import WRITABLE, WRITTEN
from kwiresniff.pipeline.plan import file_at
from kwiresniff.pipeline.spark_session import make_paths_absolute, start_session
from kwiresniff.pipeline.unit_reader import Settings
from kwiresniff.plugins.hooks import PluginOptions
from kwiresniff.schema import find_release

#: A guess of how many tasks a cluster runs at once.
CLUSTER_SLOTS = 64
#: Spark has no SQL to compile where Python does the work, and begins sooner when it does not try.
_NO_SQL = {"spark__sql__codegen__wholeStage": "false", "spark__sql__codegen__factoryMode": "NO_CODEGEN"}

_Command = Callable[..., Any]


class Cluster(NamedTuple):
    """Where Spark runs."""

    master: str = "local[*]"
    remote: str | None = None
    verbose: bool = False

    def start(self, **settings: str) -> Any:
        """The session; ``settings`` as of ``kwiresniff.pipeline.session``. Relative paths in its SQL begin at the root
        folder."""
        make_paths_absolute()
        with outside_current_folder():  # where Java stays, and the workers that it starts
            return start_session(self.master, remote=self.remote, ui=self.verbose, **settings)

    def start_for_work(self) -> Any:
        """A session without SQL; prints the address of Spark's page with ``verbose``."""
        spark = self.start(**_NO_SQL)
        if self.verbose and self.remote is None:
            print(f"kwiresniff: Spark at {spark.sparkContext.uiWebUrl}", file=sys.stderr)
        return spark

    @property
    def is_local(self) -> bool:
        """Whether all of it runs on this machine, as this user."""
        return self.remote is None and self.master.startswith("local")

    @property
    def slots(self) -> int:
        """How many tasks can run at once, by the master's name."""
        if not self.is_local:
            return CLUSTER_SLOTS
        inside = self.master.removeprefix("local").strip("[]").split(",")[0]
        return int(inside) if inside.isdigit() else 1 if not inside else os.cpu_count() or 1


class Decoding(NamedTuple):
    """The options of decoding."""

    write: str = ",".join(WRITTEN)
    grouping: str = "series"
    audit: str | None = None
    where: str | None = None
    topics: str | None = None
    port: tuple[int, ...] = ()
    decode_as: tuple[str, ...] = ()
    redact: bool = False
    redact_key: str | None = None
    redact_key_file: str | None = None
    max_decompressed: int | None = None
    plugin: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    value_format: tuple[str, ...] = ()

    def settings(self, keylog: str | None = None) -> Settings:
        """The options as ``Settings`` of the pipeline; raises for wrong ones here, before Spark is started."""
        if self.where is not None:
            compile_filter(self.where)
        topics = None
        if self.topics is not None:
            read_topic_file(self.topics)
            topics = file_at(self.topics)
        audit = self.audit
        if audit is not None:
            try:
                audit = find_release(audit)
            except SchemaError as error:
                raise click.BadParameter(str(error), param_hint="'--audit'") from error
        key = redact_key(self.redact_key_file, self.redact_key)
        if self.redact and key is None:
            key = os.urandom(16).hex()
        settings = Settings(
            "records",
            self.port,
            key,
            audit,
            keylog,
            self.where,
            topics=topics,
            decode_as=self.decode_as,
            max_decompressed=self.max_decompressed,
        )
        return settings.with_plugins(self.plugin, PluginOptions(self.schemas, self.value_format))

    @property
    def tables(self) -> tuple[str, ...]:
        """Their names."""
        names = tuple(name.strip() for name in self.write.split(",") if name.strip())
        for name in names:
            if name not in WRITABLE:
                raise click.BadParameter(f"{name!r} is not one of {', '.join(WRITABLE)}", param_hint="'--write'")
        if "audit" in names and self.audit is None:
            raise click.BadParameter("the table audit needs --audit RELEASE", param_hint="'--write'")
        return names if self.audit is None or "audit" in names else (*names, "audit")


_CLUSTER = (
    click.option("--master", metavar="URL", default="local[*]", show_default=True, help="Spark master."),
    click.option("--remote", metavar="URL", help="Spark Connect server, like sc://host:15002, instead of a master."),
    click.option(
        "-v", "verbose", is_flag=True, callback=remember_traceback, help="Spark's page while it runs. Tracebacks."
    ),
)
_DECODING = (
    click.option(
        "--write",
        metavar="TABLES",
        default=",".join(WRITTEN),
        show_default=True,
        help="Tables to write; 'records' has a row for each record.",
    ),
    click.option(
        "--grouping",
        type=click.Choice(["series", "file", "one"]),
        default="series",
        show_default=True,
        help="Which files share connections: those of one rotation, none, or all.",
    ),
    click.option(
        "--where", metavar="EXPR", help="Only exchanges that a filter as of -Y lets through, and their connections."
    ),
    click.option("--audit", metavar="RELEASE", help="Write audit too: clients held against that release."),
    click.option(
        "--topics",
        metavar="FILE",
        help="Names of topic ids, as kafka-topics --describe prints them; workers must see it.",
    ),
    click.option("--port", type=click.IntRange(1, 65535), multiple=True, help="A port brokers listen on: a hint."),
    DECODE_AS,
    REDACT,
    click.option(
        "--redact-key",
        metavar="TEXT",
        envvar="KWIRESNIFF_REDACT_KEY",
        help="Key of those hashes. Other users see it (ps).",
    ),
    REDACT_KEY_FILE,
    click.option(
        "--plugin",
        metavar="PATH",
        multiple=True,
        help="A Python file with plugin hooks, or a folder; workers must see it. May be repeated.",
    ),
    click.option("--schemas", metavar="PLACE", multiple=True, help=f"{SCHEMAS_HELP[:-1]}. Workers must see it."),
    VALUE_FORMAT,
    MAX_DECOMPRESSED,
)
_OUTPUT = (
    click.option("-q", "quiet", is_flag=True, help="No summary on stderr."),
    click.option("--no-progress", "progress", flag_value=False, default=True, help="No progress bar on stderr."),
)


def output_options(command: _Command) -> _Command:
    """Gives a command ``quiet`` and ``progress``."""
    return with_options(command, _OUTPUT)


def cluster_options(command: _Command) -> _Command:
    """Gives a command that starts Spark one ``cluster: Cluster``."""
    return with_options(gathered(command, "cluster", Cluster), _CLUSTER)


def decoding_options(command: _Command) -> _Command:
    """Gives a command that decodes captures one ``decoding: Decoding``."""
    return with_options(gathered(command, "decoding", Decoding), _DECODING)


duration_option = partial(click.option, type=DurationType(), metavar="TIME", show_default=True)
