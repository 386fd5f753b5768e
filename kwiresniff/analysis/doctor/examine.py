"""The examination: every rule sees every event, then says what it found."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.errors import Errors
from kwiresniff.analysis.doctor.traffic import Groups, Latency, Network, Waste
from kwiresniff.answers.findings import Finding
from kwiresniff.model import Connection, Event, Exchange, Problem, TopicNames

#: The worst first.
SEVERITIES: Final = ("error", "warning", "info")


class Doctor:
    """Takes in events with decoded bodies. Memory is bounded by the rules, see ``tally``."""

    def __init__(self, topic_name: TopicNames | None = None) -> None:
        self._network = Network()
        self._rules = (Errors(topic_name), Latency(), Waste(topic_name), Groups(), self._network)

    def add(self, event: Event) -> None:
        """An exchange, an ended connection or a problem."""
        if isinstance(event, Exchange):
            for rule in self._rules:
                rule.exchange(event)
        elif isinstance(event, Connection):
            self._network.connection(event)
        elif isinstance(event, Problem):
            self._network.problem(event)

    def findings(self) -> list[Finding]:
        """The worst first, then the most frequent."""
        found = [finding for rule in self._rules for finding in rule.findings()]
        return sorted(found, key=lambda one: (SEVERITIES.index(one.severity), -one.count, one.code, one.subject))
