"""The services that connections share: numbers, names, the buffer budget, and where exchanges and problems go."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Final

from kwiresniff.base.flows import host_of
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.model import Connection, Exchange, SegmentSink, Sink
from kwiresniff.session.non_kafka import NonKafkaTraffic
from kwiresniff.session.output import EventOutput
from kwiresniff.stream.buffer_budget import BufferBudget
from kwiresniff.stream.frame_handler import FrameHandler

#: Different client ids remembered by name, and the longest of them. Escaped, a byte is four characters.
MAX_CLIENT_IDS = 10_000
MAX_REMEMBERED_ID_BYTES = 255


#: No response before its request; see ``ConnectionServices.early``.
NONE_EARLY: Final = (0, 0, 0, 0)
#: Waiting events at which delivery from the queue stops: 4 MiB may be 300,000 messages, some kilobyte each.
MAX_WAITING_EVENTS: Final = 20_000


#: Ciphertext that waits for its secrets, of all TLS connections; beyond it those that wait longest give up.
MAX_ALL_WAITING_BYTES = 64 << 20
#: A TLS connection that has ended waits so long for its secrets, by the clock of the capture.
SECRETS_LATE_NS: Final = 5_000_000_000
#: And so many such connections.
MAX_ENDING: Final = 4_096
#: Trials for the sessions of TLS connections whose handshake is not in the capture, of all together.
MAX_ALL_SEARCH_TRIALS: Final = 1 << 20

#: Paths between a client's host and a broker remembered.
MAX_PATHS: Final = 20_000
#: A shorter path counts as the broker's time: handshakes within a data centre show busy machines.
FAR_NS: Final = 2_000_000


class ConnectionServices(SegmentSink):
    """The analyzer, as its connections see it.

    ``keep_request`` and ``keep_response`` bytes are kept of each frame, once it is known which it is; with
    ``filters``, large responses are kept without their record sets. Without ``attempts``, connections that never came
    to be are not reported. ``now_ns`` is the time of the last segment. It derives from ``SegmentSink`` because the
    analyzer is one, and a compiled class has one base.

    ``tls_secrets`` decrypt TLS. ``tls_waiting`` are the connections that wait for theirs, ``tls_waiting_bytes`` what
    they hold, ``tls_ending`` those of them that have ended, and when; no more are added where nobody ``waits_at_end``.
    ``tls_resumptions`` are sessions of TLS 1.2 by the names by which they may be resumed, ``tls_trials``
    those left to find the sessions of connections whose handshake was missed.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "opaque_token_bytes", "budget", "client_ids", "connections", "early", "non_kafka", "now_ns", "paths",
        "tls_resumptions", "tls_trials", "tls_waiting_bytes",
    )  # fmt: skip

    def __init__(
        self,
        exchange_filter: Callable[[Exchange], bool | None] | None,
        sink: Sink,
        *,
        broker_ports: frozenset[bytes],
        attempts: bool,
        tls_secrets: TlsSecrets,
    ) -> None:
        self.output = EventOutput(exchange_filter, sink)
        self.broker_ports = broker_ports
        self.attempts = attempts
        self.tls_secrets = tls_secrets
        self.tls_waiting: dict[FrameHandler, bool] = {}
        self.tls_waiting_bytes = 0
        self.tls_ending: dict[FrameHandler, int] = {}
        self.waits_at_end = True
        self.tls_resumptions: dict[bytes, tuple[bytes, bytes]] = {}
        self.tls_trials = MAX_ALL_SEARCH_TRIALS
        self.keep_request = 0
        self.keep_response = 0
        self.filters = False
        self.budget = BufferBudget()
        self.non_kafka = NonKafkaTraffic()
        self.most_waiting = MAX_WAITING_EVENTS
        self.paused: dict[FrameHandler, bool] = {}  # who has to go on, and whether it is to end
        self.client_ids: dict[bytes, str] = {}
        self.connections = 0  # met so far; each is numbered
        self.opaque_token_bytes = 0
        self.paths: dict[tuple[str, str], int] = {}  # the shortest handshakes, in nanoseconds
        self.now_ns = 0
        #: Early responses in packet order, and by time: count, packet and time of the first, most ns ahead.
        self.early: list[tuple[int, int, int, int]] = [NONE_EARLY, NONE_EARLY]

    def forget(self, flow: bytes, other_flow: bytes, counts: list[int]) -> None:
        """Stops following a connection that is not Kafka; further bytes on its flows only add to ``counts``."""
        raise NotImplementedError

    def count_early(self, ahead_ns: int, packet: int, ns: int) -> None:
        """Counts a response in ``packet``, at ``ns``, whose time is ``ahead_ns`` before that of its request."""
        kind = 1 if ahead_ns > 0 else 0
        count, *first, most_ns = self.early[kind]
        first_packet, first_ns = first if count else (packet, ns)
        self.early[kind] = count + 1, first_packet, first_ns, max(most_ns, ahead_ns)

    def next_number(self) -> int:
        """The number of a connection that has shown what it is."""
        self.connections += 1
        return self.connections

    def far_path_ns(self, connection: Connection) -> int:
        """The path to the broker and back in ns, by the shortest handshake of both hosts; 0 below ``FAR_NS``."""
        ends = host_of(connection.client), connection.broker
        known = self.paths.get(ends)
        path_ns = connection.path_ns
        if path_ns is not None and (known is None or path_ns < known):
            if known is not None or len(self.paths) < MAX_PATHS:
                self.paths[ends] = path_ns
            known = path_ns
        return known if known is not None and known >= FAR_NS else 0

    def client_id(self, raw: bytes) -> str:
        """A client id as text, the same object every time; undecodable bytes are shown escaped."""
        text = raw.decode("utf-8", "backslashreplace")
        if len(self.client_ids) < MAX_CLIENT_IDS and len(raw) <= MAX_REMEMBERED_ID_BYTES:
            self.client_ids[raw] = text
        return text
