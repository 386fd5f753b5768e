"""What the doctor concludes from other captures of the same traffic.

Where the traffic is the same and only the way to the capture differs, the findings are the same, the first one first.
Where a part is missing, nothing is found that the whole does not have. Two captures merged have what both have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.results.findings import Finding
from tests.support.incidents import found_in
from tests.support.paths import CAPTURES
from tests.support.sample import sampled, third_of
from tests.support.transformations import LESS, SAME, WRAPPINGS, elsewhere, merged, segments_of, write

RECORDINGS = (
    *sorted((CAPTURES / "incidents").glob("*.pcap.xz")),
    *sorted(path for path in CAPTURES.iterdir() if ".pcap" in path.name),
)
#: What a part may be called where the evidence for the cause is in the part that is missing.
DOUBTED = {
    "plaintext_to_tls": {"tls_refused"},
    "unsupported_version": {"closed_by_broker"},
    "topic_deleted": {"unknown_topic_or_partition"},
    "long_path": {"late_writes"},  # on connections whose handshake is missing
    "broker_stalled": {"late_writes", "under_replicated", "replica_wait", "unanswered"},
    "replica_wait": {"late_writes"},
    "retransmits": {"late_writes"},  # of too few packets to tell which path loses them
    # Without a message that took long, or the acknowledgement that waited in a full queue.
    "slow_transfer": {"retransmits", "data_lost"},
    "rebalances": {"no_committed_offsets"},  # none of its starts gets so far as to commit
}

#: Ways of a capture file to hold the same packets: the headers around them, and over how many files they go.
FILES = {**{name: (name, 1) for name in WRAPPINGS}, "split": ("in Ethernet", 3)}

each_recording = pytest.mark.parametrize("path", sampled(RECORDINGS, 10, 2), ids=lambda path: path.name)


@cache
def whole(path: Path) -> list[Finding]:
    """The findings of a recording as it is."""
    return found_in(segments_of(path))


def with_symptoms(findings: Iterable[Finding]) -> Iterator[Finding]:
    for one in findings:
        yield one
        yield from with_symptoms(one.symptoms)


def all_codes(findings: Iterable[Finding]) -> set[str]:
    return {one.code for one in with_symptoms(findings)}


def above_info(findings: Iterable[Finding]) -> list[str]:
    """The codes of what is more than good to know, as they come."""
    return [one.code for one in findings if one.severity != "info"]


def first_and_all(findings: list[Finding]) -> tuple[list[str], set[str]]:
    codes = above_info(findings)
    return codes[:1], set(codes)


@each_recording
def test_the_same_traffic_elsewhere_has_the_same_findings(path: Path, tmp_path: Path) -> None:
    """In another network, a year later with its records, in other headers, or split over three files."""
    segments = segments_of(path)
    for name in third_of((*SAME, *FILES), path.name):
        again = SAME[name](segments) if name in SAME else open_captures(write(tmp_path, segments, *FILES[name]))
        assert first_and_all(found_in(again)) == first_and_all(whole(path)), name


@each_recording
def test_a_part_of_the_traffic_has_no_findings_of_its_own(path: Path) -> None:
    """Of a part above info only what the whole has, or what is left of it without the evidence of its cause."""
    codes = all_codes(whole(path))
    allowed = codes.union(*(DOUBTED.get(code, ()) for code in codes))
    for name in third_of(LESS, path.name):
        assert set(above_info(found_in(LESS[name](segments_of(path))))) <= allowed, name


@each_recording
def test_two_captures_together_have_what_both_have(path: Path) -> None:
    """The next recording, in another network, at the same time: no less and no more."""
    other = RECORDINGS[(RECORDINGS.index(path) + 1) % len(RECORDINGS)]
    alone = [*whole(path), *whole(other)]
    both = found_in(merged(segments_of(path), elsewhere(segments_of(other))))
    assert set(above_info(both)) <= all_codes(alone)
    assert set(above_info(alone)) <= all_codes(both)
