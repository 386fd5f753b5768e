"""The index of ``browse``, made in a process of its own, and how all such processes read captures.

What shows first waits for this module: it imports no analysis.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

from kwiresniff.analysis.filter import Filter, compile_filter
from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.needs import Needs
from kwiresniff.capture import CaptureSet
from kwiresniff.capture.spooled import is_spool
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.kept_index import KeptIndex
from kwiresniff.cli.options import ReadOptions
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.index import Indexed, IndexSink
from kwiresniff.index.background import Send
from kwiresniff.render.problems import problem_line

#: Seconds between two messages: what is shown moves on so often.
SEND_S: Final = 0.25
#: Seconds between two states of what a live capture shows beside its list.
REPORT_S: Final = 1.0


def source_of(
    captures: Sequence[str], options: ReadOptions, needs: Needs, wait: Callable[[], None] | None = None
) -> EventSource:
    """The captures as every one of these processes reads them; with ``wait``, those that grow are followed."""
    return EventSource(captures, options._replace(no_progress=True), needs, all_views=True, wait=wait)


def checked_filter(expression: str) -> Filter:
    """A filter that can be understood, whatever the captures call their addresses; raises FilterError."""
    return compile_filter(expression, names=AddressNames())


class Clock:
    """Tells when it is time to send, ``seconds`` after it was."""

    def __init__(self, seconds: float = SEND_S) -> None:
        self._seconds = seconds
        self._next = time.monotonic()

    def is_due(self) -> bool:
        """Whether it is time, and will be until the clock rests."""
        return time.monotonic() >= self._next

    def is_time(self) -> bool:
        """The same; then it is not for a while."""
        if not self.is_due():
            return False
        self.rest(self._seconds)
        return True

    def rest(self, seconds: float) -> None:
        """It is not time before so long."""
        self._next = time.monotonic() + max(seconds, self._seconds)


def index_captures(send: Send, captures: Sequence[str], options: ReadOptions, keeps: bool = False) -> None:
    """Reads the captures once, or their kept index, and sends it part by part (``Indexed``). With ``keeps`` it is
    written beside them.
    """
    in_flight, asked = (0, 0), Clock(REPORT_S)

    def wait() -> None:
        source.analyzer.look_for_secrets()
        on_buffer()

    source = source_of(captures, options, IndexSink.NEEDS, wait)
    sink, messages = IndexSink(source.topic_name), Messages(source)
    clock, sent_places, learned = Clock(), 0, 0
    files, topics = source.captures, source.analyzer.topics

    def send_part(*, done: bool = False) -> None:
        nonlocal sent_places, learned
        names = topics.saved() if done or topics.changes != learned else None
        learned = topics.changes
        places = files.places.since(sent_places) if isinstance(files, CaptureSet) else []
        sent_places += len(places)
        problems: list[str] = []
        for one in sink.take_problems():
            if one.code == "not_kafka":
                messages.problem(one)  # which keeps it for the end
            else:
                problems.append(problem_line(one))
        if done:
            problems += messages.last_lines()
        fraction = 1.0 if done else files.position() / (files.total_bytes or 1)
        message = Indexed(sink.take(), places, names, fraction, tuple(problems), source.problems, done, in_flight)
        kept.add(message)
        send(message._replace(problems=(*kept.told, *problems)) if done else message)

    def on_buffer() -> None:
        nonlocal in_flight
        before = in_flight
        if is_live and asked.is_time():
            in_flight = source.analyzer.in_flight()
        if (sink.waiting or in_flight != before) and clock.is_time():
            send_part()

    is_live = is_spool(captures[0])
    kept = KeptIndex(source, keeps=keeps)
    if not is_live and kept.send(send):
        return
    source.on_buffer = on_buffer
    if not source.read(sink) or source.exit_code():
        kept.give_up("the captures could not be read to their end")
    send_part(done=True)
