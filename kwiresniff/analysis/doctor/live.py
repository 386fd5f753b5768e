"""The examination of endless traffic: findings come, and end when they were not seen for a while.

It starts again from time to time, so that old traffic does not count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kwiresniff.analysis.doctor.doctors import Doctors
from kwiresniff.model import Event
from kwiresniff.results.findings import Finding

#: A finding that was not seen for so long has ended.
OVER_NS: Final = 60_000_000_000
#: The time after which an examination starts again.
RENEW_NS: Final = 600_000_000_000
#: Findings that are going on at once; more are not reported.
MAX_GOING_ON: Final = 2_000


class LiveExamination:
    """Takes in events; ``review`` returns the findings that came or ended since it was last called.

    A finding is the same as long as its code, subject and cluster are; what came when there was one cluster alone has
    none yet.
    """

    def __init__(self, make: Callable[[], Doctors]) -> None:
        self._make = make
        self._doctor = make()
        self._began_ns = 0
        self._going_on: dict[tuple[str, str, str | None], Finding] = {}
        self._fresh = False

    def add(self, event: Event) -> None:
        """Takes in an exchange, an ended connection, an attempt at one, or a problem."""
        self._doctor.add(event)
        self._fresh = True

    def review(self, now_ns: int) -> tuple[list[Finding], list[Finding]]:
        """The findings that came, the worst first, and those that ended, at a time by the clock of the packets."""
        came: list[Finding] = []
        if self._fresh:
            self._fresh = False
            for finding in self._doctor.findings():
                key = finding.code, finding.subject, finding.cluster
                if finding.last_ns and now_ns - finding.last_ns > OVER_NS:
                    continue
                if key not in self._going_on and self._going_on.pop((*key[:2], None), None) is None:
                    if len(self._going_on) >= MAX_GOING_ON:
                        continue
                    came.append(finding)
                self._going_on[key] = finding
        over = [one for one in self._going_on.values() if now_ns - (one.last_ns or self._began_ns) > OVER_NS]
        for finding in over:
            del self._going_on[finding.code, finding.subject, finding.cluster]
        if not self._began_ns:
            self._began_ns = now_ns
        elif now_ns - self._began_ns > RENEW_NS:
            self._doctor, self._began_ns = self._make(), now_ns
        return came, over

    def going_on(self) -> list[Finding]:
        """The findings that have not ended."""
        return list(self._going_on.values())
