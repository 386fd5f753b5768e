"""``kwiresniff sniff``: exchanges as they pass a network interface."""

from __future__ import annotations

import re
import sys
from contextlib import ExitStack
from typing import Any

import click

from kwiresniff.analysis.metrics import DEFAULT_SERIES
from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture.live import LiveCapture, LiveOptions, Rotation, network_interfaces
from kwiresniff.capture.live.bpf import expression
from kwiresniff.capture.live.processes import Processes
from kwiresniff.capture.live.savefiles import PRIVATE
from kwiresniff.capture.live.source import DEFAULT_BUFFER_BYTES, DEFAULT_DELAY_MS, DEFAULT_SNAP_BYTES
from kwiresniff.cli.click_commands import ParamType, TrafficCommand
from kwiresniff.cli.event_output import FORMS, screen_for
from kwiresniff.cli.handover import open_and_hand_over
from kwiresniff.cli.interrupts import ready
from kwiresniff.cli.metrics import AddressType, served_metrics
from kwiresniff.cli.options import DurationType, ReadOptions, live_options
from kwiresniff.cli.outcomes import INTERRUPTED, one_line
from kwiresniff.cli.redact_key import with_redact_key
from kwiresniff.cli.sniff_view import show, show_screen, view_of
from kwiresniff.cli.tables import ByType

#: What is shown once a second, or at the end, may come a little later: each batch of packets costs a waking up.
CALM_DELAY_MS = 250

_FILE_SIZE = re.compile(r"([1-9]\d{0,9})([kKmMgG]?)", re.ASCII)
_FILE_SIZE_UNITS = {"": 1_000_000, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class FileSizeType(ParamType):
    """Millions of bytes, or KiB, MiB, GiB with the letters tcpdump has for them; bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _FILE_SIZE.fullmatch(value)
        if match is None:
            self.fail(f"{value!r} is not a number of million bytes, or one with k, m or g", param, ctx)
        return int(match[1]) * _FILE_SIZE_UNITS[match[2].lower()]


class ModeType(ParamType):
    """Who may read and write a file, in octal digits, as chmod takes them."""

    name = "mode"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        if isinstance(value, int):
            return value
        if not re.fullmatch(r"0?[0-6]{3}", value, re.ASCII):
            self.fail(f"{value!r} is not a file's mode in octal digits, like 640", param, ctx)
        return int(value, 8)


def _list_interfaces(ctx: click.Context, param: click.Parameter, wanted: bool) -> None:
    if wanted:
        for one in network_interfaces():
            addresses = " ".join(one.addresses)
            click.echo(f"{one.index}\t{one.name}\t{'up' if one.up else 'down'}\t{addresses}")
        ctx.exit(0)


@click.command("sniff", cls=TrafficCommand)
@click.option(
    "-i",
    "--interface",
    "interfaces",
    metavar="NAME",
    multiple=True,
    required=True,
    help="Interface to listen on; may be repeated; 'any' is all of them.",
)
@click.option(
    "-D",
    "--list-interfaces",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_list_interfaces,
    help="Show the interfaces and exit.",
)
@click.option(
    "-o",
    "form",
    type=click.Choice([*FORMS, "stats", "topics", "doctor"]),
    default="tree",
    show_default=True,
    help="Annotated trees, one line per exchange, JSON, or tables every second: statistics, topics, what is wrong.",
)
@click.option(
    "--live/--no-live",
    "watched",
    default=None,
    help="On the whole screen, or not. -o stats, topics, doctor are its tabs, and on a terminal bring it up.",
)
@click.option("--by", type=ByType(), metavar="NAMES", help="Tables of statistics, as in stats.")
@click.option("-c", "--count", type=click.IntRange(1), metavar="N", help="Stop after N packets.")
@click.option(
    "--duration",
    type=DurationType(in_seconds=True),
    metavar="TIME",
    help="Stop after a time like 30s or 5m; a number alone counts seconds.",
)
@click.option("-w", "--write", metavar="FILE", help="Keep the packets too, as pcap, or pcapng where FILE ends so.")
@click.option("-C", "file_size", type=FileSizeType(), metavar="SIZE", help="New FILE after SIZE million bytes.")
@click.option(
    "-G", "seconds", type=click.IntRange(1), metavar="SECONDS", help="New FILE, named by strftime, after that."
)
@click.option("-W", "files", type=click.IntRange(1), metavar="N", help="With -C, a ring of N files; with -G, N in all.")
@click.option(
    "--mode", type=ModeType(), default=f"{PRIVATE:o}", show_default=True, metavar="OCTAL", help="Mode of new files."
)
@click.option(
    "-Z",
    "user",
    metavar="USER",
    help="Become USER once the sockets are open  [default: who called sudo, else nobody].",
)
@click.option("-p", "--no-promiscuous-mode", "own_only", is_flag=True, help="No packets for other machines.")
@click.option(
    "-s",
    "--snap-length",
    type=click.IntRange(64, DEFAULT_SNAP_BYTES),
    default=DEFAULT_SNAP_BYTES,
    metavar="BYTES",
    help="Only the first BYTES of each packet.",
)
@click.option(
    "-B",
    "--buffer-size",
    type=click.IntRange(1024, 4 << 20),
    default=DEFAULT_BUFFER_BYTES >> 10,
    show_default=True,
    metavar="KIB",
    help="Kernel buffer, in KiB.",
)
@click.option(
    "--metrics",
    "address",
    type=AddressType(),
    metavar="ADDR:PORT",
    help="Serve Prometheus metrics there while it runs.",
)
@click.option(
    "--metrics-host",
    "metrics_hosts",
    metavar="NAME",
    multiple=True,
    help="A name that metrics are collected by, if not by an IP address or as in --metrics; may be repeated.",
)
@click.option(
    "--metrics-series",
    type=click.IntRange(1, 10_000),
    default=DEFAULT_SERIES,
    show_default=True,
    metavar="N",
    help="Clients, brokers and topics that have metrics of their own; the others share one series.",
)
@click.option(
    "--metrics-topics",
    "topic_metrics",
    is_flag=True,
    help="Metrics of topics too: records, lag, time from produce to consume. Reads all bodies.",
)
@click.argument("words", metavar="[BPF EXPRESSION]...", nargs=-1)
@live_options
def command(
    words: tuple[str, ...],
    options: ReadOptions,
    interfaces: tuple[str, ...],
    form: str,
    watched: bool | None,
    by: tuple[tuple[str, ...], ...] | None,
    count: int | None,
    duration: int | None,
    write: str | None,
    file_size: int | None,
    seconds: int | None,
    files: int | None,
    mode: int,
    user: str | None,
    own_only: bool,
    snap_length: int,
    buffer_size: int,
    address: tuple[str, int] | None,
    metrics_hosts: tuple[str, ...],
    metrics_series: int,
    topic_metrics: bool,
) -> int:
    """Decode Kafka traffic as it passes a network interface.

    A BPF expression, as tcpdump takes it, and --port choose packets in the kernel; -Y chooses exchanges. Ctrl-C ends
    it, after what was seen has been printed. Started as root, it gives that up before it reads the first packet.
    """
    _check_files(write, file_size, seconds, files)
    options = with_redact_key(options)  # as root, if we are: the file may be for root alone
    view = view_of(form, watched, by, topic_metrics=topic_metrics)
    wanted = LiveOptions(
        interfaces=tuple(dict.fromkeys(interfaces)),
        expression=expression(words, options.port),
        promiscuous=not own_only and interfaces != ("any",),
        snap_bytes=snap_length,
        buffer_bytes=buffer_size << 10,
        count=count,
        duration_ns=duration,
        delay_ms=CALM_DELAY_MS if view.is_summed_up() else DEFAULT_DELAY_MS,
        decode_as=options.decode_as,
    )
    names = AddressNames()
    processes = Processes(names)
    processes.scan()  # as root, if we are: later only of processes that the new user may look at
    with ExitStack() as stack:
        live = open_and_hand_over(
            wanted, options, user, write, Rotation(file_size, seconds, files), mode, names, has_screen=view.watched
        )
        stack.callback(live.close)
        if options.keylog is not None:
            _follow_key_log(live, options.keylog, quiet=options.quiet)
        screen = None if view.is_summed_up() else screen_for(view.form, options)
        source = view.event_source(live, options, metrics=address is not None, names=names)
        live.on_secrets = source.analyzer.look_for_secrets
        shown = stack.enter_context(view.started_screen(live, options)) if view.watched else None
        if address is not None:
            served = served_metrics(live, source, address, metrics_series, topics=topic_metrics, names=metrics_hosts)
            stack.enter_context(served)
        stack.enter_context(processes.watched())
        stack.enter_context(ready(live.stop))
        if shown is not None:
            finished, exchanges, code = show_screen(view, live, source, shown, is_read=address is not None)
        else:
            if not options.quiet:
                _print_listening(live, wanted.expression, view.advice)
            finished = show(view, live, source, screen)
            exchanges, code = source.exchanges, source.exit_code()
    if not options.quiet:
        _sum_up(live, exchanges)
    return code if finished else INTERRUPTED


def _follow_key_log(live: LiveCapture, keylog: str, *, quiet: bool) -> None:
    if not live.follow_key_log(keylog) and not quiet:
        print(
            f"kwiresniff: {one_line(keylog)} is not there yet; TLS is decrypted once clients write keys to it",
            file=sys.stderr,
        )


def _check_files(write: str | None, file_size: int | None, seconds: int | None, files: int | None) -> None:
    if write is None and (file_size or seconds):
        raise click.UsageError("-C and -G need -w FILE")
    if files and not (file_size or seconds):
        raise click.UsageError("-W needs -C or -G")
    if write == "-":
        raise click.UsageError("-w needs the name of a file: standard output has the exchanges")


def _print_listening(live: LiveCapture, expression: str, advice: str) -> None:
    """From here on no packet is missed: whoever starts traffic by a script waits for this line."""
    if advice:
        print(f"kwiresniff: {advice}", file=sys.stderr)
    chosen = f", {expression}" if expression else ""
    print(f"kwiresniff: listening on {', '.join(live.files)}{chosen}", file=sys.stderr, flush=True)


def _sum_up(live: LiveCapture, exchanges: int) -> None:
    sys.stdout.flush()
    print(
        f"kwiresniff: {', '.join(live.files)}: {live.packets:,} packets, {exchanges:,} exchanges, "
        f"{live.dropped:,} packets dropped",
        file=sys.stderr,
    )
