"""Commands that read captures and their options, as plain data, and how the texts of options are understood.

An ordinary command line is read by them alone (``command_line``); for all others click's commands are made of them
(``click_commands``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kwiresniff.base.light_typing import Any, Literal, NamedTuple
from kwiresniff.base.time_units import DAY_NS
from kwiresniff.cli.outcomes import UsageMistake


class Kind:
    """What the text of an option has to be."""

    #: What stands for it in help.
    name = "text"

    def convert(self, text: str) -> Any:
        """The value that the text stands for; raises ValueError, saying what is wrong with it."""
        raise NotImplementedError


class Choice(Kind):
    """One of some words."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)

    def convert(self, text: str) -> str:
        if text not in self.words:
            raise ValueError(f"{text!r} is not one of {', '.join(self.words)}")
        return text


class Number(Kind):
    """A number from ``low`` on, at most ``high``."""

    def __init__(self, low: int, high: int | None = None) -> None:
        self.low = low
        self.high = high

    def convert(self, text: str) -> int:
        if not (text.isascii() and text.isdecimal() and len(text) < _LONGEST_NUMBER):
            raise ValueError(f"{text!r} is not a number")
        number = int(text)
        if number < self.low or (self.high is not None and number > self.high):
            raise ValueError(f"{number} is out of range")
        return number


#: Digits that Python makes a number of without asking (``sys.set_int_max_str_digits``).
_LONGEST_NUMBER = 640


class Size(Kind):
    """A number of bytes: ``64KiB``, ``10MB``."""

    name = "size"

    def convert(self, text: str) -> int:
        from kwiresniff.analysis.parse_units import size_bytes  # most commands are given none

        found = size_bytes(text)
        if found is None:
            raise ValueError(f"{text!r} is no size like 64KiB or 10MB")
        return found


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


class MomentKind(Kind):
    """``2026-01-02T03:04:05Z``, a time of day ``03:04:05`` in UTC or, from the first packet on, ``10m``."""

    name = "time"

    def convert(self, text: str) -> Moment:
        from kwiresniff.analysis.parse_units import duration_ns, time_ns, time_of_day_ns  # most commands are given none

        relative = duration_ns(text)
        if relative is not None:
            return Moment(relative, "first packet")
        in_the_day = time_of_day_ns(text)
        if in_the_day is not None:
            return Moment(in_the_day, "midnight")
        absolute = time_ns(text)
        if absolute is None:
            what = "neither a time like 2026-01-02T03:04:05Z or 03:04:05 nor a duration like 10m"
            raise ValueError(f"{text!r} is {what}")
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
    max_decompressed: int | None = None
    plugin: tuple[str, ...] = ()
    redact: bool = False
    redact_key: str | None = None
    show_secrets: bool = False
    strict: bool = False
    quiet: bool = False
    verbose: int = 0
    no_progress: bool = False
    color: str = "auto"


class Option(NamedTuple):
    """An option of a command, and what help says of it.

    Its value is what its ``kind`` makes of its text or of that of its ``default``, None without either. That of a flag
    is True or False; of one that ``counts``, how often it is there; of one that may be there ``multiple`` times, a
    tuple. Where it is not there, its text is that of the variable ``environment``.
    """

    #: Of the parameter that gets the value.
    name: str
    #: As it is typed: ``-Y``, ``--filter``.
    flags: tuple[str, ...]
    help: str | None = None
    kind: Kind | None = None
    default: str | None = None
    show_default: bool = False
    metavar: str | None = None
    is_flag: bool = False
    counts: bool = False
    multiple: bool = False
    required: bool = False
    hidden: bool = False
    environment: str | None = None


class CaptureCommand(NamedTuple):
    """A command that reads captures."""

    name: str
    run: Callable[..., int]
    #: Those that it alone has.
    own: tuple[Option, ...]

    @property
    def options(self) -> tuple[Option, ...]:
        """All options, its own first."""
        return (*self.own, *SHARED)

    def call(self, values: dict[str, Any]) -> int:
        """Runs it; ``values`` are those of all options by their names, and ``captures``. Raises UsageMistake."""
        rest = dict(values)
        captures = (*rest.pop("files"), *rest.pop("captures"))
        del rest["numeric"]
        if not captures:
            raise UsageMistake("Missing argument 'CAPTURE...'.")
        shared = {name: rest.pop(name) for name in ReadOptions._fields}
        return self.run(captures=captures, options=ReadOptions(**shared), **rest)


def capture_command(name: str, *own: Option) -> Callable[[Callable[..., int]], CaptureCommand]:
    """Makes a function a command with its own options and the shared ones.

    It receives ``captures``, a tuple of one or more, one ``options: ReadOptions``, and its own options by their names.
    """

    def made(run: Callable[..., int]) -> CaptureCommand:
        return CaptureCommand(name, run, own)

    return made


def form_option(forms: Sequence[str], default: str = "table", text: str | None = None) -> Option:
    """The option ``-o`` of a command that has these forms of output."""
    return Option("form", ("-o",), text, Choice(forms), default, show_default=True)


#: What ``--max-decompressed`` says of itself, wherever it is.
MAX_DECOMPRESSED_HELP = "Read so many decompressed bytes of each message, however few it has itself  [default: 64KiB]."


def port_option(text: str) -> Option:
    """The option ``--port``, which is a hint for captures and a filter for networks."""
    return Option("port", ("--port",), text, Number(1, 65535), multiple=True)


#: What has a meaning for captures that are there already.
_OF_FILES = (
    Option("files", ("-r",), "A capture, as tcpdump and tshark take it.", metavar="CAPTURE", multiple=True),
    Option("numeric", ("-n",), "Nothing: names are never looked up.", is_flag=True, hidden=True),
    Option("packets", ("-c",), "Only the first N packets of TCP.", Number(1), metavar="N"),
    Option(
        "since",
        ("--since",),
        "Exchanges from this time on: 2026-01-02T03:04:05Z, 03:04:05, or 10m after the first packet.",
        MomentKind(),
    ),
    Option("until", ("--until",), "Exchanges before this time.", MomentKind()),
    Option("no_progress", ("--no-progress",), "No progress bar on stderr.", is_flag=True),
)
#: What has a meaning for live captures, too.
OF_TRAFFIC = (
    Option("filter", ("-Y", "--filter"), "Only exchanges like 'api == Fetch and latency > 100ms'.", metavar="EXPR"),
    Option(
        "keylog",
        ("--keylog",),
        "TLS keys (SSLKEYLOGFILE format) to decrypt with, through tshark.",
        metavar="FILE",
    ),
    Option("topics", ("--topics",), "Names of topic ids, as kafka-topics --describe prints them.", metavar="FILE"),
    Option("limit", ("--limit",), "Stop after N exchanges.", Number(1), metavar="N"),
    Option("max_decompressed", ("--max-decompressed",), MAX_DECOMPRESSED_HELP, Size(), metavar="SIZE"),
    Option("plugin", ("--plugin",), "A Python file with plugin hooks; may be repeated.", metavar="PATH", multiple=True),
    Option("redact", ("--redact",), "Record keys, values and headers as length and keyed hash.", is_flag=True),
    Option(
        "redact_key",
        ("--redact-key",),
        "Key of those hashes; random without it.",
        metavar="TEXT",
        environment="KWIRESNIFF_REDACT_KEY",
    ),
    Option("show_secrets", ("--show-secrets",), "Print SASL, SCRAM, token and config secrets too.", is_flag=True),
    Option("strict", ("--strict",), "Exit with 1 when there was any problem.", is_flag=True),
    Option("quiet", ("-q",), "No problems on stderr.", is_flag=True),
    Option("verbose", ("-v",), "More detail; -vv more still. Tracebacks.", counts=True),
    Option("color", ("--color",), "Colours on the terminal.", Choice(("auto", "always", "never")), "auto"),
)
#: The options that all commands reading captures have in common.
SHARED = (
    *_OF_FILES,
    port_option("A port brokers listen on: a hint for odd traffic, Kafka is found on any port."),
    *OF_TRAFFIC,
)
