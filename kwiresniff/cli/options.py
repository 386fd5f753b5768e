"""The options that commands which read captures have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Literal, NamedTuple, TypeAlias

import click

from kwiresniff.analysis.parse_units import duration_ns, size_bytes, time_ns, time_of_day_ns
from kwiresniff.base.time_units import DAY_NS
from kwiresniff.capture import BUILT_IN, TSHARK
from kwiresniff.cli.click_commands import ParamType, SharedOption, TrafficCommand, remember_traceback
from kwiresniff.plugins.hooks import PluginOptions

_Work: TypeAlias = Callable[..., Any]


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


class DurationType(ParamType):
    """A time that is longer than nothing: ``100ms``, ``10s``; its value are nanoseconds. With ``in_seconds`` a number
    alone counts seconds.
    """

    name = "duration"

    def __init__(self, *, in_seconds: bool = False) -> None:
        self._in_seconds = in_seconds

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else duration_ns(value)
        if found is None and self._in_seconds:
            found = duration_ns(f"{value}s")
        if found is None or found <= 0:
            self.fail(f"{value!r} is no duration like 100ms or 10s", param, ctx)
        return found


class DecodeAsType(ParamType):
    """A rule of ``--decode-as``; its value is the text."""

    name = "rule"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        from kwiresniff.capture.decode_as import rule_of

        try:
            rule_of(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class SizeType(ParamType):
    """A number of bytes: ``64KiB``, ``10MB``."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        found = value if isinstance(value, int) else size_bytes(value)
        if found is None:
            self.fail(f"{value!r} is no size like 64KiB or 10MB", param, ctx)
        return found


class ReadOptions(NamedTuple):
    """The shared options: how captures are read, whatever is done with the result."""

    filter: str | None = None
    port: tuple[int, ...] = ()
    decode_as: tuple[str, ...] = ()
    keylog: str | None = None
    tls_engine: str = BUILT_IN
    since: Moment | None = None
    until: Moment | None = None
    topics: str | None = None
    hosts: str | None = None
    limit: int | None = None
    packets: int | None = None
    max_decompressed: int | None = None
    plugin: tuple[str, ...] = ()
    schemas: tuple[str, ...] = ()
    value_format: tuple[str, ...] = ()
    redact: bool = False
    redact_key: str | None = None
    redact_key_file: str | None = None
    show_secrets: bool = False
    strict: bool = False
    quiet: bool = False
    verbose: int = 0
    no_progress: bool = False
    color: str = "auto"

    @property
    def plugin_options(self) -> PluginOptions:
        """What plugins are given."""
        return PluginOptions(self.schemas, self.value_format)


#: What options say of themselves, wherever they are.
SCHEMAS_HELP = "Decode keys and values by the schemas of a folder, a file or a registry's URL; may be repeated."
VALUE_FORMAT_HELP = (
    "Decode them by [TOPIC[/key]=]FORMAT[:SCHEMA], or auto: what says itself what it is; may be repeated."
)
PLUGIN_HELP = "A Python file with plugin hooks, or a folder of them; may be repeated."
MAX_DECOMPRESSED_HELP = "Read so many decompressed bytes of each message, however few it has itself  [default: 64KiB]."


def form_option(forms: Sequence[str], default: str = "table", text: str | None = None) -> Callable[[_Work], _Work]:
    """The option ``-o`` of a command that has these forms of output."""
    return click.option("-o", "form", type=click.Choice(forms), default=default, show_default=True, help=text)


def _shared(*flags: str, **settings: Any) -> Callable[[_Work], _Work]:
    return click.option(*flags, cls=SharedOption, **settings)


def _port_option(text: str) -> Callable[[_Work], _Work]:
    """The option ``--port``, which is a hint for captures and a filter for networks."""
    return _shared("--port", type=click.IntRange(1, 65535), multiple=True, help=text)


#: What has a meaning for captures that are there already.
_OF_FILES = (
    _shared("-r", "files", multiple=True, metavar="CAPTURE", help="A capture, as tcpdump and tshark take it."),
    _shared("-n", "numeric", is_flag=True, hidden=True, expose_value=False, help="Nothing: names are never looked up."),
    _shared("-c", "packets", type=click.IntRange(1), metavar="N", help="Only the first N packets of TCP."),
    _shared(
        "--since",
        type=MomentType(),
        help="Exchanges from this time on: 2026-01-02T03:04:05Z, 03:04:05, or 10m after the first packet.",
    ),
    _shared("--until", type=MomentType(), help="Exchanges before this time."),
    _shared(
        "--tls-engine",
        type=click.Choice([BUILT_IN, TSHARK]),
        default=BUILT_IN,
        help="Who decrypts TLS: tshark, which must be installed, gives a second opinion.",
    ),
    _shared("--no-progress", is_flag=True, help="No progress bar on stderr."),
    _port_option("A port brokers listen on: a hint for odd traffic, Kafka is found on any port."),
)
#: What has a meaning for live captures, too.
_OF_TRAFFIC = (
    _shared("-Y", "--filter", metavar="EXPR", help="Only exchanges like 'api == Fetch and latency > 100ms'."),
    _shared(
        "-d",
        "--decode-as",
        type=DecodeAsType(),
        multiple=True,
        metavar="RULE",
        help="What packets hold, like udp.port==8473,vxlan or link_type==147,ethernet; may be repeated.",
    ),
    _shared("--keylog", metavar="FILE", help="TLS keys (SSLKEYLOGFILE format) to decrypt with."),
    _shared("--topics", metavar="FILE", help="Names of topic ids, as kafka-topics --describe prints them."),
    _shared("--hosts", metavar="FILE", help="Names and zones of addresses, in the format of /etc/hosts."),
    _shared("--limit", type=click.IntRange(1), metavar="N", help="Stop after N exchanges."),
    _shared("--max-decompressed", type=SizeType(), metavar="SIZE", help=MAX_DECOMPRESSED_HELP),
    _shared(
        "--plugin",
        multiple=True,
        metavar="PATH",
        help=PLUGIN_HELP,
    ),
    _shared("--schemas", multiple=True, metavar="PLACE", help=SCHEMAS_HELP),
    _shared("--value-format", multiple=True, metavar="RULE", help=VALUE_FORMAT_HELP),
    _shared("--redact", is_flag=True, help="Records and errors' texts as length and keyed hash."),
    _shared(
        "--redact-key",
        envvar="KWIRESNIFF_REDACT_KEY",
        metavar="TEXT",
        help="Key of those hashes; random without it. Other users see it (ps).",
    ),
    _shared("--redact-key-file", metavar="FILE", help="File with that key, which nobody else sees."),
    _shared("--show-secrets", is_flag=True, help="Print SASL, SCRAM, token and config secrets too."),
    _shared("--strict", is_flag=True, help="Exit with 1 when there was any problem."),
    _shared("-q", "quiet", is_flag=True, help="No problems on stderr."),
    _shared("-v", "verbose", count=True, callback=remember_traceback, help="More detail; -vv more still. Tracebacks."),
    _shared("--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours on the terminal."),
)


def capture_command(
    name: str, *leading: Callable[[_Work], _Work], metavar: str = "CAPTURE..."
) -> Callable[[_Work], click.Command]:
    """Makes a function a command with the shared options, behind those that it has already; ``metavar`` is what its
    arguments are called, ``leading`` are arguments before them.

    It receives ``captures``, a tuple of one or more, one ``options: ReadOptions``, and its own options by their names.
    """

    def made(work: _Work) -> click.Command:
        read = gathered(work, "options", ReadOptions)

        @wraps(work)
        def run(files: tuple[str, ...], captures: tuple[str, ...], **values: Any) -> Any:
            if not files and not captures:
                raise click.UsageError(f"Missing argument '{metavar}'.")
            return read(captures=(*files, *captures), **values)

        command = with_options(run, (*_OF_FILES, *_OF_TRAFFIC))
        command = click.argument("captures", metavar=metavar, nargs=-1)(command)
        for argument in reversed(leading):
            command = argument(command)
        return click.command(name, cls=TrafficCommand)(command)

    return made


def live_options(work: _Work) -> _Work:
    """Gives a function the shared options that have a meaning for a network, as one ``options: ReadOptions``."""

    port = _port_option("Only packets to or from this port, chosen in the kernel; may be repeated.")
    return with_options(gathered(work, "options", ReadOptions), (port, *_OF_TRAFFIC))


def with_options(work: _Work, options: Sequence[Callable[[_Work], _Work]]) -> _Work:
    """Gives a function options, which help lists in their order."""
    for option in reversed(options):
        work = option(work)
    return work


def gathered(work: _Work, name: str, kind: Any) -> _Work:
    """Gives a function those of its options that are fields of ``kind``, a named tuple, as one with this name."""

    @wraps(work)
    def run(**values: Any) -> Any:
        given = {field: values.pop(field) for field in kind._fields if field in values}
        return work(**{name: kind(**given)}, **values)

    return run
