"""Events printed as they come, in the form the user asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, TextIO

from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.base.needs import Needs
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.screen import Screen
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.export.encode import json_text
from kwiresniff.export.output import Output
from kwiresniff.export.writers import WRITERS, Writer
from kwiresniff.model import Direction, Dissection, Event, Exchange, Problem

if TYPE_CHECKING:
    from kwiresniff.capture.live import LiveCapture
    from kwiresniff.cli.options import ReadOptions
    from kwiresniff.render.tree_row import Row

#: The needs of each form of output.
_NEEDS = {
    "tree": Needs("records", shown=True),
    "summary": Needs("bodies", digests=True),
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


class _ScreenWriter:
    """Writes exchanges as lines or trees to a screen, and no other events."""

    def __init__(self, screen: Screen, draw: Callable[[Exchange], bytes]) -> None:
        self._screen = screen
        self._draw = draw

    def write(self, event: Event) -> None:
        if isinstance(event, Exchange):
            self._screen.write(self._draw(event))

    def close(self) -> None:
        self._screen.flush()


def print_events(source: EventSource, form: str, screen: Screen | None, live: LiveCapture | None = None) -> bool:
    """Prints everything ``source`` gives, problems on stderr where the form has no place for them; False when the
    user interrupted it. With ``live`` an interrupt ends the capture without losing what is unfinished, and what is
    wrong with it is reported even when nothing passes."""
    messages = Messages(source, elsewhere=screen is None)
    with ExitStack() as stack:
        writer: Writer
        if screen is None:
            out = stack.enter_context(Output("-")).stream
            writer, flush = WRITERS[form](out, source.files), out.flush
            at_once = source.live or sys.stdout.isatty()
        else:
            stack.callback(screen.flush)
            writer, flush = _ScreenWriter(screen, _drawing(form, source, screen)), screen.flush
            at_once = source.live or screen.watched

        def use(event: Event) -> None:
            if isinstance(event, Problem):
                if screen is not None:  # what is on stderr stands after what came before it
                    flush()
                messages.problem(event)
            writer.write(event)
            if at_once:
                flush()

        if live is not None:
            live.on_pause = source.report_problems
        finished = source.read(CallingSink(use if at_once else writer.write, use), None if live is None else live.stop)
        writer.close()
    if finished or live is not None:
        messages.end()
    return finished


def _drawing(form: str, source: EventSource, screen: Screen) -> Callable[[Exchange], bytes]:
    """A function that draws an exchange in a form for people."""
    out, width, color = screen.out, screen.width, screen.color
    if form == "tree":
        return tree_of(source, out, width, color)
    from kwiresniff.render.summary import SummaryWriter

    return SummaryWriter(out, width, color, files=source.files, topic_name=source.topic_name).text


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
