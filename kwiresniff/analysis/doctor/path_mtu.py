"""Paths that take small packets and lose large ones, and say nothing of it: a "black hole" of path MTU discovery.

A tunnel or VPN on the way takes less than the interfaces at the ends, and the ICMP message that should say so is
dropped by a firewall (RFC 2923, section 2.1). Connections open, short requests are answered, and the first one that
fills a segment is sent again and again. Seen from the side that sends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kwiresniff.analysis.doctor.context import Context
from kwiresniff.analysis.doctor.evidence import MAX_SUBJECTS, Case, client_text
from kwiresniff.analysis.doctor.rule import INCIDENT, Rule, as_brokers, found
from kwiresniff.analysis.memory_budget import CONTAINER_BYTES, ENTRY_BYTES, text_bytes
from kwiresniff.base.flows import host_of
from kwiresniff.model import Connection
from kwiresniff.results.findings import Finding

#: Data in the smallest segment that a path may be too narrow for; IPv6 has 1,220 bytes of it at least (RFC 8200).
LARGE_BYTES: Final = 1_000
#: How often it was sent again before it counts.
MANY_TIMES = 3


class _Path:
    """Segments that never arrived, between two hosts in one direction."""

    __slots__ = ("case", "first_ns", "is_open_to_others", "smallest", "times")

    def __init__(self, case: Case) -> None:
        self.case = case
        self.first_ns = 0
        self.is_open_to_others = False
        self.smallest = 0
        self.times = 0


class PathMtuRule(Rule):
    """Large segments that are lost each time, where small ones are not."""

    codes = ("path_mtu",)

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._paths: dict[tuple[str, str, int], _Path] = {}

    def connection(self, connection: Connection) -> None:
        """One that has ended with a segment that was sent again and again, and never acknowledged."""
        stuck = connection.unacknowledged
        if stuck is None or stuck.size_bytes < LARGE_BYTES or stuck.retransmits < MANY_TIMES:
            return
        host = host_of(connection.client)
        key = host, connection.broker, stuck.side
        path = self._paths.get(key)
        if path is None:
            size = CONTAINER_BYTES + 5 * ENTRY_BYTES + text_bytes(host, connection.broker)
            if len(self._paths) >= MAX_SUBJECTS or not self.context.budget.admit(size):
                return
            path = self._paths[key] = _Path(self.context.case())
            path.first_ns, path.smallest = stuck.first_ns, stuck.size_bytes
        # On a connection that was opened after another had got stuck, short messages went both ways.
        path.is_open_to_others |= connection.first_ns > path.first_ns and min(connection.bytes) > 0
        path.first_ns = min(path.first_ns, stuck.first_ns)
        path.smallest = min(path.smallest, stuck.size_bytes)
        path.times += stuck.retransmits
        path.case.add(stuck.packet, stuck.first_ns, until_ns=connection.last_ns)
        path.case.note("clients", [client_text(connection.client_id, connection.client)])

    def findings(self) -> Iterator[Finding]:
        """By the two ends."""
        for (host, broker, side), path in self._paths.items():
            if not path.is_open_to_others:
                continue
            ends = f"{host} to {broker}" if side == 0 else f"{broker} to {host}"
            yield found(
                "path_mtu",
                "error",
                ends,
                f"packets of full size do not arrive: {path.smallest:,} bytes of data were sent again {path.times} "
                f"times on {path.case.count} connections and never acknowledged, while short messages were answered",
                "Something on the way takes smaller packets than the ends think (a tunnel, a VPN, an overlay network) "
                "and the ICMP message that says so is lost. Try: ping -M do -s 1472. Let ICMP type 3 code 4 (IPv6: "
                "type 2) pass, or lower the MTU of the interfaces, or clamp the MSS.",
                path.case,
                {"size_bytes": path.smallest, "retransmits": path.times, "clients": path.case.noted("clients")},
                brokers=[broker],
                explains=dict.fromkeys(
                    ("retransmits", "unanswered", "slow", "request_timeout", "broker_stalled", "connection_churn"),
                    as_brokers(broker),
                ),
                rank=INCIDENT,
            )
