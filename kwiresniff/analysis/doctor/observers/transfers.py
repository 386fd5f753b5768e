"""Responses that take long to get to their clients once they have begun: the broker has done its work by then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.selection import Selection, transferred
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.model import Exchange

#: A transfer that takes longer is slow, if it is also slower than so many bytes in a second: large ones may take long.
SLOW_NS: Final = 1_000_000_000
SLOW_BYTES_PER_S: Final = 1_000_000


class SlowTransfers(Observer):
    """``slow_transfer``: responses that took a second or more from their first to their last byte, and less than
    1,000,000 bytes a second.

    By client and broker. Numbers: ``longest_ns``, and of that one ``bytes`` and ``bytes_per_second``; ``concerns`` are
    the APIs. Each is late by the time that it took.
    """

    kinds: ClassVar[tuple[str, ...]] = ("slow_transfer",)
    apis: ClassVar[frozenset[int] | None] = None
    selection: ClassVar[Selection] = transferred(SLOW_NS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._cases = context.tally()

    def exchange(self, exchange: Exchange) -> None:
        """Takes a response that came slowly."""
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

    def observations(self) -> Iterator[Observation]:
        """One for each client and broker."""
        for client, broker, case in self._cases:
            size = int(case.noted("bytes")[-1])
            yield observation_of(
                "slow_transfer",
                f"{client} took up to {duration(case.most)} to receive a response of "
                f"{self.context.cluster.broker_text(broker)} once that had begun, {times(case.count)}",
                case,
                [f"client:{client}", f"broker:{broker}"],
                {
                    "longest_ns": case.most,
                    "bytes": size,
                    "bytes_per_second": size * 1_000_000_000 // case.most,
                    "concerns": case.noted("apis"),
                },
                Harm(requests_late=case.count, late_ns=case.total),
            )
