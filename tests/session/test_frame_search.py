"""Where a frame begins: what the bytes of a request and of a response are graded, and where they are found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from struct import pack

import pytest

from kwiresniff.session.apis import known_versions
from kwiresniff.session.frame_search import (
    _REQUEST,
    MAX_CLIENT_ID_BYTES,
    MAX_MISSED_REQUESTS,
    MAX_QUEUED_REQUESTS,
    MIN_UNFINISHED_BYTES,
    NO,
    STRONG,
    VERSIONS_AHEAD,
    WEAK,
    find_request_start,
    find_response_start,
    is_near,
    score_request_header,
)
from kwiresniff.stream.frame_reader import MAX_FRAME_BYTES, SOUND_FRAME_BYTES
from kwiresniff.stream.resync_buffer import ResyncBuffer

#: One API, 12, in versions 0 to 4; and 7, whose version 0 has no client id.
VERSIONS = {12: (0, 4), 7: (0, 3)}


def header(
    *, size: int = 40, key: int = 12, version: int = 1, correlation_id: int = 5, client: bytes | None = b"c-1"
) -> bytes:
    length = -1 if client is None else len(client)
    return pack(">ihhih", size, key, version, correlation_id, length) + (client or b"")


def frame(correlation_id: int, client: bytes | None = b"c-1", body: bytes = b"12345678") -> bytes:
    front = header(correlation_id=correlation_id, client=client)[4:] + body
    return pack(">i", len(front)) + front


def answer(correlation_id: int, body: bytes = b"12345678") -> bytes:
    return pack(">ii", 4 + len(body), correlation_id) + body


def run_of(*segments: bytes, ahead: int = 0) -> ResyncBuffer:
    run = ResyncBuffer()
    for number, data in enumerate(segments, 1):
        run.ahead = ahead
        run.feed(number, number * 1000, -1, data)
    return run


def never(*seen: object) -> bool:
    return False


def always(*seen: object) -> bool:
    return True


@pytest.mark.parametrize("size", [10, 40, SOUND_FRAME_BYTES, MAX_FRAME_BYTES - 1])
@pytest.mark.parametrize("length", [-1, 0, 1, 255, 256, MAX_CLIENT_ID_BYTES])
def test_whatever_is_graded_in_a_stream_is_looked_at_there(size: int, length: int) -> None:
    """The expression that finds the places passes over no API, version, size or client id that may be a request's."""
    client = None if length < 0 else b"c" * length
    graded = 0
    for key, (first, last) in known_versions().items():
        for version in range(first, last + VERSIONS_AHEAD + 1):
            data = header(size=size, key=key, version=version, client=client)
            if score_request_header(data, 0, known_versions()):
                graded += 1
                assert re.match(_REQUEST, data), (key, version)
    assert graded > 300 or length > size - 10


@pytest.mark.parametrize(
    ("said", "usual", "opening"),
    [
        (header(), STRONG, STRONG),
        (header(client="größer".encode()), STRONG, STRONG),
        (header(client=None), WEAK, WEAK),
        (header(client=b""), WEAK, WEAK),
        (header(client=b"a\x01b"), WEAK, WEAK),
        (header(client=b"a\0b"), NO, WEAK),
        (header(client=b"k\xfchl"), WEAK, STRONG),
        (header(version=4 + VERSIONS_AHEAD), STRONG, STRONG),
        (header(version=5 + VERSIONS_AHEAD), NO, WEAK),
        (header(version=-1), NO, NO),
        (header(key=13), NO, WEAK),
        (header(key=13, client=None), NO, NO),
        (header(key=-1), NO, NO),
        (header(size=9), NO, NO),
        (header(size=SOUND_FRAME_BYTES), STRONG, STRONG),
        (header(size=SOUND_FRAME_BYTES + 1), WEAK, WEAK),
        (header(size=SOUND_FRAME_BYTES + 1, key=13), NO, NO),
        (header(size=1 << 30 | 1), NO, NO),
        (header(size=-5), NO, NO),
        (header(size=12), NO, NO),  # the client id is longer than the frame
        (header(size=2000, client=b"c" * MAX_CLIENT_ID_BYTES), STRONG, STRONG),
        (header(size=2000, client=b"c" * (MAX_CLIENT_ID_BYTES + 1)), NO, NO),
        (header(size=12, key=7, version=0), WEAK, WEAK),
        (header(size=13, key=7, version=0), NO, NO),
        (header()[:13], NO, NO),
    ],
)
def test_a_request_header_is_graded_by_what_speaks_for_it(said: bytes, usual: int, opening: int) -> None:
    """In the middle of a stream and at its beginning."""
    assert score_request_header(b"xx" + said, 2, VERSIONS) == usual
    assert score_request_header(said, 0, VERSIONS, opening=True) == opening


def test_a_client_id_may_be_cut_off_in_the_middle_of_a_character() -> None:
    """By the end of what is there, not by its own length."""
    said = header(client="größe".encode())
    assert score_request_header(said[:17], 0, VERSIONS) == STRONG
    assert score_request_header(header(client="größe".encode()[:3]), 0, VERSIONS) == WEAK


def test_the_known_clients_request_is_found_behind_anything() -> None:
    """Its end is that of the bytes, of a segment, or the next request's beginning."""
    for before in range(0, 40, 3):
        assert find_request_start(run_of(b"?" * before + frame(1)), VERSIONS, never, known_client=True) == before
    assert find_request_start(run_of(b"??" + frame(1), b"more"), VERSIONS, never, known_client=True) == 2
    assert find_request_start(run_of(b"??" + frame(1) + frame(2) + b"?"), VERSIONS, never, known_client=True) == 2
    assert find_request_start(run_of(b"??" + frame(1) + b"??"), VERSIONS, never, known_client=True) == -1


def test_an_unknown_clients_request_is_found_when_it_is_confirmed() -> None:
    """Who confirms sees the frame, its grade, and whether it fills segments."""
    seen: list[tuple[bytes, int, bool]] = []

    def confirm(data: bytes, grade: int, fills: bool) -> bool:
        seen.append((data, grade, fills))
        return len(seen) == 3

    run = run_of(frame(1), b"?" + frame(2), frame(3, None))
    assert find_request_start(run, VERSIONS, confirm, known_client=False) == len(frame(1)) + 1 + len(frame(2))
    assert seen == [(frame(1)[4:], STRONG, True), (frame(2)[4:], STRONG, False), (frame(3, None)[4:], WEAK, True)]


def test_requests_that_join_up_with_a_confirmed_one_are_found_with_it() -> None:
    """The first of them, unless bytes lie between."""

    def confirm(data: bytes, grade: int, fills: bool) -> bool:
        return data == frame(3)[4:]

    assert find_request_start(run_of(frame(1), frame(2), frame(3)), VERSIONS, confirm, known_client=False) == 0
    apart = run_of(frame(1), b"?", frame(2), frame(3))
    assert find_request_start(apart, VERSIONS, confirm, known_client=False) == len(frame(1)) + 1


def test_an_unfinished_request_is_believed_where_a_segment_begins() -> None:
    """The known client's at once; another's when the rest is known to be missing, or when much of it is there."""
    long = pack(">i", 100_000) + header()[4:] + b"1" * 100
    assert find_request_start(run_of(b"?", long), VERSIONS, never, known_client=True) == 1
    assert find_request_start(run_of(b"?" + long), VERSIONS, never, known_client=True) == -1
    assert find_request_start(run_of(long), VERSIONS, never, known_client=False) == -1
    missing = 100_004 - len(long)
    assert find_request_start(run_of(long, ahead=missing), VERSIONS, never, known_client=False) == 0
    much = b"?" + long + b"1" * MIN_UNFINISHED_BYTES
    assert find_request_start(run_of(much), VERSIONS, never, known_client=False) == 1


@pytest.mark.parametrize(
    ("behind", "near"),
    [
        (-MAX_QUEUED_REQUESTS, True),
        (-MAX_QUEUED_REQUESTS - 1, False),
        (0, True),
        (MAX_MISSED_REQUESTS, True),
        (MAX_MISSED_REQUESTS + 1, False),
    ],
)
def test_a_response_to_an_earlier_request_is_a_little_behind_the_first_one_seen(behind: int, near: bool) -> None:
    assert is_near(5000 - behind, 5000) is near
    assert not is_near(5000 - behind, None)


def found(segments: Sequence[bytes], outstanding: Sequence[int], confirm: object = always, first: int = 7) -> int:
    return find_response_start(run_of(*segments), outstanding, first, confirm)  # type: ignore[arg-type]


def test_a_response_is_found_by_an_outstanding_correlation_id() -> None:
    """At the start of a segment or inside one, when it ends with a segment or another such response follows."""
    assert found([answer(7)], [7]) == 0
    assert found([b"tail of another", answer(7)], [7]) == 15
    assert found([b"tail" + answer(7)], [7]) == 4
    assert found([b"tail" + answer(7) + answer(8) + b"?"], [7, 8]) == 4
    assert found([b"tail" + answer(7) + b"more"], [7]) == -1
    assert found([answer(9_000_000)], [7]) == -1


def test_a_response_that_is_not_confirmed_is_not_believed() -> None:
    """Who confirms sees the frame and whether it fills segments."""
    seen: list[tuple[bytes, bool]] = []

    def confirm(data: bytes, fills: bool) -> bool:
        seen.append((data, fills))
        return False

    assert found([answer(7)], [7], confirm) == -1
    assert (answer(7)[4:], True) in seen
    seen.clear()
    assert found([b"tail" + answer(7)], [7], confirm) == -1
    assert seen == [(answer(7)[4:], False)]


def test_a_response_from_before_the_capture_is_found_at_the_start_of_a_segment() -> None:
    """Its correlation id is near the first one seen, or older and the response is all of its segment."""
    assert found([answer(6990)], [7000], first=7000) == 0
    assert found([b"?" + answer(6990)], [7000], first=7000) == -1
    assert found([answer(10)], [7000], first=7000) == 0
    assert found([answer(10)[:9], answer(10)[9:]], [7000], first=7000) == -1
    assert found([answer(6990)[:9], answer(6990)[9:]], [7000], first=7000) == 0


def test_a_row_of_responses_is_found_at_its_first() -> None:
    """What the lengths lead through answers requests from before the capture."""
    row = answer(900_000, b"x" * 50) + answer(900_001, b"y" * 9)
    assert found([b"tail", row + answer(900_002)], [900_002], first=900_002) == 4
