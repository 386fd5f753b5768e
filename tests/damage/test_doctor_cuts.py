"""What the doctor says of captures that have only part of what was said: nothing that the whole does not say.

A capture that begins late, has one direction, a snap length or each packet twice shows less, and no other troubles than
there were. Of recordings in which all went well nothing above info is left to say, whatever is missing.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kwiresniff.model import Segment
from tests.support.cuts import CUTS
from tests.support.incidents import found_in
from tests.support.paths import CAPTURES
from tests.support.sample import sampled, third_of
from tests.support.transformations import segments_of

#: Recordings in which what goes wrong was meant to, by the codes that say it.
MEANT = {
    "java-fetch.pcapng": {"offset_out_of_range"},
    "java-produce.pcap": {"message_too_large"},
    "java-sasl-plain.pcap": {"sasl_authentication_failed"},
    "java-sasl-scram-256.pcap": {"sasl_authentication_failed"},
    "java-sasl-scram-512.pcap": {"sasl_authentication_failed"},
    "java-transactions.pcap": {"producer_fenced"},
    "kafkajs.pcap": {"unknown_topic_or_partition"},
    "librdkafka-sasl-plain.pcap": {"sasl_authentication_failed"},
    "librdkafka-sasl-scram-256.pcap": {"sasl_authentication_failed"},
    "client.pcap.xz": {"throttled"},
    "broker.pcap.xz": {"throttled"},
}
#: Recordings of all that clients do, where nothing is stopped or killed.
RECORDINGS = (
    *sorted(path for path in CAPTURES.iterdir() if ".pcap" in path.name),
    *sorted((CAPTURES / "latency").glob("*.pcap.xz")),
    *sorted((CAPTURES / "twins").glob("*.pcap.xz")),
    *(CAPTURES / "incidents" / f"{name}.pcap.xz" for name in ("idle-connections", "old-client-negotiates")),
)


def above_info(segments: list[Segment]) -> dict[str, str]:
    return {one.code: f"{one.subject}: {one.title}" for one in found_in(segments) if one.severity != "info"}


def test_one_direction_is_told_as_one() -> None:
    """Of clients alone by their requests, of brokers alone by what reads like responses: a doubt, and what to do."""
    for cut, title in (("clients alone", "it has what clients send"), ("brokers alone", "reads like responses")):
        (found,) = found_in(CUTS[cut](segments_of(CAPTURES / "java-group-classic.pcap")), "one_way_capture")
        assert found.severity == "info" and title in found.title and "both directions" in found.remedy


CASES = [(path, cut) for path in RECORDINGS for cut in third_of(CUTS, path.name)]


@pytest.mark.parametrize("case", sampled(CASES, 12), ids=lambda case: f"{case[0].name}-{case[1]}")
def test_a_part_of_a_capture_shows_no_trouble_that_the_whole_does_not(case: tuple[Path, str]) -> None:
    """Above info, and but for what its programs did wrong on purpose."""
    path, cut = case
    part = CUTS[cut](segments_of(path))
    said = above_info(part)
    assert {code: what for code, what in said.items() if code not in MEANT.get(path.name, ())} == {}
