"""Trouble on the path between clients and brokers, which is no broker's doing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.path import LONG_NS
from kwiresniff.analysis.doctor.wording import counted, duration, listed
from kwiresniff.results.findings import scope_of

#: As between continents: every request that is waited for costs that.
VERY_LONG_NS: Final = 100_000_000
#: How much longer a path is than the others before it is one of its own.
TIMES_LONGER: Final = 4
#: Data in the smallest segment that a path may be too narrow for; IPv6 has 1,220 bytes of it at least (RFC 8200).
LARGE_BYTES: Final = 1_000


class LongPath(Cause):
    """`long_path` (warning where it is 100 ms or more, or the path to one broker of a cluster is 4 times as long as to
    the others; else info): packets take 20 ms or more from a client's host to a broker and back. Seen must be the
    handshake of a connection, on the client's side of the path. A busy host looks the same in one handshake, so the
    shortest of all counts, and of one alone nothing is compared.
    """

    codes: ClassVar[tuple[str, ...]] = ("long_path",)
    explains: ClassVar[tuple[str, ...]] = ("path_time",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By client's host and broker, compared with the other brokers of the cluster."""
        for path in observed.of("path_time"):
            path_ns = path.numbers["round_trip_ns"]
            if path_ns < LONG_NS:
                continue
            host, broker = path.name("host"), path.name("broker")
            others = self._others(observed, path)
            longest_ns = max((one.numbers["round_trip_ns"] for one in others), default=0)
            alone = bool(others) and path.count > 1 and path_ns >= TIMES_LONGER * longest_ns
            name = self.context.cluster.broker_text(broker)
            title = f"is {duration(path_ns)} there and back ({counted(path.count, 'handshake')})"
            if alone:
                title += f", to the other brokers of the cluster {duration(longest_ns)} at most"
            yield Explanation(
                code="long_path",
                subject=f"{host} to {name if alone else broker}",
                title=f"{title}: that long each request waits besides what the broker takes",
                remedy="It is the path, not the broker: another region, a VPN, a detour. Bring clients near the "
                "brokers, or let them wait less often: more in flight, larger batches (linger.ms, batch.size), commits "
                "at intervals. For throughput raise send.buffer.bytes and receive.buffer.bytes.",
                explained=(path,),
                severity="warning" if alone or path_ns >= VERY_LONG_NS else "info",
                supports=(
                    f"the kernel of {name} answers a SYN at once, and its answer took that long",
                    *(one.text for one in others),
                ),
                numbers={
                    "round_trip_ns": path_ns,
                    **({"others_ns": longest_ns} if others else {}),
                    "clients": path.named("client"),
                },
            )

    def _others(self, observed: Observed, path: Observation) -> list[Observation]:
        """The paths from the same host to the other brokers of the same cluster, as far as that is known."""
        cluster = self.context.cluster
        cluster_id = cluster.of(path.name("broker"))
        paths = observed.about([f"host:{path.name('host')}"], "path_time") if cluster_id else []
        return [one for one in paths if one is not path and cluster.of(one.name("broker")) == cluster_id]


class NarrowPath(Cause):
    """`path_mtu` (error): packets of full size do not arrive, and nobody says so: a "black hole" of path MTU discovery.
    A tunnel or VPN on the way takes smaller packets than the interfaces at the ends, and the ICMP message that should
    say so is dropped (RFC 2923, section 2.1). Seen must be large data that never arrives on a connection which was
    opened after another had got stuck in the same way, and on which short messages had gone both ways before. There
    must be no segment on it that is as large as those which arrived before. A filter that drops large packets looks
    the same. A host that is down answers nothing; a broker that stands still does not begin an answer.
    """

    codes: ClassVar[tuple[str, ...]] = ("path_mtu",)
    explains: ClassVar[tuple[str, ...]] = ("data_lost", "unanswered")

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        """By client's host and direction: what is narrow is mostly near the client, and all brokers are behind it."""
        paths: dict[tuple[str, str], list[Observation]] = {}
        for one in observed.of("data_lost"):
            if one.numbers["size_bytes"] >= LARGE_BYTES:
                paths.setdefault((one.name("host"), one.numbers["direction"]), []).append(one)
        for (host, direction), lost in paths.items():
            if any(one.numbers["answered"] for one in lost):
                yield self._explanation(host, direction, lost, observed)

    def _explanation(self, host: str, direction: str, lost: list[Observation], observed: Observed) -> Explanation:
        brokers = [broker for one in lost for broker in one.named("broker")]
        names = listed(brokers)
        ends = f"{host} to {names}" if direction == "request" else f"{names} to {host}"
        arrived = max(one.numbers["largest"] for one in lost)
        before = max(one.numbers["largest_before"] for one in lost)
        times = sum(one.numbers["retransmits"] for one in lost)
        present = max(one.numbers["present_bytes"] for one in lost)
        connections = sum(one.count for one in lost)
        smallest = min(one.numbers["size_bytes"] for one in lost)
        if times:
            seen = f"{smallest:,} bytes of data were sent again {times} times on {connections} connections and never "
            seen += "acknowledged"
        else:
            seen = f"on {counted(connections, 'connection')} {'requests' if direction == 'request' else 'answers'} "
            seen += f"began ({present} bytes) and never ended" if present else "never arrived"
        limit = f", segments of up to {arrived:,} bytes arrive" if arrived else ""
        later = sum(one.numbers["answered"] for one in lost)
        stands = arrived < max(before, LARGE_BYTES)
        alive = [broker for broker in brokers if self._answers_others(broker, lost)]
        return Explanation(
            code="path_mtu",
            subject=ends,
            title=f"packets of full size do not arrive: {seen}, while short messages were answered{limit}",
            remedy="Something on the way takes smaller packets than the ends think (a tunnel, a VPN, an overlay "
            "network) and the ICMP message that says so is lost; or a filter drops large ones. Try: ping -M do -s "
            "1472. Let ICMP type 3 code 4 (IPv6: type 2) pass, or lower the MTU of the interfaces, or clamp the MSS.",
            explained=(
                *lost,
                *(one for one in observed.about(scope_of("broker", brokers), "unanswered")
                  if one.about & {client for each in lost for client in each.about if client.startswith("client:")}),
            ),
            supports=(
                f"short messages went both ways on {counted(later, 'connection')} opened after the first loss",
                "the receiver acknowledged what is there and nothing more: it is not the capture that lost the rest",
                *(f"{broker} answered others meanwhile" for broker in alive),
                *([f"before, segments of {before:,} bytes arrived, then of {arrived:,} at most"] * (before > arrived)),
            ),
            contradicts=() if stands else (f"segments of {arrived:,} bytes arrived later, as large as before",),
            stands=stands,
            severity="error",
            numbers={
                "size_bytes": smallest,
                "retransmits": times,
                "largest_bytes": arrived,
                "clients": sorted({client for one in lost for client in one.named("client")}),
            },
            explains=dict.fromkeys(
                ("retransmits", "unanswered", "slow", "request_timeout", "broker_stalled", "connection_churn"),
                scope_of("broker", brokers),
            ),
        )  # fmt: skip

    def _answers_others(self, broker: str, lost: list[Observation]) -> bool:
        return self.context.cluster.last_answer_ns.get(broker, 0) > min(one.first_ns for one in lost)


class BrokenPath(Cause):
    """`data_lost` (error; warning where it is one connection): data is sent and TCP never acknowledges it, or an answer
    begins and never ends. Kernels acknowledge whatever their processes do, so it is the path, or a host that is gone or
    cut off, and not Kafka. Seen must be that the segments were sent again and again, or that the receiver waited after
    it had acknowledged all that came. Where it is only large data, it is `path_mtu`.
    """

    codes: ClassVar[tuple[str, ...]] = ("data_lost",)
    explains: ClassVar[tuple[str, ...]] = ("data_lost",)

    def weigh(self, observed: Observed) -> Iterator[Explanation]:
        for lost in observed.of("data_lost"):
            host, broker, times = lost.name("host"), lost.name("broker"), lost.numbers["retransmits"]
            name, longest = self.context.cluster.broker_text(broker), duration(lost.numbers["longest_ns"])
            ends = (host, name) if lost.numbers["direction"] == "request" else (name, host)
            alive = self.context.cluster.last_answer_ns.get(broker, 0) > lost.last_ns
            if times:
                title = (
                    f"what {ends[0]} sends does not arrive: sent again {times} times, it was never acknowledged, on "
                    f"{counted(lost.count, 'connection')} for {longest} at most"
                )
            else:
                title = (
                    f"messages begin to arrive and never end, on {counted(lost.count, 'connection')}; their receiver "
                    f"waited {longest} at most"
                )
            yield Explanation(
                code="data_lost",
                subject=" to ".join(ends),
                title=title,
                remedy="It is the path, or the host is gone (power, network interface, a container that was removed): "
                "a kernel acknowledges whatever its process does. Look at firewalls, security groups, overlay networks "
                "and load balancers between the two, and ping both ways.",
                explained=(lost,),
                supports=("TCP acknowledges data whether or not the process reads it",),
                contradicts=(f"{name} answered afterwards",) if alive else (),
                severity="error" if lost.count > 1 else "warning",
                numbers={
                    "retransmits": times,
                    "longest_ns": lost.numbers["longest_ns"],
                    "clients": lost.named("client"),
                },
                explains=dict.fromkeys(
                    ("retransmits", "unanswered", "request_timeout", "broker_stalled", "slow"),
                    scope_of("broker", [broker]),
                ),
            )
