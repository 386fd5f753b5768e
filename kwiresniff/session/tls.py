"""A connection that is TLS: its hellos are read, the rest is counted.

What it carries comes, if at all, from whoever holds the keys, as segments of their own beside the encrypted ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kwiresniff.model import Connection
from kwiresniff.session.tls_hello import CLIENT_HELLO, SERVER_HELLO, Front
from kwiresniff.session.tls_records import HANDSHAKE, RECORD_HEADER_BYTES
from kwiresniff.stream.half import Half

#: The shortest Finished in a record of TLS 1.3: five bytes, a message of 4 + 32, one for its type, a tag of 16.
FINISHED_BYTES = 58
#: What is told of an alert that cannot be read.
ENCRYPTED = "encrypted"

if TYPE_CHECKING:
    from kwiresniff.session.link import Link


class Tls:
    """Takes the two halves of a link over.

    ``connection`` is the link's; its ``tls`` is filled in by ``close``. ``carried`` is the connection inside, once
    there is anything decrypted.
    """

    __slots__ = ("_answered_bytes", "_fronts", "_link", "carried", "connection")

    def __init__(self, link: Link, half: Half, offset: int) -> None:
        """The run of ``half`` shows records from ``offset`` on."""
        self._link = link
        client = client_of(half, offset) or (link.client if link.opened_by_syn else self._likely_client(half))
        link.client, link.broker = client, client.peer
        self.connection: Connection = link.analyzer.new_connection(link)
        self.connection.protocol = "tls"
        self.carried: Link | None = None
        self._fronts = (Front(), Front())
        self._answered_bytes = 0  # what the server had sent when the client began to encrypt
        for index, one in enumerate((link.client, link.broker)):
            one.index = index
            one.lost = self._lost
            one.locate = self._locate
            if one is half:
                del one.run.data[:offset]
            if one.run.data:
                self._locate(one)

    def _likely_client(self, half: Half) -> Half:
        """The side that is more likely the client's when nothing but encrypted data was seen.

        Known ports of brokers tell; else the higher port, which is a guess that holds where clients take theirs from
        the ephemeral range.
        """
        ports = self._link.analyzer.broker_ports
        mine, other = half.flow[-4:-2], half.flow[-2:]
        if (mine in ports) != (other in ports):
            return half.peer if mine in ports else half
        return half if mine > other else half.peer

    def _locate(self, half: Half) -> int:
        """Reads what has come; once nothing in the clear is left, the half only counts."""
        front = self._fronts[half.index]
        front.feed(half.run.data)
        half.budget.held += len(half.run)
        half.run.clear()
        if front.done:
            if half is self._link.client:
                self._answered_bytes = self._link.broker.bytes
            half.count_only()
        return -1

    def _lost(self, half: Half, packet: int, ns: int, missing: int, skipped: int, code: str) -> None:
        # Behind a gap there are no records to be found; what was read before it stands. All gaps of a direction are
        # told as one in the end: there are no messages here to be told apart, and with a snap length as many gaps.
        half.miss(packet, ns, missing)
        self._fronts[half.index].done = True
        if half.searching:
            half.count_only()

    def held_bytes(self) -> int:
        """Memory of hellos that are not complete."""
        return sum(front.held_bytes() for front in self._fronts)

    def shed(self) -> None:
        """Give them up."""
        for front in self._fronts:
            front.give_up()

    def decrypt(self, half: Half, packet: int, ns: int, seq: int, buffer: bytes, start: int, end: int) -> None:
        """Take ``buffer[start:end]``, what ``half`` carries from the byte ``seq`` of its plaintext on."""
        link = self._link
        carried = self.carried
        if carried is None:
            carried = self.carried = link.carry()
        if not carried.closed:
            one = carried.client if half is link.client else carried.broker
            one.last_ns = ns
            one.bytes += end - start
            one.segment(packet, ns, seq, buffer, start, end, 0)

    def close(self) -> None:
        """Put together what was learned."""
        if self._is_refused():
            self._link.analyzer.tracker.strangers.unanswered_hello(self._link)
        if self.carried is not None:
            self.carried.close()
        self.shed()
        client, server = self._fronts
        certified: bool | None = None
        if client.sent_certificate:
            certified = True
        elif client.encrypted and server.certificate is not None:
            certified = False  # all of a TLS 1.2 handshake was seen, and no certificate of the client's in it
        self.connection.tls = {
            "version": server.version_name,
            "cipher": server.cipher,
            "server_name": client.server_name,
            "alpn": server.protocol,
            "alpn_offered": client.offered,
            "client_certificate": certified,
            "client_certificate_names": client.certificate if certified else None,
            "server_certificate_names": server.certificate,
            "alert": _alert(client, server) or self._encrypted_alert(client),
            "decrypted": self.carried is not None,
        }

    def _is_refused(self) -> bool:
        """Whether the server closed the connection without a word to the client's hello."""
        link = self._link
        broker, parting = link.broker, link.parting
        silent = broker.bytes == 0 and broker.unseen is None and broker.syn_seq >= 0
        return silent and self._fronts[0].hello and parting is not None and parting[0] == broker.flow

    def _encrypted_alert(self, client: Front) -> dict[str, Any] | None:
        """In TLS 1.3 alerts are encrypted: one is all that fits into what a client sent that is no Finished, and what a
        server sent after the client's that is no session ticket."""
        mine, other, parting = self._link.client, self._link.broker, self._link.parting
        whole = mine.unseen is None and mine.syn_seq >= 0 and other.unseen is None
        if parting is None or not whole or not client.encrypted or self._fronts[1].version_name != "TLSv1.3":
            return None
        if 0 < mine.bytes - client.clear_bytes < FINISHED_BYTES:
            return {"sender": "client", "description": ENCRYPTED}
        if parting[0] == other.flow and 0 < other.bytes - self._answered_bytes < FINISHED_BYTES:
            return {"sender": "broker", "description": ENCRYPTED}
        return None


def _alert(client: Front, server: Front) -> dict[str, Any] | None:
    for sender, front in (("client", client), ("broker", server)):
        if front.alert is not None:
            return {"sender": sender, "description": front.alert}
    return None


def client_of(half: Half, offset: int) -> Half | None:
    """The client, when the record at ``offset`` of the half's run is a hello."""
    data = half.run.data
    if len(data) <= offset + RECORD_HEADER_BYTES or data[offset] != HANDSHAKE:
        return None
    message = data[offset + RECORD_HEADER_BYTES]
    if message == CLIENT_HELLO:
        return half
    return half.peer if message == SERVER_HELLO else None
