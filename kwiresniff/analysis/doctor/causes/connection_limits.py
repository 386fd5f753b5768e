"""Limits on the connections of a host."""

from __future__ import annotations

from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import times
from kwiresniff.results.findings import scope_of


class ConnectionLimit(Cause):
    """`connections_refused` (error): a broker accepts connections of a host and closes them without a word, while it
    answers others: `max.connections.per.ip` and its like when it does so at once, with how many were open, a quota on
    their rate when after a while.

    Seen must be three such connections, and answers of that broker to others. A proxy without a broker behind it looks
    the same where none of the host's connections is open.
    """

    codes = ("connections_refused",)
    explains = ("closed_without_answer",)

    def explain(self, one: Observation, observed: Observed) -> Explanation | None:
        host, broker, clients = one.name("host"), one.name("broker"), one.named("client")
        at_once, open_ = one.numbers["at_once"], one.numbers["open"]
        if at_once and not open_:
            title = f"{times(one.count)} at once: a proxy without a broker behind it, or a limit on connections"
            remedy = _PROXY
        elif at_once:
            title = f"{times(one.count)} at once, while {open_} others of it were open: a limit on connections"
            remedy = _NUMBER
        else:
            title = f"{times(one.count)} after a while: a limit on how many it may open a second"
            remedy = _RATE
        return self.told(
            one,
            f"{self.context.cluster.broker_text(broker)} accepts connections of {host} and closes them without a "
            f"word, {title}",
            remedy,
            subject=f"{host} → {broker}",
            supports=(one.text,),
            numbers={"broker": broker, "host": host, "open": open_ if at_once else None, "clients": clients},
            explains=dict.fromkeys(
                ("closed_by_broker", "unanswered", "metadata_storm", "connection_churn"),
                scope_of("client", clients) | scope_of("broker", [broker]),
            ),
        )


_NUMBER: Final = (
    "See max.connections.per.ip, max.connections.per.ip.overrides and max.connections of the listener (the broker's "
    "log says 'Rejected connection'), and why that host has so many: clients that are created again and again and "
    "never closed, or many behind one address (NAT, a proxy)."
)
_PROXY: Final = (
    "If a load balancer or proxy listens there, see whether the broker behind it is up and reachable from it; else see "
    "max.connections and max.connections.per.ip of the broker."
)
_RATE: Final = (
    "See the quota connection_creation_rate of the address (kafka-configs --entity-type ips --describe) and "
    "max.connection.creation.rate of the listener, and why that host opens so many: a client for each message, or a "
    "restart of everything at once."
)
