"""How bytes read as a message: fails, unknown, left over, reads; on messages made by hand."""

from __future__ import annotations

from struct import pack

import pytest

from kwiresniff.session.readings import (
    FAILS,
    LEFT_OVER,
    READS,
    UNKNOWN,
    read_front,
    read_request,
    read_response,
    with_plain_client_id,
)
from tests.support.conversation import heartbeat, heartbeat_response, request, string


@pytest.mark.parametrize(
    ("frame", "reading"),
    [
        (heartbeat(1), READS),
        (heartbeat(1, None), READS),
        (heartbeat(1, ""), READS),
        (heartbeat(1) + b"\0", LEFT_OVER),
        (heartbeat(1)[:-1], FAILS),
        (request(18, 0, 1), READS),
        (request(18, 0, 1, b"\0\0\0\0"), LEFT_OVER),
        (request(18, 3, 1, b"\x05java\x061.2.3\x00", tags=b"\x00"), READS),
        (request(18, 3, 1, b"\x05java", tags=b"\x00"), FAILS),
        (request(12, 99, 1, tags=b"\0"), UNKNOWN),
        (request(999, 0, 1), UNKNOWN),
        (heartbeat(1)[:13], FAILS),
        (heartbeat(1)[:5], FAILS),
    ],
)
def test_a_request_reads_as_its_header_says_or_not(frame: bytes, reading: int) -> None:
    """Without its length. Bytes may be left over, none may be missing."""
    assert read_request(frame[4:]) == reading


def test_a_client_id_may_have_any_bytes() -> None:
    """Brokers take them; what it is made of does not decide how the rest reads."""
    odd = heartbeat(1, "????").replace(b"????", b"\xff\0\x80\1")[4:]
    assert read_request(odd) == READS
    assert with_plain_client_id(odd) == heartbeat(1, "????")[4:]
    assert with_plain_client_id(heartbeat(1, None)[4:]) == heartbeat(1, None)[4:]


def test_the_front_of_a_request_reads_as_far_as_it_goes() -> None:
    """Cut anywhere it reads, unless something in it does not, or may not."""
    whole = heartbeat(1)[4:]
    assert {read_front(whole[:at]) for at in range(14, len(whole))} == {READS}
    metadata = request(3, 0, 1, pack(">i", 1000) + string("orders") * 3)[4:]
    assert read_front(metadata) == UNKNOWN  # not so many can stand in what is there
    assert read_front(request(3, 0, 1, pack(">i", 1) + pack(">h", -1))[4:]) == FAILS
    assert read_front(request(999, 0, 1, b"abc")[4:]) == UNKNOWN


@pytest.mark.parametrize(
    ("answer", "version", "reading"),
    [
        (heartbeat_response(1), 0, READS),
        (heartbeat_response(1) + b"\0", 0, LEFT_OVER),
        (heartbeat_response(1)[:-1], 0, FAILS),
        (b"\0\0\0\0" + pack(">iihb", 1, 0, 0, 0)[:4] + b"\0" + pack(">ihb", 0, 0, 0), 4, READS),
    ],
)
def test_a_response_reads_as_that_to_a_request_of_its_version(answer: bytes, version: int, reading: int) -> None:
    """Heartbeat (12); from version 4 on with tagged fields in its header and behind its body (KIP-482)."""
    assert read_response(12, version, answer[4:]) == reading


def test_a_response_to_a_version_that_nobody_knows_is_read_as_the_nearest() -> None:
    """To an API that nobody knows it cannot be."""
    assert read_response(12, 99, (b"\0\0\0\1\0" + pack(">ihb", 0, 0, 0))) == READS
    assert read_response(999, 0, b"\0\0\0\1") == UNKNOWN


def test_a_refusal_of_api_versions_is_read_in_version_0() -> None:
    """KIP-511: error code 35 and the versions that the broker has."""
    assert read_response(18, 3, pack(">ihihhh", 1, 35, 1, 18, 0, 2)) == READS
