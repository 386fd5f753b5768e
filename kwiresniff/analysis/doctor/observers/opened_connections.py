"""How often clients open connections, and for how little."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_text
from kwiresniff.analysis.doctor.observation import Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.analysis.memory_budget import ENTRY_BYTES, text_bytes
from kwiresniff.base.api_keys import INIT_PRODUCER_ID, JOIN_GROUP, PRODUCE
from kwiresniff.model import Connection, Exchange

#: Brokers of each client that are remembered.
MAX_BROKERS = 100
#: Connections of a client below which nothing is said of how often it opens them.
ENOUGH_CONNECTIONS = 20
#: Connections that a client opens in a minute before it is churn.
CONNECTIONS_PER_MINUTE: Final = 30.0
_WORKS: Final = frozenset({PRODUCE, INIT_PRODUCER_ID, JOIN_GROUP})


@dataclass(slots=True, eq=False)
class _Client:
    """The connections of a client: how many it opened, to whom, and how many in place of one that had ended."""

    case: Case
    brokers: dict[str, int] = field(default_factory=dict)
    ended: dict[str, int] = field(default_factory=dict)
    again: int = 0
    lasted_ns: int = 0
    requests: int = 0
    works: dict[int, int] = field(default_factory=dict)


class OpenedConnections(Observer):
    """``connections_opened``: a client opens many connections.

    Numbers: ``connections`` by broker, ``per_minute`` of ``seen_ns``, how many came ``again`` in place of an ended one,
    ``mean_lifetime_ns``, and what was done on them: ``requests``, ``produces``, ``new_producers``, ``joins``.
    """

    kinds: ClassVar[tuple[str, ...]] = ("connections_opened",)
    apis: ClassVar[frozenset[int] | None] = _WORKS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Client] = Subjects(context.budget, lambda: _Client(context.case()), 8)

    def exchange(self, exchange: Exchange) -> None:
        """What a client does on its connections, counted from its second connection on: most have few."""
        known = self._clients.get(self.context.client_of(exchange))
        if known is not None:
            known.works[exchange.api_key] = known.works.get(exchange.api_key, 0) + 1

    def connection(self, connection: Connection) -> None:
        """One that has ended."""
        if not connection.handshake_seen:
            return
        client, broker = client_text(connection.client_id, connection.client), connection.broker
        known = self._clients.of(client)
        if known is None:
            return
        end_ns = connection.closed_ns or connection.last_ns
        known.case.add(connection.first_packet, connection.first_ns, until_ns=end_ns)
        known.lasted_ns += max(end_ns - connection.first_ns, 0)
        known.requests += sum(connection.exchanges.values())
        if broker not in known.brokers:
            if len(known.brokers) >= MAX_BROKERS or not self.context.budget.admit(2 * ENTRY_BYTES + text_bytes(broker)):
                return
            known.brokers[broker], known.ended[broker] = 0, end_ns
        known.brokers[broker] += 1
        known.again += connection.first_ns >= known.ended[broker]
        known.ended[broker] = min(known.ended[broker], end_ns)

    def observations(self) -> Iterator[Observation]:
        for client, known in self._clients.items():
            case = known.case
            if case.count < ENOUGH_CONNECTIONS:
                continue
            seen_ns = case.last_ns - case.first_ns
            yield observation_of(
                "connections_opened",
                f"{client} opened {counted(case.count, 'connection')} in {duration(seen_ns)} to "
                f"{listed(list(known.brokers))}, {known.again:,} of them after one to the same broker had ended; each "
                f"lasted {duration(known.lasted_ns // case.count)} and carried "
                f"{known.requests / case.count:.1f} requests on average",
                case,
                {f"client:{client}", *(f"broker:{one}" for one in known.brokers)},
                {
                    "client": client,
                    "per_minute": round(case.count / case.seconds * 60, 1),
                    "seen_ns": seen_ns,
                    "connections": case.count,
                    "again": known.again,
                    "brokers": dict(known.brokers),
                    "mean_lifetime_ns": known.lasted_ns // case.count,
                    "requests": known.requests,
                    "produces": known.works.get(PRODUCE, 0),
                    "new_producers": known.works.get(INIT_PRODUCER_ID, 0),
                    "joins": known.works.get(JOIN_GROUP, 0),
                },
            )
