"""Logs of one partition that contradict each other."""

from __future__ import annotations

import pytest

from kwiresniff.identity import log_ends
from kwiresniff.identity.log_ends import LogEnds

A, B = 1, 2
SECOND = 1_000_000_000
_NOBODY = ("10.0.0.5", b"")


def test_two_logs_that_both_go_on_are_of_two_clusters() -> None:
    """A mirror: the same partition, far apart, written to by turns."""
    logs = LogEnds()
    logs.appended(A, "orders", 0, 4_999, 1, _NOBODY)
    logs.appended(B, "orders", 0, 40, 1, _NOBODY)
    assert not logs.apart
    logs.appended(A, "orders", 0, 5_000, 1, _NOBODY)
    assert logs.apart == {(A, B)}


def test_a_truncated_log_is_one() -> None:
    """The new leader gives offsets out again, and the old one is led by it from then on."""
    logs = LogEnds()
    logs.appended(A, "orders", 0, 100, 1, _NOBODY)
    logs.appended(B, "orders", 0, 90, 1, _NOBODY)
    logs.served(A, "orders", 0, 91, 0)
    logs.appended(B, "orders", 0, 91, 60, _NOBODY)
    logs.appended(A, "orders", 0, 151, 1, _NOBODY)
    assert not logs.apart


def test_consumers_of_two_logs_are_given_high_watermarks_that_no_follower_has() -> None:
    """One is at 43 when the other was at 4,960 long before; a follower is behind for moments only (KIP-392)."""
    for behind, apart in ((4_917, {(A, B)}), (2, set())):
        logs = LogEnds()
        for second in range(40):
            logs.served(A, "orders", 0, 4_960 + second, second * SECOND)
            logs.served(B, "orders", 0, 4_960 + second - behind, second * SECOND)
        assert logs.apart == apart


def test_a_leader_that_moves_leaves_one_log() -> None:
    """To and fro, with writes of others in between."""
    logs = LogEnds()
    for base in range(0, 1_000, 50):
        logs.appended(A if base % 100 else B, "orders", 0, base, 10, _NOBODY)
    assert not logs.apart


def test_a_batch_sent_again_to_a_new_leader_is_no_log_of_its_own() -> None:
    """It is answered with the offset that it has had since, and the leader goes back."""
    logs = LogEnds()
    batch = ("10.0.0.5", b"producer, epoch, sequence")
    logs.appended(A, "orders", 0, 10, 1, batch)
    logs.appended(A, "orders", 0, 11, 5, _NOBODY)
    logs.appended(B, "orders", 0, 10, 1, batch)
    logs.appended(A, "orders", 0, 16, 1, _NOBODY)
    assert not logs.apart


def test_once_somewhere_behind_its_end_is_not_enough() -> None:
    """The first leader may have been elected again while nobody was seen to write, but hardly twice."""
    logs = LogEnds()
    logs.appended(A, "orders", 0, 100, 1, _NOBODY)
    logs.appended(B, "orders", 0, 10, 1, _NOBODY)
    logs.appended(A, "orders", 0, 150, 1, _NOBODY)
    assert not logs.apart
    logs.appended(B, "orders", 0, 11, 1, _NOBODY)
    logs.appended(A, "orders", 0, 190, 1, _NOBODY)
    assert logs.apart == {(A, B)}


def test_what_is_remembered_of_logs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Partitions, brokers of one, and pairs."""
    monkeypatch.setattr(log_ends, "MAX_LOG_BYTES", 100_000)
    monkeypatch.setattr(log_ends, "MAX_APART", 3)
    logs = LogEnds()
    for number in range(500):
        logs.appended(A, f"topic {number}", 0, 100, 1, _NOBODY)
    assert logs._held_bytes <= 100_000
    logs = LogEnds()
    for number in range(100):
        for base in (5_000, 5_001):
            logs.appended(0, "orders", number % 8, base + 10 * number, 1, _NOBODY)
            logs.appended(number + 1, "orders", number % 8, 10 + base % 5_000, 1, _NOBODY)
    assert 0 < len(logs.apart) <= 3
    assert all(len(ends) <= log_ends.MAX_ENDS for ends in logs._partitions.values())
