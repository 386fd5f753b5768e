"""``sniff -o doctor``: findings printed as they come, and a line when they are over."""

from __future__ import annotations

import sys
import time

from kwiresniff.analysis.doctor import SEVERITIES, Doctors
from kwiresniff.analysis.doctor.live import LiveExamination
from kwiresniff.analysis.named import finding_with_names
from kwiresniff.analysis.sinks import CallingSink
from kwiresniff.capture.live import LiveCapture
from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.plugin_examiners import examiners_of
from kwiresniff.cli.stderr_messages import Messages
from kwiresniff.model import Event, Problem
from kwiresniff.render.findings import FindingWriter
from kwiresniff.render.terminal import stdout_for

#: Findings are looked at so often, in seconds.
REVIEW_S = 2.0
#: An unanswered SYN counts as a failed attempt after so long without another.
SILENT_NS = 5_000_000_000


class _Review:
    """Looks at the findings from time to time and prints what has changed."""

    def __init__(self, source: EventSource) -> None:
        self._source = source
        self._writer = FindingWriter(*stdout_for(source.options.color), source.files)
        self._looked = time.monotonic()
        self._written = False
        rules = examiners_of(source.plugins)
        self.examination = LiveExamination(lambda: Doctors(source.topic_name, rules, source.clusters))
        self.counts = dict.fromkeys(SEVERITIES, 0)

    def print_changes(self, *, now: bool = False) -> None:
        """Print what has come and what is over, if it is time to look."""
        if not now and time.monotonic() - self._looked < REVIEW_S:
            return
        self._looked = time.monotonic()
        self._source.analyzer.end_attempts(SILENT_NS)
        self._source.release()
        came, over = self.examination.review(time.time_ns())
        for finding in came:
            if self._written:
                sys.stdout.write("\n")
            self._written = True
            self._writer.write([finding_with_names(finding, self._source.names)])
            self.counts[finding.severity] += 1
        for finding in over:
            self._written = True
            self._writer.write_over(finding)
        if came or over:
            sys.stdout.flush()


def examine(live: LiveCapture, source: EventSource) -> bool:
    """Examines the traffic until it ends; False when the user interrupted it."""
    messages = Messages(source)
    review = _Review(source)

    def use(event: Event) -> None:
        review.examination.add(event)
        if isinstance(event, Problem):
            messages.problem(event)
        review.print_changes()

    live.on_pause = review.print_changes
    finished = source.read(CallingSink(use, use), live.stop)
    review.print_changes(now=True)
    messages.end()
    if not source.options.quiet:
        listed = ", ".join(f"{count} {name}" for name, count in review.counts.items() if count)
        print(f"kwiresniff: findings: {listed or 'none'}", file=sys.stderr)
    return finished
