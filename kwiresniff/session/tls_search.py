"""The session of TLS 1.3 to which a record belongs whose handshake is not in the capture, found by trial.

A record opens under one secret and one number only. Sources: RFC 8446 (sections 5.2, 5.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from kwiresniff.base.tls_secrets import TRAFFIC_SECRETS, TlsSecrets
from kwiresniff.session.tls_cipher import RecordCipher
from kwiresniff.session.tls_suites import suite_of, tls13_suites

#: Trials for one connection, a few microseconds each: secrets, suites and record numbers.
MAX_SEARCH_TRIALS: Final = 65_536
#: Records of a connection that are tried: a client and a broker have sent fewer before they send application data.
MAX_SEARCHED_RECORDS: Final = 16
#: Numbers that are tried for every session first.
FEW_NUMBERS: Final = 16
#: Sessions that are tried, the newest.
MAX_SEARCHED_SESSIONS: Final = 1024


class Found(NamedTuple):
    """The session of a record: client's random, suite, its sender's role (0 the client), and its number."""

    client_random: bytes
    suite: int
    role: int
    number: int


def find_session(
    secrets: TlsSecrets, client_randoms: Sequence[bytes], header: bytes, body: bytes, trials: int, *, first: bool
) -> tuple[Found | None, int]:
    """The session of a record, or None, and the ``trials`` used: all for the ``first`` record, few for later ones,
    which may be the first under their keys.
    """
    from kwiresniff.session.tls_ciphers import tls13_cipher

    candidates: list[tuple[bytes, int, int, RecordCipher]] = []
    for client_random in client_randoms[:MAX_SEARCHED_SESSIONS]:
        for role, label in enumerate(TRAFFIC_SECRETS):
            secret = secrets.secret(label, client_random) or b""
            for number in tls13_suites(secret):
                suite = suite_of(number)
                assert suite is not None
                candidates.append((client_random, number, role, tls13_cipher(suite, secret)))
    taken = 0
    most = trials // max(len(candidates), 1) if first else FEW_NUMBERS
    for least, end in ((0, FEW_NUMBERS), (FEW_NUMBERS, most)):
        for client_random, suite_number, role, cipher in candidates:
            for number in range(least, end):
                if taken >= trials:
                    return None, taken
                taken += 1
                if cipher.open(number, header, body) is not None:
                    return Found(client_random, suite_number, role, number), taken
    return None, taken
