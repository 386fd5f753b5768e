"""Trouble on the path between clients and brokers, which is no broker's doing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from kwiresniff.analysis.doctor.cause import Cause, Explanation
from kwiresniff.analysis.doctor.observation import Observation, Observed
from kwiresniff.analysis.doctor.observers.path import LONG_NS
from kwiresniff.analysis.doctor.wording import counted, duration

#: As between continents: every request that is waited for costs that.
VERY_LONG_NS: Final = 100_000_000
#: How much longer a path is than the others before it is one of its own.
TIMES_LONGER: Final = 4


class LongPath(Cause):
    """`long_path` (warning where it is 100 ms or more, or the path to one broker of a cluster is 4 times as long as to
    the others; else info): packets take 20 ms or more from a client's host to a broker and back. Seen must be the
    handshake of a connection, on the client's side of the path. A busy host looks the same in one handshake, so the
    shortest of all counts.
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
            alone = bool(others) and path_ns >= TIMES_LONGER * longest_ns
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
