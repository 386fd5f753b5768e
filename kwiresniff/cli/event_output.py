"""Events printed as they come, in the form the user asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.base.depths import Depth
from kwiresniff.cli.decoded import decode_dissection
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.line_sink import LineSink
from kwiresniff.cli.screen import Screen
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.export import WRITERS, Output, json_text
from kwiresniff.model import Direction, Dissection, Event, Exchange, Problem
from kwiresniff.render import SummaryWriter, TreeWriter
from kwiresniff.session import dissect_message

if TYPE_CHECKING:
    from kwiresniff.capture.live import LiveCapture
    from kwiresniff.cli.options import ReadOptions
    from kwiresniff.cli.screen import Screen
    from kwiresniff.render.quick_lines import QuickLines
    from kwiresniff.render.tree_row import Row

#: What each form of output needs decoded.
DEPTH_OF_FORM: dict[str, Depth] = {"tree": "records", "summary": "bodies", "jsonl": "records", "json": "records"}


def encode_for(form: str) -> Callable[[Any], bytes] | None:
    """The function that gives the JSON text of a value, for forms that are JSON; else None."""
    if form not in ("jsonl", "json"):
        return None
    return json_text


def screen_for(form: str, options: ReadOptions) -> Screen | None:
    """The screen for forms that people read; None for JSON."""
    if form not in ("tree", "summary"):
        return None
    return Screen(options.color)


class _Printer:
    """A form of output. ``write`` prints an event, ``flush`` has what was printed appear, ``close`` ends the output.

    With ``at_once`` somebody watches: each event appears before the next one is read. ``lines`` writes most exchanges,
    for forms that have such a writer; ``write`` gets the others.
    """

    __slots__ = ("at_once", "close", "flush", "lines", "write")

    def __init__(
        self,
        write: Callable[[Event], None],
        flush: Callable[[], None],
        close: Callable[[], None],
        at_once: bool,
        lines: QuickLines | None = None,
    ) -> None:
        self.write = write
        self.flush = flush
        self.close = close
        self.at_once = at_once
        self.lines = lines


def print_events(source: EventSource, form: str, screen: Screen | None, live: LiveCapture | None = None) -> bool:
    """Prints everything ``source`` gives, problems on stderr where the form has no place for them; False when the
    user interrupted it. With ``live`` an interrupt ends the capture without losing what is unfinished, and what is
    wrong with it is reported even when nothing passes."""
    messages = Messages(source, elsewhere=screen is None)
    with ExitStack() as stack:
        printer = _json_printer(form, source, stack) if screen is None else _printer_of(form, source, screen, stack)

        def use(event: Event) -> None:
            if isinstance(event, Problem):
                if screen is not None:  # what is on stderr stands after what came before it
                    printer.flush()
                messages.problem(event)
            printer.write(event)
            if printer.at_once:
                printer.flush()

        sink = CallingSink(use if printer.at_once else printer.write, use)
        if screen is not None and printer.lines is not None:
            lines = sink = LineSink(printer.lines, screen.write, printer.write, use)
            stack.callback(lines.flush)
        if live is not None:
            live.on_pause = source.report_problems
        finished = source.read(sink, None if live is None else live.stop)
        printer.close()
    if finished or live is not None:
        messages.end()
    return finished


def _json_printer(form: str, source: EventSource, stack: ExitStack) -> _Printer:
    """Prints all events as JSON. What it opens is closed with ``stack``."""
    watched = source.live or sys.stdout.isatty()
    out = stack.enter_context(Output("-")).stream
    writer = WRITERS[form](out, source.files)
    return _Printer(writer.write, out.flush, writer.close, watched)


def _printer_of(form: str, source: EventSource, screen: Screen, stack: ExitStack) -> _Printer:
    """Prints exchanges as lines or as trees, and no other events."""
    draw, quick = (_trees if form == "tree" else _summaries)(source, screen)

    def write(event: Event) -> None:
        if isinstance(event, Exchange):
            screen.write(draw(event))

    stack.callback(screen.flush)
    at_once = screen.watched or source.live
    return _Printer(write, screen.flush, screen.flush, at_once, None if at_once else quick)


_Drawing = tuple[Callable[[Exchange], bytes], "QuickLines | None"]


def _summaries(source: EventSource, screen: Screen) -> _Drawing:
    """What gives an exchange as a line, and what writes most exchanges."""
    topic_name = source.topic_name
    summary = SummaryWriter(screen.out, screen.width, screen.color, files=source.files, topic_name=topic_name)
    return summary.text, summary.quick


def _trees(source: EventSource, screen: Screen) -> _Drawing:
    """What draws an exchange as a tree."""
    return tree_of(source, screen.out, screen.width, screen.color), None


def tree_of(source: EventSource, out: TextIO, width: int | None, color: bool) -> Callable[[Exchange], bytes]:
    """A function that draws an exchange as a tree for a stream like ``out``, in UTF-8, with what plugins and redaction
    make of it.
    """
    options, topics = source.options, source.analyzer.topics
    plugins, redactor = source.plugins, source.redactor
    tree = TreeWriter(out, width, color, options.verbose, files=source.files, topic_name=topics.name)
    changes_nodes = redactor is not None or bool(plugins.decoders)

    def read(exchange: Exchange, which: Direction) -> Dissection | list[Row] | None:
        rows = None if changes_nodes else tree.rows(exchange, which)
        if rows is not None:
            return rows
        dissection = dissect_message(
            exchange, which, topics, show_secrets=options.show_secrets, folded=not options.verbose
        )
        if dissection is not None and redactor is not None:
            message = exchange.request if which == "request" else exchange.response
            assert message is not None
            missing = message.size_bytes - len(message.frame or b"")
            redactor.dissect(dissection, (exchange.api_key, which), missing)
        elif dissection is not None and plugins.decoders:
            decode_dissection(dissection, plugins, topics.name)
        return dissection

    return lambda exchange: tree.text(exchange, read(exchange, "request"), read(exchange, "response"))
