"""How often clients open connections, and what they do on them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from kwiresniff.analysis.doctor.cause import WASTE, Explanation, cause, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import Case, client_of, client_text
from kwiresniff.analysis.doctor.observation import Observation, Observed, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.base.api_keys import INIT_PRODUCER_ID, JOIN_GROUP, PRODUCE
from kwiresniff.model import Connection, Exchange

#: Brokers remembered of each client.
MAX_BROKERS = 100
#: Fewer connections of a client are not judged.
ENOUGH_CONNECTIONS = 20
#: More connections of a client in a minute are churn.
CONNECTIONS_PER_MINUTE: Final = 30.0
_WORKS: Final = frozenset({PRODUCE, INIT_PRODUCER_ID, JOIN_GROUP})
#: A connection that is there for a smaller part of its client's time does not last.
SHORT_PART: Final = 4


@dataclass(slots=True, eq=False)
class _Client:
    """The connections of a client, by broker, and how many replaced one that had ended."""

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

    kinds = ("connections_opened",)
    apis = _WORKS

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._clients: Subjects[str, _Client] = context.subjects(lambda: _Client(context.case()), 8)

    def exchange(self, exchange: Exchange) -> None:
        """Counts requests from the second connection of a client on."""
        known = self._clients.get(client_of(exchange))
        if known is not None:
            known.works[exchange.api_key] = known.works.get(exchange.api_key, 0) + 1

    def connection(self, connection: Connection) -> None:
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
            if not self.context.has_room(known.brokers, MAX_BROKERS, broker, entries=2):
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
            numbers = {
                "client": client,
                "per_minute": round(case.count / case.seconds * 60, 1),
                "seen_ns": case.last_ns - case.first_ns,
                "connections": case.count,
                "again": known.again,
                "brokers": dict(known.brokers),
                "mean_lifetime_ns": known.lasted_ns // case.count,
                "requests": known.requests,
                "produces": known.works.get(PRODUCE, 0),
                "new_producers": known.works.get(INIT_PRODUCER_ID, 0),
                "joins": known.works.get(JOIN_GROUP, 0),
            }
            about = [f"client:{client}", *(f"broker:{one}" for one in known.brokers)]
            yield observation_of("connections_opened", case, about, numbers)


@cause("connection_churn", explains=("connections_opened", "metadata_requests"))
def connection_churn(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`connection_churn` (warning; info for a broker that looks for its controller): a client opens more than 30
    connections a minute, by the time in which it was seen, in place of others that have ended, and none lasts. Seen
    must be the handshakes and the ends: a client that starts opens many at once and keeps them. Its requests for
    metadata are symptoms.
    """
    numbers = one.numbers
    is_short = numbers["mean_lifetime_ns"] * SHORT_PART < numbers["seen_ns"]
    if not is_short or numbers["again"] < ENOUGH_CONNECTIONS or numbers["per_minute"] <= CONNECTIONS_PER_MINUTE:
        return None
    client, brokers = numbers["client"], numbers["brokers"]
    per_broker = listed([f"{broker} {count}" for broker, count in brokers.items()])
    asked = observed.about([f"client:{client}"], "metadata_requests")
    each = _made_for(numbers)
    return told(
        one,
        f"opens {numbers['per_minute']:.0f} connections a minute ({numbers['connections']:,} in "
        f"{duration(numbers['seen_ns'])}; {per_broker}), each for "
        f"{numbers['requests'] / numbers['connections']:.1f} requests{each}",
        "Keep one client for the life of the process: each new one costs a handshake with every broker "
        "that it speaks to, ApiVersions, Metadata, and for a producer an id.",
        subject=client,
        explained=(one, *asked),
        numbers={
            "client": client,
            "broker": max(brokers, key=lambda name: brokers[name]),
            "per_minute": numbers["per_minute"],
            "brokers": brokers,
            "new_producers": numbers["new_producers"],
        },
        severity="info" if client.partition(" ")[0].isdigit() else "warning",
        rank=WASTE,
    )


def _made_for(numbers: dict[str, int]) -> str:
    """For what a client is created again and again, by the requests on its connections."""
    produces, producers, joins = numbers["produces"], numbers["new_producers"], numbers["joins"]
    if producers * 2 > produces > 0:
        often = "message" if producers >= produces else "few messages"
        return f": a new producer for every {often} ({producers} of them)"
    if produces and produces <= numbers["connections"]:
        return f": a new producer for every message or so ({counted(produces, 'Produce request')})"
    return f": a new consumer each time ({counted(joins, 'join')})" if joins * 4 > numbers["connections"] else ""
