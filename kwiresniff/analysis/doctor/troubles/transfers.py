"""Messages that take long from their first to their last byte."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.endings import Ending, client_in
from kwiresniff.analysis.doctor.evidence import Case, client_of
from kwiresniff.analysis.doctor.observation import Harm, Observation, Observed, grouped, observation_of
from kwiresniff.analysis.doctor.observer import SLOW_NS, Observer
from kwiresniff.analysis.doctor.subjects import Subjects
from kwiresniff.analysis.doctor.troubles.lossy_paths import small_transfers
from kwiresniff.analysis.doctor.troubles.path_times import LONG_NS
from kwiresniff.analysis.doctor.troubles.segments import SOME_RETRANSMITS
from kwiresniff.analysis.doctor.wording import duration, listed, times
from kwiresniff.base.flows import host_of
from kwiresniff.base.time_units import SECOND_NS
from kwiresniff.model import Exchange
from kwiresniff.results.findings import Explains, scope_of

#: A slow transfer has fewer bytes in a second.
SLOW_BYTES_PER_S: Final = 1_000_000
#: Fewer slow transfers, or shorter ones, may be those of a consumer that works between two polls.
OFTEN: Final = 3
VERY_SLOW_NS: Final = 5_000_000_000
#: The largest TCP window without the option that scales it (RFC 9293).
SMALL_WINDOW_BYTES: Final = 65_535


class _Transfers:
    """The slow transfers between a client and a broker in one direction."""

    __slots__ = ("bytes", "case", "given_up", "longest_bytes")

    def __init__(self, context: Context) -> None:
        self.case: Case = context.case()
        self.bytes = 0
        self.longest_bytes = 0
        self.given_up = 0


class SlowTransfers(Observer):
    """``slow_transfer``: requests or responses that took a second or more from their first to their last byte, at less
    than 1,000,000 bytes a second; also a response that was still arriving when its client gave up, or the capture
    ended. A request counts from the answer before it on, as a broker reads nothing of the connection until then.

    By client, broker and direction. Numbers: ``direction``, ``longest_ns``, and of that one ``bytes`` and
    ``bytes_per_second``; ``total_bytes`` of all; ``given_up``: those whose client did not wait for the end;
    ``concerns``: the APIs. Each is late by the time that it took.
    """

    kinds = ("slow_transfer",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._transfers: Subjects[tuple[str, str, str, str], _Transfers] = context.subjects(
            lambda: _Transfers(context), 20
        )

    def slow(self, exchange: Exchange) -> None:
        connection, read_ns = exchange.connection, self.context.cluster.answer_on_connection_ns
        for direction, message, free_ns in (("response", exchange.response, 0), ("request", exchange.request, read_ns)):
            if message is None or exchange.response is None or message.last_ns - message.first_ns < SLOW_NS:
                continue
            begin_ns = max(message.first_ns, free_ns)
            if message.last_ns - begin_ns >= SLOW_NS:
                subject = client_of(exchange), connection.broker, host_of(connection.client), direction
                self._add(subject, exchange.api, message.first_packet, begin_ns, message.last_ns, message.size_bytes)

    def ending(self, ending: Ending) -> None:
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
        for (client, broker, host, direction), known in self._transfers.items():
            case, size = known.case, known.longest_bytes
            numbers = {
                "direction": direction,
                "longest_ns": case.most,
                "bytes": size,
                "bytes_per_second": size * 1_000_000_000 // case.most,
                "total_bytes": known.bytes,
                "given_up": known.given_up,
                "concerns": case.noted("apis"),
            }
            about = [f"client:{client}", f"broker:{broker}", f"host:{host}"]
            yield observation_of(
                "slow_transfer", case, about, numbers, Harm(requests_late=case.count, late_ns=case.total)
            )


class SlowTransfer(Cause):
    """`slow_transfer` (warning from 3 on, of which one took 5 s; else info): messages take long to pass once they have
    begun, and the broker has answered by then, or waits for the rest. By client's host, with all the brokers that it
    is slow with. Several of them at a time, or other hosts that are not slow with the same brokers, show that it is on
    the client's side: its link is narrow, or it does not read. Segments that are lost on the way there and sent again
    show a narrow link whose queue is full, or one that loses packets; without them it may be either. On a long path
    (`long_path`) on which no more than 64 kB pass in the time there and back, and nothing is lost, it may be a TCP
    receive window that is as small as that.
    """

    codes = ("slow_transfer",)
    explains = ("slow_transfer", "segments_resent", "segments_arrived", "late_writes")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        lossy = {one for path in observed.of("segments_resent") for one in small_transfers(observed, path)}
        slow_ones = [one for one in observed.of("slow_transfer") if one not in lossy]  # those wait for a lost packet
        cluster_of = self.context.cluster.of
        places = grouped(
            slow_ones, lambda one: (cluster_of(one.name("broker")), one.name("host"), str(one.numbers["direction"]))
        )
        for (cluster, host, direction), slow in places.items():
            yield self._explanation(host, direction, slow, self._others(cluster, host, slow, observed), observed)

    def _others(self, cluster: str, host: str, slow: list[Observation], observed: Observed) -> list[str]:
        """Other hosts with the same brokers that are not slow with any."""
        late = {one.name("host") for one in observed.of("slow_transfer")} | {host}
        brokers = scope_of("broker", {one.name("broker") for one in slow})
        paths = observed.about(brokers, "segments_arrived", "segments_resent") if cluster else []
        return sorted({one.name("host") for one in paths} - late)

    def _explanation(
        self, host: str, direction: str, slow: list[Observation], others: list[str], observed: Observed
    ) -> Explanation:
        longest = max(slow, key=lambda one: one.numbers["longest_ns"])
        longest_ns, count = longest.numbers["longest_ns"], sum(one.count for one in slow)
        brokers = sorted({one.name("broker") for one in slow})
        clients = sorted({client for one in slow for client in one.named("client")})
        span_ns = max(one.last_ns for one in slow) - min(one.first_ns for one in slow)
        rate = sum(one.numbers["total_bytes"] for one in slow) * 1_000_000_000 // max(span_ns, 1)
        names = listed([self.context.cluster.broker_text(broker) for broker in brokers])
        paths = observed.about(scope_of("broker", brokers), "segments_resent", "segments_arrived")
        paths = [one for one in paths if one.name("host") == host]
        lost = sum(one.numbers["to_client" if direction == "response" else "to_broker"] for one in paths)
        does = ("receive a response of", "to") if direction == "response" else ("send a request to", "from")
        title = (
            f"takes up to {duration(longest_ns)} to {does[0]} {names} once that has begun, {times(count)}: "
            f"{longest.numbers['bytes']:,} bytes at {longest.numbers['bytes_per_second']:,} bytes a second"
        )
        on_its_side = len(brokers) > 1 or bool(others)
        if len(brokers) > 1:
            title += f"; {rate:,} bytes a second with all {len(brokers)} brokers together: it is not one of these"
        if others:
            title += f"; {listed(others)} {'is' if len(others) == 1 else 'are'} not slow with the same brokers"
        clogged = lost >= SOME_RETRANSMITS and direction == "response"
        if clogged:
            title += f"; {lost} segments were lost on the way {does[1]} it"
        trips = observed.about(scope_of("broker", brokers), "path_time")
        trip_ns = min((one.numbers["round_trip_ns"] for one in trips if one.name("host") == host), default=0)
        window = longest.numbers["bytes_per_second"] * trip_ns // SECOND_NS
        windowed = direction == "response" and not clogged and trip_ns >= LONG_NS and window <= SMALL_WINDOW_BYTES
        if windowed:
            title += f", which is {window:,} bytes in the {duration(trip_ns)} there and back"
        # What waits before a narrow link has left its client and not reached the broker.
        named = {f"client:{client}" for client in clients}
        late = [
            one
            for one in observed.about(scope_of("broker", brokers), "late_writes")
            if direction == "request" and named.issuperset(each for each in one.about if each.startswith("client:"))
        ]
        grave = count >= OFTEN and longest_ns >= VERY_SLOW_NS
        narrow = "its link, or what it shares with others (a VPN, a tunnel, a limit of the virtual machine)"
        return Explanation(
            code="slow_transfer",
            subject=clients[0] if len(clients) == 1 else host,
            title=title,
            remedy=_WINDOW
            if windowed
            else f"The path {does[1]} {host} takes no more: look at {narrow}, and at what else goes over it. Let it "
            "ask for less (fetch.max.bytes, max.partition.fetch.bytes), or let producers compress."
            if clogged or (on_its_side and direction == "request")
            else "The broker has answered by then. Either the client does not read (it works for long between two "
            "reads, its process stands still: tcp.analysis.zero_window in Wireshark shows that), or the path is narrow "
            "or loses packets"
            + (f": look at {narrow}." if on_its_side else ": compare with other clients of the same broker."),
            explained=(*slow, *(paths if clogged or direction == "request" else []), *late),
            severity="warning" if grave else "info",
            doubt="A link that passes no more, or a client that reads as slowly, looks the same." if windowed else "",
            numbers={
                "longest_ns": longest_ns,
                "bytes": longest.numbers["bytes"],
                "bytes_per_second": longest.numbers["bytes_per_second"],
                "together_bytes_per_second": rate,
                "direction": direction,
                "brokers": brokers,
                "clients": clients,
                "given_up": sum(one.numbers["given_up"] for one in slow),
                "concerns": sorted({api for one in slow for api in one.numbers["concerns"]}),
            },
            explains=_symptoms(clients),
        )


_WINDOW: Final = (
    "On a path as long as this no more passes in the time there and back than the client's TCP window takes "
    "(tcp.window_size in Wireshark). Where that is so small, let the kernel size it (receive.buffer.bytes=-1; "
    "socket.receive.buffer.bytes=0 of librdkafka), or set it to the bytes of a second times the seconds there and "
    "back. Else see whether the client reads, and compare with others on the same path."
)


def _symptoms(clients: list[str]) -> Explains:
    codes = ("consumer_lag", "slow", "unanswered", "own_queue", "request_timeout")
    return dict.fromkeys(codes, scope_of("client", clients))
