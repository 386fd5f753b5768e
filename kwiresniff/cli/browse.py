"""``kwiresniff browse``: a full-screen program over captures."""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack
from typing import Final

import click

from kwiresniff.browse.captures_model import Captured, CapturesModel
from kwiresniff.browse.messages import Jobs
from kwiresniff.capture import open_captures, with_decryption
from kwiresniff.capture.packet_places import PacketPlaces
from kwiresniff.capture.paths import STANDARD_INPUT
from kwiresniff.cli.event_output import dissection_of
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.index_job import checked_filter
from kwiresniff.cli.kept_index import ENDING, unfit_options
from kwiresniff.cli.options import ReadOptions, capture_command
from kwiresniff.cli.redact_key import with_redact_key
from kwiresniff.cli.spool import readable_twice
from kwiresniff.errors import KwiresniffError
from kwiresniff.index import ExchangeIndex, ExchangeReader
from kwiresniff.index.exchange_reader import WHOLE
from kwiresniff.index.forks import Background, Forks
from kwiresniff.session import Analyzer

_INDEX: Final = "kwiresniff.cli.index_job"
_JOBS: Final = "kwiresniff.cli.browse_jobs"


@capture_command("browse")
@click.option(
    "--keep-index", "keeps", is_flag=True, help=f"Keep the index in CAPTURE{ENDING}, to be used from then on."
)
def command(captures: tuple[str, ...], options: ReadOptions, keeps: bool) -> int:
    """Browse captures: exchanges, the tree and the bytes of each, statistics, topics, groups, findings.

    A full-screen program, for which the extra "browse" is needed; ? in it shows the keys. -Y is the filter that it
    begins with.
    """
    piped = STANDARD_INPUT in captures
    if not (piped or sys.stdin.isatty()) or not sys.stdout.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        raise click.UsageError("browse needs a terminal that can move the cursor; without one, use read or stats")
    if keeps and (unfit := unfit_options(options)):
        raise click.UsageError(f"--keep-index goes without {', '.join(unfit)}")
    if options.filter is not None:
        checked_filter(options.filter)
    with ExitStack() as stack:
        names = tuple([readable_twice(one, stack) for one in captures])
        if keeps and names != captures:
            raise click.UsageError("--keep-index goes without pipes")
        if piped:
            _read_keys_from_terminal()
        _browse(names, captures, options, keeps=keeps)
    return 0


def _read_keys_from_terminal() -> None:
    """Puts the terminal in the place of the standard input, which has been read."""
    try:
        with open("/dev/tty", "rb", buffering=0) as terminal:
            os.dup2(terminal.fileno(), 0)
    except OSError as error:
        raise KwiresniffError(f"browse has no terminal to read keys from: {error.strerror}") from error


def _browse(names: tuple[str, ...], captures: tuple[str, ...], options: ReadOptions, *, keeps: bool) -> None:
    """Browses the files of some names, which stand for ``captures``."""
    forks = Forks()
    model, jobs = model_of(names, options._replace(filter=None))
    called = dict(zip(names, captures, strict=True))
    model.files = [called.get(name, name) for name in model.files]
    index = indexing(jobs, forks, keeps=keeps)  # while textual is imported, which takes as long as the first rows
    try:
        from kwiresniff.browse.app import BrowseApp
    except ImportError as error:
        index.stop()
        raise KwiresniffError(f'browse needs textual ({error}); pip install "kwiresniff[browse]"') from error
    app = BrowseApp(model, jobs, checked_filter, index, forks, expression=options.filter or "", dark=is_dark())
    app.run()


def indexing(jobs: Jobs, forks: Forks, *, keeps: bool = False) -> Background:
    """Starts the process that makes the index."""
    return forks.start(f"{_INDEX}:index_captures", *jobs.arguments, keeps)


def model_of(
    captures: tuple[str, ...], options: ReadOptions, captured: Captured | None = None
) -> tuple[CapturesModel, Jobs]:
    """What the program shows, and what its reading processes do. Raises what is wrong with captures and options.

    ``captured`` tells how far a live capture has come.
    """
    options = with_redact_key(options)
    source = EventSource(captures, options, WHOLE)  # never read: it has the plugins, and the names of topics
    topics, index, places = source.analyzer.topics, ExchangeIndex(), PacketPlaces()

    def whole() -> tuple[object, Analyzer]:
        opened = open_captures(captures, decode_as=options.decode_as)
        again = with_decryption(opened, options.keylog, options.tls_engine)
        secrets = again.tls_secrets
        analyzer = Analyzer(WHOLE, show_secrets=options.show_secrets, ports=options.port, tls_secrets=secrets)
        analyzer.topics.restore(topics.saved())
        return again, analyzer

    reader = ExchangeReader(
        index,
        open_captures(captures, decode_as=options.decode_as),
        places,
        topics,
        whole,  # type: ignore[arg-type]
        show_secrets=options.show_secrets,
    )
    jobs = Jobs(
        f"{_JOBS}:filter_captures",
        f"{_JOBS}:report_captures",
        f"{_JOBS}:save_exchanges",
        f"{_JOBS}:save_packets",
        (captures, options),
    )
    return CapturesModel(
        source.files,
        index,
        places,
        topics,
        reader,
        source.ask_plugins,
        lambda exchange, which, folded: dissection_of(source, exchange, which, folded=folded),
        shows_bytes=source.redactor is None,
        captured=captured,
    ), jobs


def is_dark() -> bool:
    """Whether the terminal is dark, as far as it says (COLORFGBG, ``foreground;background``)."""
    background = os.environ.get("COLORFGBG", "").rpartition(";")[2]
    return background not in ("7", "15")
