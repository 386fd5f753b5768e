"""The options that every command reading captures has in common, and how their texts are understood."""

# No "from __future__ import annotations" here: a named tuple compiles every annotation that is left as text, which
# takes longer than all the rest of it.

from collections.abc import Callable, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from kwiresniff.analysis.units import duration_ns, time_ns
from kwiresniff.cli.main import TRACEBACK

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:
    ParamType = click.ParamType  # generic only in newer releases of click


class Moment(NamedTuple):
    """A point in time: nanoseconds since the epoch, or since the first packet when ``relative``."""

    ns: int
    relative: bool

    def since_epoch(self, first_ns: int) -> int:
        """The absolute time, for a capture whose first packet is at ``first_ns``."""
        return first_ns + self.ns if self.relative else self.ns


class MomentType(ParamType):
    """``2026-01-02T03:04:05Z`` or, from the first packet on, ``10m``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Moment:
        if isinstance(value, Moment):
            return value
        relative = duration_ns(value)
        if relative is not None:
            return Moment(relative, True)
        absolute = time_ns(value)
        if absolute is None:
            self.fail(f"{value!r} is neither a time like 2026-01-02T03:04:05Z nor a duration like 10m", param, ctx)
        return Moment(absolute, False)


class ReadOptions(NamedTuple):
    """What the user asked of the reading, whatever is done with the result."""

    filter: str | None = None
    port: tuple[int, ...] = ()
    keylog: str | None = None
    since: Moment | None = None
    until: Moment | None = None
    limit: int | None = None
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
    """What ``-v`` does beside its count: errors come with their traceback."""
    if value:
        ctx.meta[TRACEBACK] = True
    return value


#: What has a meaning for captures that are there already.
_FILE_OPTIONS = (
    click.argument("captures", metavar="CAPTURE...", nargs=-1, required=True),
    click.option(
        "--since", type=MomentType(), help="Exchanges from this time on; a duration counts from the first packet."
    ),
    click.option("--until", type=MomentType(), help="Exchanges before this time."),
    click.option("--no-progress", is_flag=True, help="No progress bar on stderr."),
)
_OPTIONS = (
    click.option("-Y", "--filter", metavar="EXPR", help="Only exchanges like 'api == Fetch and latency > 100ms'."),
    click.option("--keylog", metavar="FILE", help="TLS keys (SSLKEYLOGFILE format) to decrypt with, through tshark."),
    click.option("--limit", type=click.IntRange(1), metavar="N", help="Stop after N exchanges."),
    click.option("--plugin", metavar="PATH", multiple=True, help="A Python file with plugin hooks; may be repeated."),
    click.option("--redact", is_flag=True, help="Record keys, values and headers as length and keyed hash."),
    click.option(
        "--redact-key", metavar="TEXT", envvar="KWIRESNIFF_REDACT_KEY", help="Key of those hashes; random without it."
    ),
    click.option("--show-secrets", is_flag=True, help="Print SASL, SCRAM and delegation-token secrets too."),
    click.option("--strict", is_flag=True, help="Exit with 1 when there was any problem."),
    click.option("-q", "quiet", is_flag=True, help="No problems on stderr."),
    click.option(
        "-v", "verbose", count=True, callback=remember_traceback, help="More detail; -vv more still. Tracebacks."
    ),
    click.option(
        "--color", type=click.Choice(["auto", "always", "never"]), default="auto", help="Colours on the terminal."
    ),
)

_Command = Callable[..., Any]


def _port(help_text: str) -> Callable[[_Command], _Command]:
    return click.option("--port", type=click.IntRange(1, 65535), multiple=True, help=help_text)


def capture_options(command: _Command) -> _Command:
    """Gives a command the shared options; it receives ``captures`` and one ``options: ReadOptions``."""
    port = _port("A port brokers listen on: a hint for odd traffic, Kafka is found on any port.")
    return _decorated(command, (*_FILE_OPTIONS, port, *_OPTIONS))


def live_options(command: _Command) -> _Command:
    """The same for a command that reads no captures but a network."""
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
