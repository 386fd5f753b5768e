"""Events as they come, in the form the user asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TextIO

from kwiresniff.cli.interrupts import for_each
from kwiresniff.cli.messages import Messages
from kwiresniff.cli.reading import Reading
from kwiresniff.model import Event, Exchange, Problem
from kwiresniff.session import Depth

if TYPE_CHECKING:
    from kwiresniff.capture.live import Live

#: What each form of output needs decoded.
DEPTHS: dict[str, Depth] = {"tree": "records", "summary": "bodies", "jsonl": "records", "json": "records"}


def encode_for(form: str) -> Callable[[Any], bytes] | None:
    """What gives the JSON text of a value, for forms that are JSON."""
    if form not in ("jsonl", "json"):
        return None
    from kwiresniff.export import JsonEncoder

    return JsonEncoder().text


def print_events(reading: Reading, form: str, live: Live | None = None) -> bool:
    """Prints everything ``reading`` gives, problems on stderr where the form has no place for them; False when the
    user interrupted it. With ``live`` an interrupt ends the capture without losing what is unfinished, and what is
    wrong with it is told even when nothing passes."""
    messages = Messages(reading, elsewhere=form in ("jsonl", "json"))
    with ExitStack() as stack:
        write, flush, close = _writer(form, reading, stack)

        def use(event: Event) -> None:
            if isinstance(event, Problem):
                messages.problem(event)
            write(event)
            if flush is not None:
                flush()

        def tell() -> None:
            for problem in reading.new_problems():
                use(problem)

        if live is not None:
            live.on_pause = tell
        finished = for_each(reading.events(), use, None if live is None else live.stop)
        close()
    if finished or live is not None:
        messages.end()
    return finished


_Writer = tuple[Callable[[Event], None], Callable[[], None] | None, Callable[[], None]]


def _writer(form: str, reading: Reading, stack: ExitStack) -> _Writer:
    """What writes an event, what makes it appear at once (None when nobody watches), and what ends the output."""
    watched = reading.live or sys.stdout.isatty()
    if form in ("jsonl", "json"):
        from kwiresniff.export import WRITERS, Output

        out = stack.enter_context(Output("-")).stream
        writer = WRITERS[form](out, reading.files)
        return writer.write, (out.flush if watched else None), writer.close
    return _text_writer(form, reading), (sys.stdout.flush if watched else None), sys.stdout.flush


def _text_writer(form: str, reading: Reading) -> Callable[[Event], None]:
    from kwiresniff.render import SummaryWriter, use_color, width_of

    out, color, width = sys.stdout, use_color(sys.stdout, reading.options.color), width_of(sys.stdout)
    if form != "summary":
        return tree_writer(reading, out, width, color)
    summary = SummaryWriter(out, width, color, files=reading.files, topic_name=reading.topic_name)

    def line(event: Event) -> None:
        if isinstance(event, Exchange):
            summary.write(event)

    return line


def tree_writer(reading: Reading, out: TextIO, width: int | None, color: bool) -> Callable[[Event], None]:
    """What writes an exchange as an annotated tree, with what plugins and redaction make of it."""
    from kwiresniff.cli.decoded import decode_walk
    from kwiresniff.render import TreeWriter
    from kwiresniff.session import annotate

    options, topics = reading.options, reading.analyzer.topics
    plugins, redactor = reading.plugins, reading.redactor
    tree = TreeWriter(out, width, color, options.verbose, files=reading.files)

    def draw(event: Event) -> None:
        if isinstance(event, Exchange):
            request = annotate(event, "request", topics, show_secrets=options.show_secrets)
            response = annotate(event, "response", topics, show_secrets=options.show_secrets)
            for walk in (request, response):
                if walk is not None and redactor is not None:
                    redactor.walk(walk)
                elif walk is not None and plugins.decoders:
                    decode_walk(walk, plugins, topics.name)
            tree.write(event, request, response)

    return draw
