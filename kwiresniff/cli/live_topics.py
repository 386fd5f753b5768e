"""``sniff -o topics``: topics as they are now, refreshed in place on a terminal, in full when it ends."""

from __future__ import annotations

import os
import sys
import time
from collections import deque

from kwiresniff.analysis.named import topic_with_names
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.analysis.topic_traffic import TopicTraffic
from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.keyboard import Keyboard
from kwiresniff.cli.panels import REFRESH_SECONDS, SAMPLES
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.model import Event, Problem
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.live_screen import filled
from kwiresniff.render.one_line import aligned
from kwiresniff.render.screen import Screen
from kwiresniff.render.terminal import glyphs_for, stdout_for, use_color
from kwiresniff.render.theme import Paint, Span
from kwiresniff.render.topic_blocks import TopicWriter, topic_columns
from kwiresniff.results.topics import Topic

#: Working out what to show takes no more than this part of the time.
SHARE = 0.1
#: Problems kept to be printed when the screen is gone.
LAST_PROBLEMS = 100

#: Records in and out by topic, at a time.
_Sample = tuple[float, dict[str, tuple[int, int]]]


class TopicView:
    """What is known of the topics, and the screen made of it."""

    def __init__(self, live: LiveCapture, source: EventSource) -> None:
        out = sys.stdout
        self.traffic = TopicTraffic(source.topic_name)
        self._live = live
        self._glyphs = glyphs_for(out)
        self._paint = Paint(use_color(out, source.options.color), self._glyphs)
        self._samples: deque[_Sample] = deque(maxlen=SAMPLES + 1)
        self._first = 0
        self.paused = False

    def press(self, key: str, height: int) -> None:
        """A key: arrows scroll, p pauses, r forgets nothing but begins rates anew, q ends."""
        if key == "q":
            self._live.stop()
        elif key in ("p", " "):
            self.paused = not self.paused
        elif key == "r":
            self._samples.clear()
        steps = {"up": -1, "down": 1, "page up": -height, "page down": height}
        self._first = max(self._first + steps.get(key, 0), 0)

    def screen(self, now: float, width: int, height: int) -> list[str]:
        """Its lines, the busiest topic first."""
        topics = self.traffic.topics()
        rates = self._rates(now, topics)
        room = max(height - 4, 1)
        self._first = min(self._first, max(len(topics) - room, 0))
        rows = [topic_columns(topic, *rates[topic.name]) for topic in topics[self._first : self._first + room]]
        paused: list[Span] = [("", "  "), ("warn", " paused ")] if self.paused else []
        below = f", from row {self._first + 1} on" if self._first else ""
        head: list[Span] = [
            ("title", f"kwiresniff {escape(', '.join(self._live.files))}"),
            ("dim", f"  {format_units.count(len(topics), 'topic')}{below}"),
            ("warn" if self._live.dropped else "dim", f"  {self._live.dropped:,} packets dropped"),
            *paused,
        ]
        prompt: list[Span] = [("dim", "arrows scroll  p pause  r rates anew  q quit")]
        table = aligned(rows, width, self._glyphs.ellipsis)
        frame = filled([head, [], *table], prompt, width, height, self._glyphs)
        return [self._paint.spans(line) for line in frame]

    def _rates(self, now: float, topics: list[Topic]) -> dict[str, tuple[float | None, float | None]]:
        """Records a second in and out over the last refreshes."""
        counts = {topic.name: (topic.produced.records, topic.consumed.records) for topic in topics}
        self._samples.append((now, counts))
        since, before = self._samples[0]
        seconds = now - since
        if seconds < REFRESH_SECONDS:
            return dict.fromkeys(counts, (None, None))
        return {
            name: ((written - first[0]) / seconds, (read - first[1]) / seconds)
            for name, (written, read) in counts.items()
            for first in [before.get(name, (0, 0))]
        }


def watch_topics(live: LiveCapture, source: EventSource, *, watched: bool) -> bool:
    """Until the capture ends; whether nobody interrupted it. What was seen is printed in full at the end."""
    problems: deque[Problem] = deque(maxlen=LAST_PROBLEMS)
    view = TopicView(live, source)

    def keep(event: Event) -> None:
        if isinstance(event, Problem):
            problems.append(event)

    sink = CallingSink(view.traffic.exchange, keep)
    if watched:
        with Keyboard() as keyboard, Screen(sys.stdout) as screen:
            live.on_pause = _Refresh(view, keyboard, screen).pause
            finished = source.read(sink, live.stop)
    else:
        finished = source.read(sink, live.stop)
    messages = Messages(source)
    for problem in problems:
        messages.problem(problem)
    found = [topic_with_names(topic, source.names) for topic in view.traffic.topics()]
    TopicWriter(*stdout_for(source.options.color)).topics(found)
    messages.end()
    if view.traffic.left_out and not source.options.quiet:
        print(f"kwiresniff: {view.traffic.left_out} names or rows found no room and are not listed", file=sys.stderr)
    return finished


class _Refresh:
    """Reads the keys and draws when it is time, more seldom where there are so many topics that drawing takes long."""

    def __init__(self, view: TopicView, keyboard: Keyboard, screen: Screen) -> None:
        self._view, self._keyboard, self._screen = view, keyboard, screen
        self._next = 0.0
        self.pause()

    def pause(self) -> None:
        width, height = os.get_terminal_size(sys.stdout.fileno())
        keys = self._keyboard.keys()
        for key in keys:
            self._view.press(key, height)
        now = time.monotonic()
        if now >= self._next if not self._view.paused else bool(keys):
            self._screen.show(self._view.screen(now, width, height), width, height)
            self._next = now + max(REFRESH_SECONDS, (time.monotonic() - now) / SHARE)
