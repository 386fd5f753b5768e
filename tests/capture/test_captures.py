"""Opening captures: what is found, in which order, and what is said about what is no capture."""

from __future__ import annotations

import struct

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.errors import CaptureError

HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)


def test_a_header_without_packets_is_a_capture(tmp_path):
    (tmp_path / "a.pcap").write_bytes(HEADER)
    captures = open_captures([str(tmp_path / "a.pcap")])
    assert list(captures) == []
    assert captures.packets == 0 and captures.problems == []


def test_text_is_told_from_a_capture(tmp_path):
    (tmp_path / "a.pcap").write_text("hello\n")
    with pytest.raises(CaptureError, match="looks like text"):
        open_captures([str(tmp_path / "a.pcap")])
