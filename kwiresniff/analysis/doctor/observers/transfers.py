"""Messages that take long to pass once they have begun: the broker has done its work by then, or has not begun."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, observation_of
from kwiresniff.analysis.doctor.observer import Observer
from kwiresniff.analysis.doctor.selection import Selection, transferred
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.wording import duration, times
from kwiresniff.base.flows import host_of
from kwiresniff.model import Exchange

#: A transfer that takes longer is slow, if it is also slower than so many bytes in a second: large ones may take long.
SLOW_NS: Final = 1_000_000_000
SLOW_BYTES_PER_S: Final = 1_000_000


class _Transfers:
    """The slow transfers between a client and a broker in one direction."""

    __slots__ = ("bytes", "case", "given_up", "longest_bytes")

    def __init__(self, context: Context) -> None:
        self.case: Case = context.case()
        self.bytes = 0
        self.longest_bytes = 0
        self.given_up = 0


class SlowTransfers(Observer):
    """``slow_transfer``: requests or responses that took a second or more from their first to their last byte, and less
    than 1,000,000 bytes a second; also a response that was still arriving when its client gave up, or the capture
    ended. A request counts from when the answer before it had gone: until then a broker reads nothing more of the
    connection.

    By client, broker and direction. Numbers: ``direction``, ``longest_ns``, and of that one ``bytes`` and
    ``bytes_per_second``; ``total_bytes`` of all; ``given_up``, of how many the client did not wait for the end;
    ``concerns`` are the APIs. Each is late by the time that it took.
    """

    kinds: ClassVar[tuple[str, ...]] = ("slow_transfer",)
    apis: ClassVar[frozenset[int] | None] = None
    selection: ClassVar[Selection] = transferred(SLOW_NS)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._transfers: Subjects[tuple[str, str, str, str], _Transfers] = Subjects(
            context.budget, lambda: _Transfers(context), 20
        )

    def exchange(self, exchange: Exchange) -> None:
        """Takes a request or response that passed slowly."""
        client, broker, host = client_of(exchange), exchange.connection.broker, host_of(exchange.connection.client)
        notes = self.context.notes
        read_ns = notes.before_ns if notes is not None else 0
        for direction, message, free_ns in (
            ("response", exchange.response, 0),
            ("request", exchange.request, read_ns),
        ):
            if message is not None and message.last_ns - max(message.first_ns, free_ns) >= SLOW_NS:
                self._add(
                    (client, broker, host, direction), exchange.api, message.first_packet,
                    max(message.first_ns, free_ns), message.last_ns, message.size_bytes,
                )  # fmt: skip

    def ending(self, ending: Ending) -> None:
        """Takes a response that was still arriving."""
        if ending.reason == "response arriving":
            connection, first = ending.connection, ending.first
            over_ns = first.last_ns + ending.waited_ns
            subject = client_in(ending), connection.broker, host_of(connection.client), "response"
            if over_ns - ending.begun_ns >= SLOW_NS:
                self._add(subject, first.api, first.packet, ending.begun_ns, over_ns, ending.present_bytes)
                known = self._transfers.get(subject)
                if known is not None:
                    known.given_up += connection.closed_by == "client"

    def _add(
        self, subject: tuple[str, str, str, str], api: str, packet: int, first_ns: int, last_ns: int, size: int
    ) -> None:
        took_ns = last_ns - first_ns
        if size * 1_000_000_000 > SLOW_BYTES_PER_S * took_ns:
            return
        known = self._transfers.of(subject)
        if known is None:
            return
        known.case.add(packet, first_ns, took_ns, until_ns=last_ns)
        known.case.note("apis", [api])
        known.bytes += size
        if took_ns == known.case.most:
            known.longest_bytes = size

    def observations(self) -> Iterator[Observation]:
        """One for each client, broker and direction."""
        for (client, broker, host, direction), known in self._transfers.items():
            case, size = known.case, known.longest_bytes
            does = "receive a response of" if direction == "response" else "send a request to"
            yield observation_of(
                "slow_transfer",
                f"{client} took up to {duration(case.most)} to {does} {self.context.cluster.broker_text(broker)} once "
                f"that had begun, {times(case.count)}: {size:,} bytes at {size * 1_000_000_000 // case.most:,} bytes a "
                "second",
                case,
                [f"client:{client}", f"broker:{broker}", f"host:{host}"],
                {
                    "direction": direction,
                    "longest_ns": case.most,
                    "bytes": size,
                    "bytes_per_second": size * 1_000_000_000 // case.most,
                    "total_bytes": known.bytes,
                    "given_up": known.given_up,
                    "concerns": case.noted("apis"),
                },
                Harm(requests_late=case.count, late_ns=case.total),
            )
