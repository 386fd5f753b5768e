"""Events printed as they come, in the form the user asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TextIO

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.base.api_keys import API_VERSIONS, FETCH, PRODUCE
from kwiresniff.base.needs import Needs
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.screen import Screen
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.export.encode import json_text
from kwiresniff.export.output import Output
from kwiresniff.export.writers import WRITERS
from kwiresniff.model import Direction, Dissection, Event, Exchange, Problem

if TYPE_CHECKING:
    from kwiresniff.capture.live import LiveCapture
    from kwiresniff.cli.options import ReadOptions
    from kwiresniff.render.tree_row import Row

#: A summary line tells of other messages what no digest has.
_DIGEST_IS_ENOUGH = frozenset({PRODUCE, FETCH, API_VERSIONS})
#: The needs of each form of output.
_NEEDS = {
    "tree": Needs("records", shown=True),
    "summary": Needs("bodies", digests=_DIGEST_IS_ENOUGH),
    "jsonl": Needs("records", text=json_text),
    "json": Needs("records", text=json_text),
}
FORMS = tuple(_NEEDS)


def needs_of_form(form: str, options: ReadOptions) -> Needs:
    """The needs of a form of output; trees show all of a message with ``-v``."""
    return Needs("records") if form == "tree" and options.verbose else _NEEDS[form]


def screen_for(form: str, options: ReadOptions) -> Screen | None:
    """The screen for forms that people read; None for JSON."""
    if form not in ("tree", "summary"):
        return None
    return Screen(options.color)


class _Printer:
    """A form of output. ``write`` prints an event, ``flush`` has what was printed appear, ``close`` ends the output.

    With ``at_once`` somebody watches: each event appears before the next one is read.
    """

    __slots__ = ("at_once", "close", "flush", "write")

    def __init__(
        self,
        write: Callable[[Event], None],
        flush: Callable[[], None],
        close: Callable[[], None],
        at_once: bool,
    ) -> None:
        self.write = write
        self.flush = flush
        self.close = close
        self.at_once = at_once


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
    draw = tree_of(source, screen.out, screen.width, screen.color) if form == "tree" else _summary_of(source, screen)

    def write(event: Event) -> None:
        if isinstance(event, Exchange):
            screen.write(draw(event))

    stack.callback(screen.flush)
    return _Printer(write, screen.flush, screen.flush, screen.watched or source.live)


def _summary_of(source: EventSource, screen: Screen) -> Callable[[Exchange], bytes]:
    """A function that gives an exchange as a line."""
    from kwiresniff.render.summary import SummaryWriter

    topic_name = source.topic_name
    return SummaryWriter(screen.out, screen.width, screen.color, files=source.files, topic_name=topic_name).text


def tree_of(source: EventSource, out: TextIO, width: int | None, color: bool) -> Callable[[Exchange], bytes]:
    """A function that draws an exchange as a tree for a stream like ``out``, in UTF-8, with what plugins and redaction
    make of it.
    """
    from kwiresniff.render.tree import TreeWriter

    options, topics = source.options, source.analyzer.topics
    tree = TreeWriter(out, width, color, options.verbose, files=source.files, topic_name=topics.name)

    def read(exchange: Exchange, which: Direction) -> Dissection | list[Row] | None:
        rows = None if source.redactor is not None else tree.rows(exchange, which)
        return rows if rows is not None else dissection_of(source, exchange, which, folded=not options.verbose)

    return lambda exchange: tree.text(exchange, read(exchange, "request"), read(exchange, "response"))


def dissection_of(source: EventSource, exchange: Exchange, which: Direction, *, folded: bool) -> Dissection | None:
    """The nodes of a message, with what plugins and redaction make of them; see ``dissect_message``."""
    from kwiresniff.render.decoded_values import show_decoded
    from kwiresniff.session.annotation import dissect_message

    options, topics, redactor = source.options, source.analyzer.topics, source.redactor
    message = exchange.request if which == "request" else exchange.response
    dissection = dissect_message(exchange, which, topics, show_secrets=options.show_secrets, folded=folded)
    if dissection is None or message is None:
        return dissection
    if redactor is not None:
        missing = message.size_bytes - len(message.frame or b"")
        redactor.dissect(dissection, (exchange.api_key, which), missing)
    if source.plugins.decoders and message.body is not None:
        show_decoded(dissection, message.body)
    return dissection
