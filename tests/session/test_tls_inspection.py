"""What the hellos of a TLS connection tell, given its bytes in any pieces."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.session.tls_inspection import TlsInspection
from tests.support.tls_conversation import TlsTalk

#: What both directions say, in the order in which they say it.
FLIGHTS = TlsTalk(protocols=(["kafka"], ["kafka"])).shake().up(b"request").flights


def inspected(step: int) -> tuple[TlsInspection, list[bool]]:
    inspection, done = TlsInspection(), [False, False]
    for direction, data in FLIGHTS:
        for at in range(0, len(data), step):
            done[direction] = inspection.feed(direction, data[at : at + step])
    return inspection, done


def summary_of(inspection: TlsInspection) -> dict[str, Any]:
    return inspection.summary(decrypted=False, sent=None, closed_by="")


@pytest.mark.parametrize("step", [1, 7, 100, 1 << 20])
def test_whole_byte_by_byte_and_cut_the_same_is_told(step: int) -> None:
    """After that neither direction has more in the clear: TLS 1.3 encrypts which protocol was chosen."""
    inspection, done = inspected(step)
    summary = summary_of(inspection)
    assert (summary["version"], summary["alpn"], summary["alpn_offered"]) == ("TLSv1.3", None, ["kafka"])
    assert done == [True, True]
    assert inspection.has_client_hello()
    assert inspection.held_bytes() == 0


def test_behind_a_gap_nothing_more_is_learned() -> None:
    """What was read before it stands."""
    inspection = TlsInspection()
    inspection.feed(0, FLIGHTS[0][1])
    inspection.gap(1)
    assert inspection.feed(1, FLIGHTS[1][1])
    summary = summary_of(inspection)
    assert (summary["version"], summary["alpn_offered"]) == (None, ["kafka"])


def test_a_hello_that_is_not_complete_can_be_given_up() -> None:
    """An incomplete hello is buffered until it is complete or evicted."""
    inspection = TlsInspection()
    hello = FLIGHTS[0][1]
    assert not inspection.feed(0, hello[:50])
    assert inspection.held_bytes() >= 45
    inspection.release()
    assert inspection.held_bytes() == 0
    assert inspection.feed(0, hello[50:])
    assert not inspection.has_client_hello()
