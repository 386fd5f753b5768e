"""Advertised addresses that clients cannot reach, and addresses where nobody answers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import INCIDENT, SYMPTOM, Cause, Explanation, cause, symptoms, told
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.wording import duration, listed, span, times

#: A client that leaves a bootstrap address so often, or is silent for so long afterwards, is stuck.
OFTEN: Final = 3
SILENT_NS: Final = 10_000_000_000
#: Shorter silences are not mentioned.
LEAST_SILENT_NS: Final = 1_000_000_000
#: A restart takes less.
AWAY_NS: Final = 30_000_000_000
#: The last four digits of the ports that brokers listen on by convention: 9092 to 9099, 19092, 29092.
USUAL_PORTS: Final = range(9092, 9100)
_OLD_ADDRESS: Final = (
    "Take the address out of bootstrap.servers, or out of the DNS name in there (see: dig NAME): clients that come to "
    "it first wait until they give up (socket.connection.setup.timeout.ms), at each start. Or see why that broker is "
    "down."
)
_FAMILIES: Final = (
    "The brokers' names have addresses of IPv4 and IPv6 (A and AAAA records), and those of one lead nowhere from "
    "there: mend the route, or take these out of DNS. Clients try them in turn, and wait for each "
    "(socket.connection.setup.timeout.ms; librdkafka: broker.address.family=v4)."
)
#: Fewer attempts at an unknown server may be a former bootstrap address.
FEW_ATTEMPTS: Final = 3


class WrongListener(Cause):
    """`advertised_listener` (error): Metadata names addresses that the client cannot reach, or that cannot be right
    where it is: wrong `advertised.listeners`. With the address dialled and those advertised. A name that does not
    resolve, or an address in its network that nobody has, shows in a client that asks for the leaders of its topics or
    its coordinator again and again, and never asks these for anything. One that asks for the brokers, leaves, and is
    seen nowhere else is told with the doubt: warning when it does so 3 times or is silent for 10 s, else info, as where
    the capture has one of several brokers.
    """

    codes = ("advertised_listener",)
    explains = ("advertised_not_reached", "left_bootstrap")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for one in observed.of(*self.explains):
            yield self._not_reached(one) if one.kind == "advertised_not_reached" else self._left(one)

    def _not_reached(self, one: Observation) -> Explanation:
        dialled, wrong, clients = (one.numbers[name] for name in ("dialled", "advertised", "clients"))
        of_broker = ("connection_churn", "unanswered", "closed_by_broker")
        return told(
            one,
            f"Metadata from {dialled} names {listed(wrong)}, {one.numbers['how']}: wrong advertised.listeners for "
            f"{listed(clients)}",
            "Set advertised.listeners of the listener that is dialled to an address that its clients can reach: a name "
            "or address of the broker in their network, not its loopback address or one behind a translation. A name "
            "must resolve where the client runs.",
            code="advertised_listener",
            subject=dialled,
            severity="error",
            numbers={"dialled": dialled, "advertised": wrong, "clients": clients, "reached": False},
            explains=symptoms("broker", wrong, "broker_unreachable")
            | symptoms("client", clients, "metadata_storm")
            | symptoms("broker", [dialled], *of_broker),
        )

    def _left(self, one: Observation) -> Explanation:
        dialled, advertised, clients = (one.numbers[name] for name in ("dialled", "advertised", "clients"))
        silent_ns = one.numbers["silent_ns"]
        lasting = one.count >= OFTEN * len(clients) or silent_ns >= SILENT_NS
        since = f", for {duration(silent_ns)} already" if silent_ns >= LEAST_SILENT_NS else ""
        return told(
            one,
            f"{listed(clients)}: told by Metadata from {dialled} to go to {listed(advertised)}, left "
            f"{times(one.count)} and went nowhere{since}: an advertised listener that does not resolve or cannot be "
            "reached there, or brokers that the capture does not have",
            "See in the client's log whether the name resolves and the address can be reached where it runs: some "
            "clients, such as aiokafka and kafka-python, then send no packet and ask no more. If so, set "
            "advertised.listeners of the listener that is dialled to what its clients can reach.",
            code="advertised_listener",
            subject=dialled,
            severity="warning" if lasting and not one.numbers["is_partial"] else "info",
            numbers={"dialled": dialled, "advertised": advertised, "clients": clients, "reached": False},
            explains=symptoms("broker", [dialled], "connection_churn"),
        )


@cause("broker_unreachable", explains=("connections_failed",))
def unreachable_broker(one: Observation, observed: Observed, context: Context) -> Explanation | None:
    """`broker_unreachable` (error when it lasts 30 s, else warning; info when it starts or is soon back): a broker
    refuses connections, or does not answer SYNs; a server on a usual port (9092 to 9099, 19092, 29092) of which nothing
    shows that it is a broker is told with that doubt, and as info where its clients work with others and did not wait
    for it 3 times. These have an old address in `bootstrap.servers`, or in DNS; where brokers answer on that port by
    the other version of IP, their names have addresses of both, and one leads nowhere. Where another host had a
    connection to it meanwhile, on which it answered, it is the way from those that had none.
    """
    numbers, lasted_ns = one.numbers, one.last_ns - one.first_ns
    server, is_broker, is_back = numbers["address"], numbers["is_broker"], numbers["is_back"]
    if not is_broker and not _has_usual_port(server):
        return None
    how = "refuses connections" if numbers["refused"] >= numbers["unanswered"] else "does not answer SYNs"
    until = f", for {duration(lasted_ns)} at least" if lasted_ns >= 1_000_000 else ""
    calm = lasted_ns < AWAY_NS and (is_back or numbers["is_starting"])
    families = numbers["other_family"] if not is_broker and not numbers["refused"] else []
    works = not is_broker and (bool(families) or numbers["works"])
    if not is_broker:
        waited = numbers["unanswered"] >= FEW_ATTEMPTS
        calm = one.count < FEW_ATTEMPTS or (works and not waited)
    name, hosts, others = context.cluster.broker_text(server), numbers["hosts"], numbers["reached_by"]
    unread = {client for each in observed.of("partition_not_read") for client in each.named("client")}
    cut_off = [client for client in unread if client.rpartition(" ")[2] in hosts]
    if others:
        how = f"{how} of {listed(hosts)}"
        until += f", while {listed(others)} {'works' if len(others) == 1 else 'work'} with it"
    return told(
        one,
        f"{how}{span(one.first_ns, one.last_ns)}{', then is back' if is_back else until}"
        f"{'' if is_broker else _unknown(families, works and not calm)}",
        _FAMILIES
        if families
        else _OLD_ADDRESS
        if works and not calm
        else f"The broker is there: something between {listed(hosts)} and it drops or refuses what they send, or its "
        "answers: a firewall, a security group, a network policy, a route."
        if others
        else "Refused: no process listens there, the broker is down or starting. Not answered: the machine is down, or "
        "something drops packets on the way (firewall, security group, routing).",
        subject=f"{listed(hosts)} to {name}" if others else name,
        severity="info" if calm else "error" if lasted_ns >= AWAY_NS and not works else "warning",
        rank=INCIDENT if others or (works and not calm) else SYMPTOM,
        numbers={
            "address": server,
            "refused": numbers["refused"],
            "unanswered": numbers["unanswered"],
            "hosts": hosts[:100],
            "reached_by": others,
        },
        explains=symptoms("broker", [server], "connection_churn") | symptoms("client", cut_off, "partition_not_read"),
    )


def _unknown(families: list[str], works: bool) -> str:
    """What is said of a server of which nothing shows that it is a broker."""
    if families:
        return f"; by the other version of IP {listed(families)} {'answers' if len(families) == 1 else 'answer'}"
    if works:
        return "; it is none of the brokers that its clients work with, and they wait for it each time"
    return "; whether it is a broker, the capture does not show"


def _has_usual_port(server: str) -> bool:
    port = server.rpartition(":")[2]
    return port.isdigit() and int(port) % 10_000 in USUAL_PORTS
