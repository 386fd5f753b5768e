"""What acts on a terminal is not written as it came."""

from __future__ import annotations

import csv
import io
import json
import unicodedata

import pytest

from kwiresniff.export.encode import json_line
from kwiresniff.export.flat import CsvWriter
from tests.support.exchanges import exchange

#: C0 and C1 controls by Unicode's own category, and the marks that Unicode lists as Bidi_Control.
CONTROLS = [chr(code) for code in range(0xA0) if unicodedata.category(chr(code)) == "Cc"]
BIDI = list("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@pytest.mark.parametrize("key", [b"text", b"\xff"], ids=["quick", "careful"])
def test_json_escapes_what_acts_and_means_the_same(key: bytes) -> None:
    text = "".join(["grün", *CONTROLS, *BIDI, "\u2028日本"])
    line = json_line({"key": key, "client_id": text, text: 1}).decode()
    assert json.loads(line)["client_id"] == text
    assert not set(line[:-1]) & {*CONTROLS, *BIDI, "\u2028"} - {"\x7f"}  # DEL moves nothing
    assert "grün" in line
    assert "日本" in line


@pytest.mark.parametrize("sign", ["=", "+", "-", "@", "\t", "\n", "\r", "\uff1d"])
def test_csv_has_no_cell_that_a_spreadsheet_calculates(sign: str) -> None:
    """Only the first character counts, and the rest of the cell is as it was sent."""
    rest = 'HYPERLINK("http://x","a-b=c")'
    out = io.BytesIO()
    writer = CsvWriter(out)
    writer.write(exchange(client_id=sign + rest))
    writer.close()
    (row,) = csv.DictReader(io.StringIO(out.getvalue().decode()))
    code = ord(sign)
    assert row["client_id"] == (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}") + rest
    assert row["api_key"].isdecimal()


def test_csv_escapes_what_acts_and_leaves_the_rest() -> None:
    out = io.BytesIO()
    writer = CsvWriter(out)
    writer.write(exchange(client_id="a\x1b[31m\x9b1m\u202eb\tc\nd\rgrün \\x"))
    writer.close()
    (row,) = csv.DictReader(io.StringIO(out.getvalue().decode()))
    assert row["client_id"] == "a\\x1b[31m\\x9b1m\\u202eb\tc\nd\\x0dgrün \\x"
