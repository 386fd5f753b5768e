"""Lines of key logs to secrets, by the names that sessions have on the wire."""

from __future__ import annotations

import pytest

from kwiresniff.base import tls_secrets
from kwiresniff.base.tls_secrets import TlsSecrets

RANDOM, OTHER = bytes([0xAB]) * 32, bytes([0xCD]) * 32


def secrets(lines: str) -> TlsSecrets:
    found = TlsSecrets()
    found.add(lines.encode())
    return found


def test_a_session_of_tls_1_2_is_known_by_its_id_too() -> None:
    """As agents in Java write it, in capitals; half a byte is no id."""
    found = secrets(
        f"RSA Session-ID:{RANDOM.hex().upper()} Master-Key:{'0' * 96}\nRSA Session-ID:abc Master-Key:{'0' * 96}\n"
    )
    assert found.master(OTHER, RANDOM) == bytes(48)
    assert found.master(OTHER, OTHER) is None
    assert found.master(b"", b"") is None


def test_lines_end_as_they_do_elsewhere() -> None:
    found = secrets(f"# comment\r\nCLIENT_RANDOM {RANDOM.hex()} {'0' * 96}\r\n")
    assert found.master(RANDOM, b"") == bytes(48)


def test_the_lines_of_one_session_are_given_back() -> None:
    """Those that decrypt it, of those that were there; labels that decrypt nothing are left out."""
    wanted = [
        f"CLIENT_HANDSHAKE_TRAFFIC_SECRET {RANDOM.hex()} {'1' * 64}",
        f"CLIENT_TRAFFIC_SECRET_0 {RANDOM.hex()} {'2' * 64}",
    ]
    others = [f"EXPORTER_SECRET {RANDOM.hex()} {'3' * 64}", f"CLIENT_TRAFFIC_SECRET_0 {OTHER.hex()} {'4' * 64}"]
    found = secrets("\n".join([*wanted, *others]) + "\n")
    assert found.lines(RANDOM) == wanted
    by_id = f"RSA Session-ID:{OTHER.hex()} Master-Key:{'5' * 96}"
    assert secrets(by_id + "\n").lines(RANDOM, OTHER) == [by_id]


def test_secrets_are_not_shown_by_accident() -> None:
    assert "22" not in repr(secrets(f"CLIENT_RANDOM {RANDOM.hex()} {'2' * 96}\n"))


def test_the_newest_sessions_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tls_secrets, "MAX_SESSIONS", 3)
    names = [bytes([number]) * 32 for number in range(5)]
    found = secrets("".join(f"CLIENT_RANDOM {name.hex()} {'0' * 96}\n" for name in names))
    assert [found.master(name, b"") is not None for name in names] == [False, False, True, True, True]
