"""``kwiresniff diff``: what it prints, and how it exits."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from kwiresniff.render.page import comparison_page
from kwiresniff.results.comparison import Change, Comparison, Side
from tests.support.command import Run
from tests.support.compared import slowed
from tests.support.html_pages import HOSTILE, Page
from tests.support.transformations import segments_of, write

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
SINGLE = CAPTURES / "seed-single.pcap.xz"
MS = 1_000_000


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The recording, had each answer of the broker on port 9092 taken 50 ms longer, in three files."""
    folder = tmp_path_factory.mktemp("late")
    write(folder, slowed(segments_of(SINGLE), 9092, 50 * MS), files=3)
    return str(folder)


def test_a_slower_broker_is_told_and_fails(kwiresniff: Run, slower: str) -> None:
    done = kwiresniff("diff", str(SINGLE), slower)
    assert done.code == 1
    assert "error   Produce" in done.out
    assert "changes: " in done.err
    assert kwiresniff("diff", "--fail-on", "never", str(SINGLE), slower).code == 0


def test_the_other_way_round_it_is_faster_which_is_no_failure(kwiresniff: Run, slower: str) -> None:
    done = kwiresniff("diff", slower, str(SINGLE))
    assert (done.code, "faster" in done.out, "slower" in done.out) == (0, True, False)
    assert kwiresniff("diff", "--fail-on", "info", slower, str(SINGLE)).code == 1


def test_the_json_says_what_was_measured(kwiresniff: Run, slower: str) -> None:
    done = kwiresniff("diff", "-o", "json", str(SINGLE), slower)
    (found,) = json.loads(done.out)
    assert (found["kind"], found["schema_version"]) == ("diff", 1)
    assert [len(found[side]["files"]) for side in ("before", "after")] == [1, 3]
    produce = next(one for one in found["changes"] if one["subject"] == "Produce")
    assert (produce["section"], produce["what"], produce["severity"]) == ("latency", "slower", "error")
    assert produce["after"] - produce["before"] == pytest.approx(50 * MS, rel=0.1)
    assert produce["chance"] < 0.001 < produce["greater"]


@pytest.mark.slow
def test_a_capture_and_the_same_in_parts_do_not_differ(kwiresniff: Run, tmp_path: Path) -> None:
    write(tmp_path, segments_of(SINGLE), files=4)
    done = kwiresniff("diff", "--fail-on", "info", str(SINGLE), str(tmp_path))
    assert done.code == 0
    assert "no change beyond noise" in done.out


def test_the_page_has_what_the_json_has(kwiresniff: Run, slower: str) -> None:
    """Both sides, each change, what may be chance; and nothing that is fetched or run but its script."""
    (wanted,) = json.loads(kwiresniff("diff", "-o", "json", str(SINGLE), slower).out)
    done = kwiresniff("diff", "-o", "html", str(SINGLE), slower)
    assert done.code == 1
    page = Page(done.out)
    assert page.active == [] and page.tags["script"] == 1
    for side in ("before", "after"):
        assert f"{wanted[side]['exchanges']:,}" in page.text
        assert all(name in page.text for name in wanted[side]["files"])
    changes = [*wanted["changes"], *wanted["doubtful"]]
    assert all(one["subject"] in page.text for one in changes)
    assert page.tags["tbody"] == 2 + len(changes)
    assert f"{len(wanted['changes'])} changes beyond noise" in page.text


def test_no_name_becomes_markup_on_the_page() -> None:
    """Of captures, of clients and of what they have set."""
    side = Side(HOSTILE, (HOSTILE, HOSTILE), 1, 0, 1)
    change = Change(
        "settings", "warning", "changed", HOSTILE, HOSTILE, HOSTILE, None, same=(HOSTILE * 10_000,), note=HOSTILE
    )
    found = comparison_page(Comparison(side, side, (change,), (change._replace(parts=(change,)),), defaultdict(int), 3))
    page = Page(found)
    assert page.active == [] and (page.tags["script"], "img" in page.tags) == (1, False)
    assert "\x1b" not in found and "\u202e" not in found and len(found) < 1 << 20
    assert "{{ 7*7 }}" in page.text and "Not compared: 3 more" in page.text


def test_names_from_the_wire_are_escaped(kwiresniff: Run) -> None:
    """Client ids of the recording of odd records, against a capture without them."""
    done = kwiresniff("diff", "-v", str(CAPTURES / "first-look.pcap"), str(CAPTURES / "java-produce.pcap"))
    assert "maybe   odd-records  new" in done.out
    assert "\x1b" not in done.out


@pytest.mark.parametrize(
    ("names", "told"),
    [((), "BEFORE"), (("a",), "BEFORE"), (("a", "b", "c"), "BEFORE"), (("-", "-"), "standard input is one side")],
)
def test_it_takes_two_captures(kwiresniff: Run, names: tuple[str, ...], told: str) -> None:
    done = kwiresniff("diff", *names)
    assert done.code == 2
    assert told in done.err
    assert done.err.count("\n") == 1


def test_one_capture_is_compared_before_and_after_a_moment(kwiresniff: Run, tmp_path: Path) -> None:
    """The recording, and then the recording with the slower broker, a minute later, in one file."""
    segments = segments_of(SINGLE)
    first_ns = segments[0][1]
    later = [(one[0], one[1] + 60 * 1000 * MS, *one[2:]) for one in slowed(segments, 9092, 50 * MS)]
    # From other ports, as clients that were started anew have them.
    shifted = [(*one[:2], _on_other_port(one[2]), *one[3:]) for one in later]
    (file,) = write(tmp_path, [*segments, *shifted])
    done = kwiresniff("diff", "--at", "50s", "-o", "json", file)
    (found,) = json.loads(done.out)
    assert found["before"]["exchanges"] == found["after"]["exchanges"]
    assert found["before"]["last_timestamp_ns"] < first_ns + 50_000 * MS <= found["after"]["first_timestamp_ns"]
    assert "Produce" in {one["subject"] for one in found["changes"] if one["what"] == "slower"}


def _on_other_port(flow: bytes) -> bytes:
    """The flow with another port of the client."""
    ports = [int.from_bytes(flow[-4:-2]), int.from_bytes(flow[-2:])]
    return flow[:-4] + b"".join((port if port == 9092 else port - 5_000).to_bytes(2) for port in ports)


@pytest.mark.parametrize("names", [[], ["a", "b"], ["-"]])
def test_a_moment_divides_one_capture_file(kwiresniff: Run, names: list[str]) -> None:
    done = kwiresniff("diff", "--at", "1s", *names)
    assert (done.code, done.err.count("\n")) == (2, 1)


@pytest.mark.parametrize(("moment", "side"), [("09:00:00", "after"), ("01:00:00", "before")])
def test_a_side_without_exchanges_is_told(kwiresniff: Run, moment: str, side: str) -> None:
    """The recording lies between 07:07:15 and 07:07:18: at any other time it has one side only."""
    done = kwiresniff("diff", "--at", moment, str(CAPTURES / "java-produce.pcap"))
    assert f"kwiresniff: {side} has no exchanges: check the captures, the times and the filter\n" in done.err
