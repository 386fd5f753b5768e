"""Clients that kept the name their library came with: an observer and a cause for ``doctor``.

Brokers' logs, quotas and metrics go by client id. One that is ``rdkafka`` or ``sarama`` does not say whose it is.
Try it::

    kwiresniff doctor --fail-on never --plugin plugins/client_names.py captures/

An observer is a class, registered with ``hooks.doctor_observer(Class)``; for each examination one object is made of it
with what all observers share, ``context``. Its ``exchange`` is called with each exchange of the API keys in ``apis``
(None: of all), ``failure`` with each that has an error or no answer, ``connection`` with connections that have ended,
``observations`` at the end. A ``CountingObserver`` counts by two names, here the client and nothing else, within
bounds, and makes an observation of each case. A cause, ``hooks.doctor_cause(function)``, says of each observation what
is told of it.
"""

from __future__ import annotations

from typing import Any

from kwiresniff.analysis.doctor import Context, CountingObserver, Explanation, Observation, Observed, cause, told
from kwiresniff.model import Exchange

API_VERSIONS = 18
DEFAULTS = frozenset({"rdkafka", "sarama", "kgo", "kafkajs", "aiokafka", "kafka-python", "confluent-kafka-python"})


class ClientNames(CountingObserver):
    """Clients whose id is their library's own."""

    kinds = ("default_client_id",)
    entities = ("client", "")
    apis = frozenset({API_VERSIONS})

    def exchange(self, exchange: Exchange) -> None:
        """The first request of most connections."""
        if exchange.client_id in DEFAULTS and exchange.request is not None:
            address = exchange.connection.client.rpartition(":")[0]
            case = self.cases.case(f"{exchange.client_id} {address}")
            case.add(exchange.request.first_packet, exchange.request.first_ns)


@cause("default_client_id", explains=("default_client_id",))
def default_client_id(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`default_client_id` (info): a client id that does not say whose it is."""
    remedy = "Set client.id to what the application is called."
    return told(one, "goes by the name that its library came with", remedy, severity="info")


def register(hooks: Any) -> None:
    """Called once when the plugin is loaded."""
    hooks.doctor_observer(ClientNames)
    hooks.doctor_cause(default_client_id)
