"""Clients that kept the name their library came with: a rule for ``doctor``.

Brokers' logs, quotas and metrics go by client id. One that is ``rdkafka`` or ``sarama`` does not say whose it is.
Try it::

    kwiresniff doctor --fail-on never --plugin plugins/client_names.py captures/

A rule is a class, registered with ``hooks.doctor_rule(Class)``; for each examination one object is made of it with
what all rules share, ``context``. Derive it from ``kwiresniff.analysis.doctor.Rule``: its ``exchange`` is called with
each exchange of the API keys in ``apis`` (None: of all), ``failure`` with each that has an error or no answer,
``connection`` with connections that have ended, ``findings`` at the end. ``context.tally()`` counts within bounds.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.doctor import Context, Finding, Rule
from kwiresniff.model import Exchange

API_VERSIONS = 18
DEFAULTS = frozenset({"rdkafka", "sarama", "kgo", "kafkajs", "aiokafka", "kafka-python", "confluent-kafka-python"})


class ClientNameRule(Rule):
    """Client ids that are the libraries' own."""

    codes = ("default_client_id",)
    apis = frozenset({API_VERSIONS})

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """The first request of most connections."""
        if exchange.client_id in DEFAULTS and exchange.request is not None:
            address = exchange.connection.client.rpartition(":")[0]
            case = self._cases.case(f"{exchange.client_id} {address}")
            case.add(exchange.request.first_packet, exchange.request.first_ns)

    def findings(self) -> Iterator[Finding]:
        """One for each name and address."""
        for subject, _, case in self._cases:
            yield Finding(
                code="default_client_id",
                severity="info",
                subject=subject,
                title="goes by the name that its library came with",
                remedy="Set client.id to what the application is called.",
                count=case.count,
                evidence=tuple(case.evidence),
                numbers={},
                first_ns=case.first_ns,
                last_ns=case.last_ns,
            )


def register(hooks: Any) -> None:
    """Called once when the plugin is loaded."""
    hooks.doctor_rule(ClientNameRule)
