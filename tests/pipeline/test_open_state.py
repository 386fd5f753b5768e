"""What a batch leaves open of TLS: connections that go on in the next file, and no secret of theirs."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

from kwiresniff.capture import open_captures, with_decryption
from kwiresniff.model import Event, Exchange
from kwiresniff.pipeline.open_state import Batch, BatchReading
from kwiresniff.pipeline.plan import file_at
from kwiresniff.pipeline.unit_reader import Settings
from tests.support.capture_files import pcap
from tests.support.events import analyze
from tests.support.paths import CAPTURES

IDLE_NS = 3600 * 10**9


def said(events: list[Event]) -> list[str]:
    found = [one for one in events if isinstance(one, Exchange)]
    return sorted(f"{one.connection.id} {one.api} {one.correlation_id} {one.outcome}" for one in found)


def test_decryption_goes_on_from_file_to_file_and_the_state_has_no_secret(tmp_path: Path) -> None:
    """The recording cut into seven files: what is told is what the whole of it tells."""
    keylog = CAPTURES / "keys" / "java-tls.log"
    whole = with_decryption(open_captures([str(CAPTURES / "java-tls.pcap")]), str(keylog))
    segments = list(whole)
    expected = said(list(analyze(segments, tls_secrets=whole.tls_secrets)))
    secrets = [bytes.fromhex(line.split(":")[-1].split()[-1]) for line in keylog.read_text().splitlines()]
    settings, before, found = Settings(keylog=str(keylog)), None, []
    step = len(segments) // 7 + 1
    for number, start in enumerate(range(0, len(segments), step)):
        path = tmp_path / f"{number}.pcap"
        path.write_bytes(pcap(segments[start : start + step]))
        batch = Batch("one", number, (file_at(str(path)),), finish=start + step >= len(segments))
        reading = BatchReading(batch, settings, IDLE_NS, before)
        found += list(reading.events())
        about, state = reading.state()
        before = json.loads(json.dumps(about)), state
        plain = zlib.decompress(state)
        assert not any(secret in plain or secret.hex().encode() in plain for secret in secrets)
    assert len(expected) == 31
    assert said(found) == expected
