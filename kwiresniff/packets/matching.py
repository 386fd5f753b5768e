"""Which packets of a capture a selection wants, told one packet after the other."""

from __future__ import annotations

from kwiresniff.base.flows import reverse
from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.model import ACK, FIN, RST, SYN, Segment
from kwiresniff.packets.selection import ChosenConnection, Selection
from kwiresniff.session.tls_record_layer import is_record

#: Segments with data of a connection that are looked at for TLS records: a preamble may stand before them.
_LOOKED_AT = 8


class _Flow:
    """The chosen connections between two ports, one after the other, and which of them is going on."""

    __slots__ = ("by_iss", "current", "is_tls", "looked_at")

    def __init__(self) -> None:
        self.by_iss: dict[int, ChosenConnection] = {}
        self.current: ChosenConnection | None = None
        self.is_tls = False
        self.looked_at = 0

    def begin(self, chosen: ChosenConnection | None) -> None:
        """Goes on with another connection, or none that was chosen."""
        self.current = chosen
        self.is_tls = chosen is not None and chosen.connection.tls is not None
        self.looked_at = 0


class PacketMatcher:
    """Finds the packets that carry or acknowledge bytes of chosen exchanges, or open and end their connections; of TLS
    all up to the last chosen one, because records are numbered.
    """

    def __init__(self, selection: Selection) -> None:
        """The selection has to be complete, and closed."""
        self._flows: dict[bytes, tuple[_Flow, bool]] = {}
        for chosen in selection.connections.values():
            flow, _ = self._flows.get(chosen.flow) or self._add(chosen.flow)
            if chosen.connection.client_iss >= 0:
                flow.by_iss[chosen.connection.client_iss] = chosen
            else:
                flow.begin(chosen)

    def _add(self, flow: bytes) -> tuple[_Flow, bool]:
        both = _Flow()
        self._flows[flow] = both, True
        self._flows[reverse(flow)] = both, False
        return self._flows[flow]

    def connection_of(self, flow: bytes) -> ChosenConnection | None:
        """The chosen connection that a wanted packet on ``flow`` belongs to."""
        found = self._flows.get(flow)
        return None if found is None else found[0].current

    def is_tls(self, flow: bytes) -> bool:
        """Whether the connection on ``flow`` that goes on carries TLS, as far as has been seen."""
        found = self._flows.get(flow)
        return found is not None and found[0].is_tls

    def wants(self, segment: Segment) -> bool:
        """Whether the packet of a segment is wanted. To be asked of every segment, in the order of the capture."""
        packet, _, key, seq, ack, flags, buffer, start, end, missing = segment
        found = self._flows.get(key)
        if found is None:
            return False
        flow, from_client = found
        if flags & SYN:
            return self._syn(flow, from_client, seq, ack, flags)
        chosen = flow.current
        if chosen is None:
            return False
        if start < end and flow.looked_at < _LOOKED_AT:
            flow.looked_at += 1
            flow.is_tls = flow.is_tls or is_record(buffer, start)
        size = end - start + missing
        if flags & (FIN | RST):
            return True
        if flow.is_tls:
            return packet <= chosen.last_packet or not size
        own, other = (chosen.requests, chosen.responses) if from_client else (chosen.responses, chosen.requests)
        if size:
            return own.touches(seq, size)
        return bool(flags & ACK) and other.borders(ack)

    @staticmethod
    def _syn(flow: _Flow, from_client: bool, seq: int, ack: int, flags: int) -> bool:
        iss = (ack - 1) & SEQ_MASK if flags & ACK else seq
        if bool(flags & ACK) == from_client:
            return False  # the client's port answers somebody else
        chosen = flow.by_iss.get(iss)
        if chosen is not flow.current:
            flow.begin(chosen)
        return chosen is not None
