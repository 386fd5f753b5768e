"""Key schedule and record layer of TLS 1.3 by the traces of RFC 8448."""

from __future__ import annotations

import tomllib

import pytest

from kwiresniff.base.tls_secrets import HANDSHAKE_SECRETS, TRAFFIC_SECRETS, TlsSecrets
from kwiresniff.session.tls_ciphers import expand_label, tls13_cipher
from kwiresniff.session.tls_handshake import HandshakeParser
from kwiresniff.session.tls_opening import RecordOpener
from kwiresniff.session.tls_records import RecordReader
from kwiresniff.session.tls_session import TlsSession
from kwiresniff.session.tls_suites import suite_of
from tests.support.conversation import Wire, problems
from tests.support.events import analyze
from tests.support.tls_conversation import DATA

#: Of each trace the records and the values that are derived, by name.
TRACES = {
    name: {key: bytes.fromhex(value) for key, value in trace.items()}
    for name, trace in tomllib.loads((DATA / "rfc8448.toml").read_text()).items()
}
SIMPLE, RESUMED = TRACES["simple"], TRACES["resumed"]
#: What both sides send each other in both traces: 50 octets.
DATA_SENT = bytes(range(50))
#: Who sends what, in order.
SIMPLE_FLIGHTS = [
    (0, "client_hello"), (1, "server_hello"), (1, "server_flight"), (0, "client_finished"), (1, "session_ticket"),
    (0, "client_data"), (1, "server_data"), (0, "client_alert"), (1, "server_alert"),
]  # fmt: skip
RESUMED_FLIGHTS = [
    (0, "client_hello"), (0, "early_data"), (1, "server_hello"), (1, "server_flight"), (0, "end_of_early_data"),
    (0, "client_finished"), (0, "client_data"), (1, "server_data"),
]  # fmt: skip
KEYS = [
    (trace, f"{side}_{what}")
    for trace, found in TRACES.items()
    for side in ("client", "server")
    for what in ("handshake", "traffic")
    if f"{side}_{what}_key" in found
]


def key_log(trace: dict[str, bytes], *missing: str) -> TlsSecrets:
    """The secrets of a trace as a key log has them."""
    random = trace["client_hello"][11:43].hex()
    secrets = TlsSecrets()
    secrets.expected = True
    for what, labels in (("handshake", HANDSHAKE_SECRETS), ("traffic", TRAFFIC_SECRETS)):
        for side, label in zip(("client", "server"), labels, strict=True):
            if label not in missing:
                secrets.add(f"{label} {random} {trace[f'{side}_{what}_secret'].hex()}\n".encode())
    return secrets


@pytest.mark.parametrize(("trace", "name"), KEYS)
def test_keys_and_ivs_are_expanded_from_secrets(trace: str, name: str) -> None:
    """``key expanded`` and ``iv expanded``."""
    found = TRACES[trace]
    secret = found[f"{name}_secret"]
    assert expand_label("sha256", secret, "key", 16) == found[f"{name}_key"]
    assert expand_label("sha256", secret, "iv", 12) == found[f"{name}_iv"]


@pytest.mark.parametrize("step", [1, 7, 2_000])
def test_the_simple_handshake_is_decrypted(step: int) -> None:
    """Both sides' 50 octets, from the bytes of all records, however they are cut; everything opens."""
    secrets, session = key_log(SIMPLE), TlsSession()
    client, server = HandshakeParser(), HandshakeParser()
    client.feed(SIMPLE["client_hello"])
    server.feed(SIMPLE["server_hello"])
    assert session.learn(client, server) == "" and session.lacks(secrets) == ""
    readers, openers = (RecordReader(), RecordReader()), (RecordOpener(), RecordOpener())
    for opener, maker in zip(openers, session.ciphers(secrets), strict=True):
        opener.use(maker, updates=True)
    carried = [b"", b""]
    for side, name in SIMPLE_FLIGHTS[2:]:
        for at in range(0, len(SIMPLE[name]), step):
            piece = SIMPLE[name][at : at + step]
            for record in readers[side].feed(1, 1, piece, 0, len(piece)):
                opened = openers[side].open(record)
                assert opened is not None and opened[1] == 0
                carried[side] += opened[0]
    assert carried == [DATA_SENT, DATA_SENT]


def test_a_record_opens_under_its_own_number_alone() -> None:
    """The server's data are its second record under that key: the session ticket is the first."""
    suite = suite_of(0x1301)
    assert suite is not None
    cipher, record = tls13_cipher(suite, SIMPLE["server_traffic_secret"]), SIMPLE["server_data"]
    assert [cipher.open(number, record[:5], record[5:]) for number in range(3)] == [None, DATA_SENT, None]


@pytest.mark.parametrize("lacking", [(), HANDSHAKE_SECRETS])
def test_early_data_that_the_server_takes_is_refused_by_name(lacking: tuple[str, ...]) -> None:
    """Its EncryptedExtensions say so; without the secrets of the handshake nothing does."""
    wire = Wire().open()
    for side, name in RESUMED_FLIGHTS:
        wire.send(side, RESUMED[name])
    found = list(analyze(wire.close().segments, tls_secrets=key_log(RESUMED, *lacking)))
    (problem,) = [one for one in problems(found) if one.code == "not_decrypted"]
    assert "it begins with early data (0-RTT)" in problem.message
    assert ("the keys lack SERVER_HANDSHAKE_TRAFFIC_SECRET" in problem.message) is bool(lacking)
