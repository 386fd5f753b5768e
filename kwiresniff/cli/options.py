"""The options that every command reading captures has in common, and how their texts are understood."""

# No "from __future__ import annotations" here: a named tuple compiles every annotation that is left as text, which
# takes longer than all the rest of it.

from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from kwiresniff.analysis.parse_units import duration_ns, time_ns, time_of_day_ns
from kwiresniff.base.time_units import DAY_NS
from kwiresniff.cli.late_imports import LongNames
from kwiresniff.cli.main import TRACEBACK, add_help

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only in newer releases of click


class Moment(NamedTuple):
    """A point in time, in nanoseconds ``since``: the ``epoch``, the ``first packet`` or ``midnight`` UTC."""

    ns: int
    since: Literal["epoch", "first packet", "midnight"]

    def since_epoch(self, first_ns: int) -> int:
        """The absolute time, for a capture whose first packet is at ``first_ns``.

        A time of day is that of the first packet's day; of the day after where it would be more than twelve hours
        before the first packet, because then the capture goes on past midnight.
        """
        if self.since == "epoch":
            return self.ns
        if self.since == "first packet":
            return first_ns + self.ns
        same_day_ns = first_ns - first_ns % DAY_NS + self.ns
        return same_day_ns + DAY_NS if first_ns - same_day_ns > DAY_NS // 2 else same_day_ns


class MomentType(ParamType):
    """``2026-01-02T03:04:05Z``, a time of day ``03:04:05`` in UTC or, from the first packet on, ``10m``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Moment:
        if isinstance(value, Moment):
            return value
        relative = duration_ns(value)
        if relative is not None:
            return Moment(relative, "first packet")
        in_the_day = time_of_day_ns(value)
        if in_the_day is not None:
            return Moment(in_the_day, "midnight")
        absolute = time_ns(value)
        if absolute is None:
            what = "neither a time like 2026-01-02T03:04:05Z or 03:04:05 nor a duration like 10m"
            self.fail(f"{value!r} is {what}", param, ctx)
        return Moment(absolute, "epoch")


class ReadOptions(NamedTuple):
    """The shared options: how captures are read, whatever is done with the result."""

    filter: str | None = None
    port: tuple[int, ...] = ()
    keylog: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    topics: str | None = None
    limit: int | None = None
    packets: int | None = None
    plugin: tuple[str, ...] = ()
    redact: bool = False
    redact_key: str | None = None
    show_secrets: bool = False
    strict: bool = False
    quiet: bool = False
    verbose: int = 0
    no_progress: bool = False
    color: str = "auto"


def remember_traceback(ctx: click.Context, param: click.Parameter, value: int) -> int:
    """The callback of ``-v``: errors come with their traceback."""
    if value:
        ctx.meta[TRACEBACK] = True
    return value


class SharedOption(click.Option):
    """An option that commands which read traffic have in common; ``--help`` shows them apart."""


class TrafficCommand(click.Command):
    """A command whose ``--help`` shows its own options first and the shared ones in a section of their own."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._equals = False
        add_help(self)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Click's parsing. What follows ``-o=`` is a value with ``=`` before it, behind a long name without."""
        self._equals = any(arg[:1] == "-" and arg[2:3] == "=" for arg in args)
        return super().parse_args(ctx, args)

    def make_parser(self, ctx: click.Context) -> Any:
        """Click's parser; that it tries short names as long ones costs nothing."""
        parser: Any = super().make_parser(ctx)
        long, short = getattr(parser, "_long_opt", None), getattr(parser, "_short_opt", None)
        if type(long) is dict and type(short) is dict:
            parser._long_opt = LongNames(long, {} if self._equals else short)
        return parser

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        own: list[tuple[str, str]] = []
        shared: list[tuple[str, str]] = []
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                (shared if isinstance(param, SharedOption) else own).append(record)
        for title, records in (("Options", own), ("Options shared by commands that read traffic", shared)):
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)


_shared = partial(click.option, cls=SharedOption)

#: What has a meaning for captures that are there already.
_FILE_OPTIONS = (
    click.argument("captures", metavar="CAPTURE...", nargs=-1),
    _shared("-r", "files", metavar="CAPTURE", multiple=True, help="A capture, as tcpdump and tshark take it."),
    _shared("-n", "numeric", is_flag=True, hidden=True, expose_value=False, help="Nothing: names are never looked up."),
    _shared("-c", "packets", type=click.IntRange(1), metavar="N", help="Only the first N packets of TCP."),
    _shared(
        "--since",
        type=MomentType(),
        help="Exchanges from this time on: 2026-01-02T03:04:05Z, 03:04:05, or 10m after the first packet.",
    ),
    _shared("--until", type=MomentType(), help="Exchanges before this time."),
    _shared("--no-progress", is_flag=True, help="No progress bar on stderr."),
)
_OPTIONS = (
    _shared("-Y", "--filter", metavar="EXPR", help="Only exchanges like 'api == Fetch and latency > 100ms'."),
    _shared("--keylog", metavar="FILE", help="TLS keys (SSLKEYLOGFILE format) to decrypt with, through tshark."),
    _shared("--topics", metavar="FILE", help="Names of topic ids, as kafka-topics --describe prints them."),
    _shared("--limit", type=click.IntRange(1), metavar="N", help="Stop after N exchanges."),
    _shared("--plugin", metavar="PATH", multiple=True, help="A Python file with plugin hooks; may be repeated."),
    _shared("--redact", is_flag=True, help="Record keys, values and headers as length and keyed hash."),
    _shared(
        "--redact-key", metavar="TEXT", envvar="KWIRESNIFF_REDACT_KEY", help="Key of those hashes; random without it."
    ),
    _shared("--show-secrets", is_flag=True, help="Print SASL, SCRAM, token and config secrets too."),
    _shared("--strict", is_flag=True, help="Exit with 1 when there was any problem."),
    _shared("-q", "quiet", is_flag=True, help="No problems on stderr."),
    _shared("-v", "verbose", count=True, callback=remember_traceback, help="More detail; -vv more still. Tracebacks."),
    _shared("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours on the terminal."),
)

_Command = Callable[..., Any]


def _port(help_text: str) -> Callable[[_Command], _Command]:
    return _shared("--port", type=click.IntRange(1, 65535), multiple=True, help=help_text)


def capture_options(command: _Command) -> _Command:
    """Gives a command the shared options; it receives ``captures`` and one ``options: ReadOptions``."""

    @wraps(command)
    def run(captures: tuple[str, ...], files: tuple[str, ...], **params: Any) -> Any:
        if not files and not captures:
            raise click.UsageError("Missing argument 'CAPTURE...'.")
        return command(captures=(*files, *captures), **params)

    port = _port("A port brokers listen on: a hint for odd traffic, Kafka is found on any port.")
    return _decorated(run, (*_FILE_OPTIONS, port, *_OPTIONS))


def live_options(command: _Command) -> _Command:
    """Adds the shared options to a command that reads a network, not capture files."""
    port = _port("Only packets to or from this port, chosen in the kernel; may be repeated.")
    return _decorated(command, (port, *_OPTIONS))


def _decorated(command: _Command, options: Sequence[Callable[[_Command], _Command]]) -> _Command:
    @wraps(command)
    def run(**params: Any) -> Any:
        given = {name: params.pop(name) for name in ReadOptions._fields if name in params}
        return command(options=ReadOptions(**given), **params)

    decorated: _Command = run
    for option in reversed(options):
        decorated = option(decorated)
    return decorated
