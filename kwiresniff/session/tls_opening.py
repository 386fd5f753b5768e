"""The numbers and keys of one direction's records, found again by trial where records are missing.

A record opens under one key and one number only, so trials are certain. In TLS 1.3 the same trials show where the
secret of the handshake gives way to that of application data, and where a key was updated (RFC 8446, sections 5.3 and
7.2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import ClassVar, Final

from kwiresniff.base.tls_record import RECORD_HEADER_BYTES
from kwiresniff.session.tls_cipher import RecordCipher
from kwiresniff.session.tls_records import Record
from kwiresniff.session.tls_session import HANDSHAKE_KEY
from kwiresniff.stream.frame_handler import LOST_GAP

#: Trials at the beginning and at most; those earned by records that open, and by others. Some microseconds each.
MAX_TRIALS: Final = 65_536
TRIALS_PER_OPENED: Final = 16
TRIALS_PER_CLOSED: Final = 2
#: The least bytes of a record with anything in it: header, type, tag of 8.
MIN_SEALED_BYTES: Final = 14
#: Record numbers that are tried for one record.
MAX_NUMBERS: Final = 16_384


class RecordOpener:
    """Opens records in order, under ``key`` with numbers from ``low`` to ``low + slack``. ``lost_bytes`` passed since
    the last opened one, -1 if it is unknown how much was data; ``opened`` counts them.
    """

    STATE: ClassVar[tuple[str, ...]] = (
        "_begins_late", "_has_opened", "_next", "_nonce", "_opened_before", "_trials", "key", "lost_bytes", "lost_code",
        "low", "opened", "slack", "updates",
    )  # fmt: skip
    #: Made again from the secrets, which no state holds.
    MADE_AGAIN: ClassVar[tuple[str, ...]] = ("_ciphers", "_make")
    __slots__ = (*STATE, *MADE_AGAIN)

    def __init__(self) -> None:
        self.key = HANDSHAKE_KEY
        self.low = 0
        self.slack = 0
        self.lost_bytes = 0
        self.lost_code = ""
        self.opened = 0
        self.updates = False
        self._begins_late = False  # records may precede the capture
        self._has_opened = False  # anything under this key
        self._next = 0  # the number behind the last record that opened
        self._nonce = -1
        self._trials = MAX_TRIALS
        self._opened_before = 0  # when the trials were last earned
        self._ciphers: dict[int, RecordCipher | None] = {}
        self._make: Callable[[int], RecordCipher | None] | None = None

    def use(self, make: Callable[[int], RecordCipher | None], *, updates: bool) -> None:
        """Has the ciphers by the number of their key; None for one that is not known. With ``updates`` each key may be
        followed by another."""
        self._make = make
        self.updates = updates
        self._ciphers = {}

    @property
    def exhausted(self) -> bool:
        """Whether there are no trials left."""
        return self._trials <= 0

    def lose(self, record: Record) -> None:
        """Counts a lost record, or several."""
        self.lost_bytes += record.span
        if record.missing:
            self.lost_code = record.code if self.lost_code in ("", record.code) else LOST_GAP
        if record.known:
            self.low += 1  # if it was encrypted
        else:
            self.slack += record.span // MIN_SEALED_BYTES

    def take_back(self, record: Record) -> None:
        """The last record, which did not open, is none of this direction's under these keys."""
        self.slack -= 1
        self.lost_bytes -= len(record.header) + len(record.body)

    def messages(self, record: Record) -> bytes:
        """The handshake messages in the last record that opened, empty where there are none."""
        cipher = self._cipher(self.key)
        return b"" if cipher is None else cipher.handshake(self.low - 1, record.header, record.body)

    def begin(self, key: int, slack: int = 0) -> None:
        """The next record is one of the first under this key: up to ``slack`` of them precede the capture."""
        self.key, self.low, self.slack, self._next = key, 0, slack, 0
        self.lost_bytes = 0
        self._begins_late = slack > 0
        self._has_opened = False

    def open(self, record: Record) -> tuple[bytes, int, int, str] | None:
        """What a record carries; how much application data was lost before it, -1 where that is not known; how many
        bytes on the wire that was, 0 where the capture begins later; and why. None for one that does not open.
        """
        header, body = record.header, record.body
        cipher = self._cipher(self.key)
        if cipher is not None:
            data = cipher.open(self.low, header, body)
            if data is not None:
                return self._found(cipher, self.key, self.low, body, data)
        earned = (self.opened - self._opened_before) * TRIALS_PER_OPENED + TRIALS_PER_CLOSED
        self._trials = min(self._trials + earned, MAX_TRIALS)
        self._opened_before = self.opened
        for key, number in self._candidates(body):
            cipher = self._cipher(key)
            if cipher is None:
                continue
            self._trials -= 1
            data = cipher.open(number, header, body)
            if data is not None:
                return self._found(cipher, key, number, body, data)
            if self._trials <= 0:
                break
        self.slack += 1
        self.lost_bytes += len(header) + len(body)
        return None

    def _candidates(self, body: bytes) -> Iterator[tuple[int, int]]:
        """Keys and numbers that a record may have, the likely ones first."""
        cipher = self._cipher(self.key)
        if cipher is not None:
            if cipher.counts and self._nonce >= 0 and self.slack:
                counted = self._next - 1 + int.from_bytes(body[:8], "big") - self._nonce
                if self.low < counted <= self.low + self.slack:
                    yield self.key, counted
            for number in range(self.low + 1, self.low + 1 + min(self.slack, MAX_NUMBERS)):
                yield self.key, number
            for number in range(self._next, min(self.low, self._next + MAX_NUMBERS)):
                yield self.key, number
        if self.updates:
            lost = min(self.slack + self.low - self._next, MAX_NUMBERS)
            for number in range(lost + 1):
                yield self.key + 1, number
            for number in range(lost):
                yield self.key + 2, number

    def _cipher(self, key: int) -> RecordCipher | None:
        if key not in self._ciphers:
            if len(self._ciphers) > 4:
                self._ciphers = {}
            assert self._make is not None
            self._ciphers[key] = self._make(key)
        return self._ciphers[key]

    def _found(
        self, cipher: RecordCipher, key: int, number: int, body: bytes, data: bytes
    ) -> tuple[bytes, int, int, str]:
        """Notes the place of a record that opened; returns what ``open`` does."""
        lost, span, code = 0, self.lost_bytes, self.lost_code or LOST_GAP
        if span or self._begins_late:
            lost = self._lost(cipher, key, number)
            self.lost_bytes, self._begins_late = 0, False
            self.lost_code = ""
        if cipher.counts:
            self._nonce = int.from_bytes(body[:8], "big")
        if key != self.key:
            self._ciphers = {key: cipher}  # no record under an earlier key follows
        self.key, self.low, self.slack, self._next = key, number + 1, 0, number + 1
        self._has_opened = True
        self.opened += 1
        return data, lost, span, code

    def _lost(self, cipher: RecordCipher, key: int, number: int) -> int:
        """The application data among what was lost before a record that opened; -1 where that is not known."""
        records = number - self._next
        is_first_key = not self._has_opened or self.key == HANDSHAKE_KEY
        if number == 0 and is_first_key and (key != self.key or not self._has_opened):
            return 0  # the first of all: what was lost stands before it
        if key != self.key or not self._has_opened or cipher.overhead < 0:
            return -1
        lost = self.lost_bytes - records * (RECORD_HEADER_BYTES + cipher.overhead)
        return lost if lost >= 0 else -1
