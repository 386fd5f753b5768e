"""Decryption of one TLS connection: its records in, what they carry out, as soon as its secrets are known.

Until then records wait, within limits. Renegotiation (RFC 5246, section 7.4.1.1) and early data that the server takes
(RFC 8446, section 2.3) are refused by name: the rest of the connection stays encrypted. Early data that it refuses is
passed over, as the server does (section 4.2.10): the client sends it again.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, Final

from kwiresniff.base.tls_record import APPLICATION_DATA, CHANGE_CIPHER_SPEC
from kwiresniff.base.tls_secrets import HANDSHAKE_SECRETS
from kwiresniff.session.tls_handshake import TLS_1_2, TLS_1_3, HandshakeParser, takes_early_data
from kwiresniff.session.tls_opening import MAX_NUMBERS, RecordOpener
from kwiresniff.session.tls_records import Record, RecordReader
from kwiresniff.session.tls_search import MAX_SEARCH_TRIALS, MAX_SEARCHED_RECORDS, Found, find_session
from kwiresniff.session.tls_session import FIRST_KEY, HANDSHAKE_KEY, TlsSession
from kwiresniff.stream.frame_handler import LOST_GAP

if TYPE_CHECKING:
    from mypy_extensions import i64

    from kwiresniff.session.services import ConnectionServices

#: Ciphertext of a connection that waits for its secrets: clients write those within milliseconds.
MAX_WAITING_BYTES = 1 << 20
#: Of a connection without its handshake one side may have sent so many times as many records as the other.
OTHER_NUMBERS: Final = 16
#: A record that waits takes so much memory beside its bytes.
RECORD_BYTES: Final = 400

_SEALED: Final = bytes([APPLICATION_DATA])


class Plaintext:
    """The data of a ``record``, None at the end of a ``side``, behind ``lost`` bytes of plaintext (-1 if unknown),
    ``span`` bytes on the wire, for the reason ``code``.
    """

    __slots__ = ("code", "data", "lost", "record", "side", "span")

    def __init__(self, side: i64, record: Record | None, data: bytes, lost: i64, span: i64, code: str) -> None:
        self.side = side
        self.record = record
        self.data = data
        self.lost = lost
        self.span = span
        self.code = code


class TlsDecryption:
    """The records of a connection; ``parsers`` have the clear part, client's first. ``refused`` says why decryption
    ended, ``dropped_bytes`` were too many to wait for secrets.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "_changes", "_ciphered", "_in_clear", "_is_full", "_passed_early", "_queue", "_takes_early", "client_side",
        "dropped_bytes", "openers", "parsers", "readers", "refused", "services", "session", "waiting_bytes",
    )  # fmt: skip
    #: Made again from the secrets, which no state holds.
    MADE_AGAIN: ClassVar[tuple[str, ...]] = ("_searched", "_seen_changes", "is_open")
    __slots__ = (*STATE, *MADE_AGAIN)

    def __init__(
        self, services: ConnectionServices, client_side: int, parsers: tuple[HandshakeParser, HandshakeParser]
    ) -> None:
        self.services = services
        self.client_side = client_side
        self.parsers = parsers
        self.readers = (RecordReader(), RecordReader())
        self.openers = (RecordOpener(), RecordOpener())
        self.session = TlsSession()
        self.refused = ""
        self.is_open = False
        self.dropped_bytes = 0
        self.waiting_bytes = 0
        self._queue: deque[tuple[int, tuple[Any, ...]]] = deque()  # side, and the members of a record
        self._changes = [0, 0]  # ChangeCipherSpec by side
        self._ciphered = [False, False]  # what follows is encrypted, in TLS 1.2
        self._in_clear = [True, True]  # nothing but handshake messages so far
        self._is_full = False
        self._takes_early: bool | None = None  # whether the server takes early data, once that is known
        self._passed_early = False
        self._searched = 0  # records by which the session was looked for
        self._seen_changes = -1  # of the secrets, when they were last looked for

    # -- bytes --------------------------------------------------------------------------------------------------

    def feed(self, side: int, packet: i64, ns: int, buffer: bytes, start: i64, end: i64) -> list[Plaintext]:
        """Takes ``buffer[start:end]``, the next bytes of a side in order."""
        return self._take(side, self.readers[side].feed(packet, ns, buffer, start, end))

    def gap(self, side: int, packet: int, ns: int, missing: int, code: str) -> list[Plaintext]:
        """The next ``missing`` bytes of a side are not in the capture."""
        return self._take(side, self.readers[side].gap(packet, ns, missing, code))

    def look(self) -> list[Plaintext]:
        """Looks for secrets that have come since; returns what they decrypt of what waits."""
        found: list[Plaintext] = []
        if not self.is_open and not self.refused:
            self._look(found)
        return found

    def _take(self, side: int, records: list[Record]) -> list[Plaintext]:
        found: list[Plaintext] = []
        for record in records:
            if self.refused:
                break
            if self.is_open:
                self._process(side, record, found)
            else:
                self._wait(side, record, found)
        return found

    # -- waiting ------------------------------------------------------------------------------------------------

    def _wait(self, side: int, record: Record, found: list[Plaintext]) -> None:
        if self._in_clear[side]:
            if record.header and record.header[0] not in (CHANGE_CIPHER_SPEC, APPLICATION_DATA):
                return  # the parsers have read it
            self._in_clear[side] = False
        if self._is_full:
            self._pass_by(side, record)
        else:
            self._queue.append((side, record.members()))
            size = len(record.body) + RECORD_BYTES
            self.waiting_bytes += size
            self.services.tls_waiting_bytes += size
            self.services.budget.held += size
        self._look(found)
        if self.waiting_bytes > MAX_WAITING_BYTES:
            self.drop()

    def held_bytes(self) -> int:
        """Memory of what waits, and of records that are not complete."""
        return self.waiting_bytes + sum(reader.held_bytes for reader in self.readers)

    def drop(self) -> None:
        """Drops what waits, and what comes until there are secrets: it is lost, but its records are counted."""
        self._is_full = True
        for side, record in self._queue:
            self._pass_by(side, Record(*record))
        self._empty()

    def _empty(self) -> None:
        self._queue.clear()
        self.services.tls_waiting_bytes -= self.waiting_bytes
        self.waiting_bytes = 0

    def _pass_by(self, side: int, record: Record) -> None:
        """Counts a record that is not decrypted."""
        if record.header:
            if self._is_clear(side, record.header[0]):
                return
            size = len(record.header) + len(record.body)
            self.dropped_bytes += size
            record = Record(record.first_packet, record.first_ns, record.packet, record.ns, b"", b"", size)
        self.openers[side].lose(record)

    # -- secrets ------------------------------------------------------------------------------------------------

    def _look(self, found: list[Plaintext]) -> None:
        """Begins to decrypt, if everything for it is there."""
        secrets = self.services.tls_secrets
        client, server = self.parsers
        if self._seen_changes == secrets.changes and (self.session.version or (client.hello and server.hello)):
            return
        if self.session.version == 0 and client.hello and server.hello:
            self.refused = self.session.learn(client, server)
            if self.refused:
                self._empty()
                return
            if self.session.version == TLS_1_2:
                self._note_resumption()
        if self.session.version:
            self._seen_changes = secrets.changes
            if self.session.lacks(secrets):
                return
        elif not self._is_missed() or not self._search():
            return
        makers = self.session.ciphers(secrets)
        for side, opener in enumerate(self.openers):
            opener.use(makers[0 if side == self.client_side else 1], updates=self.session.version == TLS_1_3)
        self.is_open = True
        waiting = list(self._queue)
        self._empty()
        for side, record in waiting:
            if not self.refused:
                self._process(side, Record(*record), found)

    def _note_resumption(self) -> None:
        self.session.note_resumption(*self.parsers, self.services.tls_resumptions)

    def _is_missed(self) -> bool:
        """Whether a side sends what is encrypted and no hello of its was seen."""
        for side, parser in ((self.client_side, self.parsers[0]), (1 - self.client_side, self.parsers[1])):
            if parser.done and not parser.hello and not self._in_clear[side]:
                return True
        return False

    def _search(self) -> bool:
        """Finds the session of a connection whose handshake is not in the capture, by the first records that wait."""
        services, client_random = self.services, self.parsers[0].random
        secrets = services.tls_secrets
        if self._seen_changes != secrets.changes:
            self._seen_changes = secrets.changes
            self._searched = 0
        randoms = [client_random] if client_random else secrets.randoms()
        sealed = [one for one in self._queue if one[1][4][:1] == _SEALED][:MAX_SEARCHED_RECORDS]
        for side, record in sealed[self._searched :] if randoms else ():
            one = Record(*record)
            trials = min(MAX_SEARCH_TRIALS, services.tls_trials)
            is_first = self._searched == 0
            found, taken = find_session(secrets, randoms, one.header, one.body, trials, first=is_first)
            self._searched += 1
            services.tls_trials -= taken
            if found is not None:
                self._begin_without_handshake(side, found)
                return True
        return False

    def _begin_without_handshake(self, side: int, found: Found) -> None:
        self.session.begin_blind(found.client_random, found.suite)
        self.client_side = side if found.role == 0 else 1 - side
        for opener in self.openers:
            opener.begin(FIRST_KEY, min(OTHER_NUMBERS * (found.number + OTHER_NUMBERS), MAX_NUMBERS))
        self.openers[side].low, self.openers[side].slack = found.number, 0

    # -- records ------------------------------------------------------------------------------------------------

    def _is_clear(self, side: int, kind: int) -> bool:
        """Whether a record of this type is not encrypted; counts ChangeCipherSpec, which means nothing in TLS 1.3."""
        if self.session.version != TLS_1_2:
            return kind != APPLICATION_DATA
        if kind != CHANGE_CIPHER_SPEC:
            return not self._ciphered[side]
        self._changes[side] += 1
        if self._changes[side] == 1:
            self._ciphered[side] = True
            self.openers[side].begin(HANDSHAKE_KEY)
            self._note_resumption()  # a session ticket stands before it
        return True

    def _process(self, side: int, record: Record, found: list[Plaintext]) -> None:
        opener, header = self.openers[side], record.header
        self._in_clear[side] = False
        if not header:
            opener.lose(record)
            self._ciphered[side] = True  # it may have been where that begins
            return
        if (header[0] != APPLICATION_DATA or self.session.version == TLS_1_2) and self._is_clear(side, header[0]):
            if self._changes[side] > 1:
                self._refuse("its session was renegotiated")
            return
        opened = opener.open(record)
        if self.parsers[0].early_data and opener.opened <= 1:
            self._look_for_early(side, record, opened is not None)
        if opened is not None and not self.refused:
            data, lost, span, code = opened
            if data or lost:
                found.append(Plaintext(side, record, data, lost, span, code))
        elif opener.exhausted:
            self._refuse("its keys do not fit, or too much of it is missing from the capture")

    def _look_for_early(self, side: int, record: Record, opened: bool) -> None:
        """Learns from a record about early data that the client offers, up to the first ``opened`` of each side."""
        opener, refuses = self.openers[side], self.parsers[1].asks_again
        if side != self.client_side:
            if opened and opener.opened == 1 and opener.key == HANDSHAKE_KEY:
                self._takes_early = takes_early_data(opener.messages(record))
                if self._takes_early:
                    self._refuse(_EARLY)
        elif not opened and not opener.opened:
            label = HANDSHAKE_SECRETS[1]
            if not refuses and self.services.tls_secrets.secret(label, self.session.names[0]) is None:
                self._refuse(f"{_EARLY}, and the keys lack {label}, which tells whether the server took it")
                return
            self._passed_early = True
            opener.take_back(record)
        elif opened and opener.opened == 1 and self._passed_early and self._takes_early is not False and not refuses:
            self._refuse(f"{_EARLY}, and nothing tells whether the server took it")

    def _refuse(self, reason: str) -> None:
        self.refused = reason
        self._empty()

    # -- the end ------------------------------------------------------------------------------------------------

    def end(self) -> list[Plaintext]:
        """The last plaintext: lost bytes behind which no record opened."""
        found = self.look()
        self._empty()
        for side, opener in enumerate(self.openers):
            if opener.lost_bytes and opener.opened:
                found.append(Plaintext(side, None, b"", -1, opener.lost_bytes, opener.lost_code or LOST_GAP))
        return found

    def reason(self) -> str:
        """Why the connection is not decrypted, or not all of it; empty where it is."""
        if self.refused:
            return self.refused
        if not self.is_open:
            label = self.session.lacks(self.services.tls_secrets) if self.session.version else ""
            if label:
                return f"the keys lack {label} of client random {self.session.names[0].hex()}"
            return "" if all(self._in_clear) else _MISSED
        if self._passed_early and not self.openers[self.client_side].opened:
            return _EARLY
        if self.dropped_bytes:
            return f"{self.dropped_bytes} bytes came before their keys, and no more than {MAX_WAITING_BYTES} wait"
        return ""


_EARLY: Final = "it begins with early data (0-RTT)"
_MISSED: Final = (
    "its handshake is not in the capture, without which TLS 1.2 cannot be decrypted, and no key of TLS 1.3 fits"
)
