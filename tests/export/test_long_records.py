"""Records that are long, of bytes that take six characters each: an export holds their text once."""

from __future__ import annotations

from pathlib import Path
from struct import pack

import pytest

from tests.support.capture_files import save
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response
from tests.support.encoding import encode_record_set
from tests.support.made_up_bodies import batch
from tests.support.resident import resident

SIZE = 20_000_000

#: Bytes of memory for each byte of the record: the byte itself, its six characters, and what an export takes of any
#: capture. JSON took 18 and 30 of them once, CSV, which has no text, 14.
MOST = {"jsonl": 9, "json": 9, "csv": 9}


@pytest.fixture
def zeros(tmp_path: Path) -> str:
    """A Produce of one record of twenty million zeros in gzip, and traffic behind it."""
    records = encode_record_set([{**batch(bytes(SIZE)), "attributes": 1}])
    body = pack(">hhii", -1, -1, 1000, 1) + b"\0\1t" + pack(">iii", 1, 0, len(records)) + records
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(request(0, 3, 2, body)).down(response(2, pack(">i", 1) + b"\0\1t" + pack(">iihqqi", 1, 0, 0, 0, -1, 0)))
    for number in range(3, 9):
        wire.up(heartbeat(number)).down(heartbeat_response(number))
    return str(save(tmp_path / "zeros.pcap", wire))


@pytest.mark.slow
@pytest.mark.parametrize("form", MOST)
def test_the_text_of_a_long_record_is_held_once(form: str, zeros: str, tmp_path: Path) -> None:
    """Measured in a process of its own."""
    out = tmp_path / f"out.{form}"
    program = (
        f"with suppress(SystemExit): main(['export', {zeros!r}, '-O', {str(out)!r}, '--max-decompressed', '64MB'])"
    )
    grown, _ = resident("from contextlib import suppress\nfrom kwiresniff.cli.main import main", program)
    assert grown < MOST[form] * SIZE, f"{grown / SIZE:.1f} bytes"
    assert form == "csv" or out.read_bytes().count(b"\\u0000") == SIZE
