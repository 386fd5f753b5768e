"""Responses that take long to get to their clients once they have begun: the broker has done its work by then."""

from __future__ import annotations

from collections.abc import Iterator

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_clients, found
from kwiresniff.analysis.doctor.selection import transferred
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Finding

#: A transfer that takes longer is slow, if it is also slower than so many bytes in a second: large ones may take long.
SLOW_NS = 1_000_000_000
SLOW_BYTES_PER_S = 1_000_000
#: So many, of which one took so long, are trouble: a consumer that works for a while between two polls reads no sooner.
OFTEN = 3
VERY_SLOW_NS = 5_000_000_000


class TransferRule(Rule):
    """Clients that take long to receive what a broker sends them."""

    codes = ("slow_transfer",)
    apis = None
    selection = transferred(SLOW_NS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """A response that took a second or more from its first to its last byte."""
        response = exchange.response
        if response is None:
            return
        took_ns = response.last_ns - response.first_ns
        if response.size_bytes * 1_000_000_000 > SLOW_BYTES_PER_S * took_ns:
            return
        case = self._cases.case(client_of(exchange), exchange.connection.broker)
        case.add(response.first_packet, response.first_ns, took_ns, until_ns=response.last_ns)
        case.note("apis", [exchange.api])
        if took_ns == case.most:
            case.note("bytes", [str(response.size_bytes)], most=100)

    def findings(self) -> Iterator[Finding]:
        """By client and broker."""
        for client, broker, case in self._cases:
            size = int(case.noted("bytes")[-1])
            rate = size * 1_000_000_000 // case.most
            grave = case.count >= OFTEN and case.most >= VERY_SLOW_NS
            yield found(
                "slow_transfer",
                "warning" if grave else "info",
                client,
                f"takes up to {duration(case.most)} to receive a response of "
                f"{self.context.cluster.broker_text(broker)} once that has begun, {times(case.count)}: {size:,} bytes "
                f"at {rate:,} bytes a second",
                "The broker has answered by then. Either the client does not read (it works for long between two "
                "reads, its process stands still: tcp.analysis.zero_window in Wireshark shows that), or the path is "
                "narrow or loses packets: compare with other clients of the same broker.",
                case,
                {
                    "longest_ns": case.most,
                    "bytes": size,
                    "bytes_per_second": rate,
                    "concerns": case.noted("apis"),
                },
                clients=[client],
                brokers=[broker],
                explains={"consumer_lag": as_clients(client)},
                rank=INCIDENT,
            )
