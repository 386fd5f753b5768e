from __future__ import annotations

import pytest

from kwiresniff.codec.headers import decode_request_header, decode_response_header
from kwiresniff.errors import DecodeError

CONTROLLED_SHUTDOWN_V0 = bytes.fromhex("0007 0000 00000005")
METADATA_V1 = bytes.fromhex("0003 0001 0000002a 0003 6b6361")
METADATA_V1_NO_CLIENT = bytes.fromhex("0003 0001 ffffffff ffff")
METADATA_V9 = bytes.fromhex("0003 0009 0000002a 0003 6b6361 01 00 02 beef")


@pytest.mark.parametrize(
    ("frame", "header"),
    [
        (CONTROLLED_SHUTDOWN_V0, (7, 0, 5, None, 8, 0)),
        (METADATA_V1, (3, 1, 42, "kca", 13, 1)),
        (METADATA_V1_NO_CLIENT, (3, 1, -1, None, 10, 1)),
        (METADATA_V9, (3, 9, 42, "kca", 18, 2)),
    ],
)
def test_request_headers_of_each_version(frame: bytes, header: tuple[object, ...]) -> None:
    assert decode_request_header(frame + b"body") == header
    for cut in range(len(frame)):
        with pytest.raises(DecodeError) as caught:
            decode_request_header(frame[:cut])
        assert caught.value.code in ("truncated", "bad_array_count")
        assert caught.value.offset is not None


def test_a_client_id_of_an_impossible_length_or_text_is_refused() -> None:
    for tail, code in (("fffe", "bad_length"), ("7fff 61", "truncated"), ("0002 c328", "invalid_utf8")):
        with pytest.raises(DecodeError) as caught:
            decode_request_header(bytes.fromhex("0003 0001 00000001" + tail))
        assert caught.value.code == code


def test_response_headers_of_each_version() -> None:
    assert decode_response_header(bytes.fromhex("0000002a 00"), 0) == (42, 4)
    assert decode_response_header(bytes.fromhex("0000002a 00"), 1) == (42, 5)
    assert decode_response_header(bytes.fromhex("0000002a 01 07 01 aa 55"), 1) == (42, 8)
    for frame, version in (("000000", 0), ("0000002a", 1), ("0000002a 01 07 7f", 1), ("0000002a ff", 1)):
        with pytest.raises(DecodeError):
            decode_response_header(bytes.fromhex(frame), version)
