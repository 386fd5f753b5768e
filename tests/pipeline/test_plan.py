"""Which files belong together, and how big sources are shared out."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from kwiresniff.base.flows import reverse
from kwiresniff.errors import CaptureError
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.plan import CaptureSeries, File, WorkUnit, find_sources, plan, series_name, share_out
from kwiresniff.pipeline.shards import shard_of


@pytest.mark.parametrize(
    ("names", "series"),
    [
        (("x.pcap", "x.pcap1", "x.pcap12"), "x.pcap"),
        (("x.pcap0.gz", "x.pcap1.gz", "x.pcap2"), "x.pcap"),
        (("x_00001_20260102030405.pcapng", "x_00002_20260102040405.pcapng"), "x*.pcapng"),
        (("h1-2026-01-02T03:04:05.pcap", "h1-2026-01-02T04:04:05.pcap.zst"), "h1-*.pcap"),
        (("h1-20260102-0304.pcap", "h1-20260103-0304.pcap"), "h1-*.pcap"),
        (("20260102030405.pcap", "20260102030505.pcap"), "*.pcap"),
        (("t-1767323045.pcap", "t-1767326645.pcap"), "t-*.pcap"),
    ],
)
def test_what_rotating_programs_write_is_one_series(names: tuple[str, ...], series: str) -> None:
    """The names that tcpdump -C, dumpcap -b and tcpdump -G give (their manual pages)."""
    assert {series_name(name)[0] for name in names} == {series}


@pytest.mark.parametrize(
    "names",
    [("broker-1.pcap", "broker-2.pcap"), ("scram-256.pcap", "scram-512.pcap"), ("old-0.8.pcap", "old-0.9.pcap")],
)
def test_numbers_that_name_a_host_do_not_make_a_series(names: tuple[str, str]) -> None:
    """Two hosts may well show the same addresses and ports; they must stay apart."""
    assert series_name(names[0])[0] != series_name(names[1])[0]
    assert not series_name(names[0])[1]


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)


def test_files_of_a_rotation_are_one_source_and_others_one_each(tmp_path: Path) -> None:
    """A folder with both, and the same series name in two folders."""
    make(tmp_path, "a/t.pcap", "a/t.pcap1", "b/t.pcap", "b/single.pcap", "b/single.pcap.gz")
    sources = find_sources([str(tmp_path)])
    assert [[os.path.relpath(file.path, tmp_path) for file in source.files] for source in sources] == [
        ["a/t.pcap", "a/t.pcap1"],
        ["b/single.pcap"],
        ["b/single.pcap.gz"],
        ["b/t.pcap"],
    ]
    assert len({source.id for source in sources}) == 4


def test_the_user_may_say_which_files_belong_together(tmp_path: Path) -> None:
    """Each for itself, or all together."""
    make(tmp_path, "t.pcap", "t.pcap1", "other.pcap")
    assert [len(source.files) for source in find_sources([str(tmp_path)], "file")] == [1, 1, 1]
    assert [len(source.files) for source in find_sources([str(tmp_path)], "one")] == [3]


def test_a_stream_cannot_be_planned() -> None:
    """Standard input is on this machine, the work is not."""
    with pytest.raises(CaptureError, match="stream"):
        find_sources(["-"])


def source(name: str, size: int) -> CaptureSeries:
    return CaptureSeries(name, (File(name, size, 1),))


def test_small_sources_are_one_unit_each_and_the_longest_comes_first() -> None:
    """Splitting gains nothing there; what takes longest must not begin last."""
    units = plan([source("a", 10), source("b", 30), source("c", 20)], 2, min_shard_bytes=100)
    assert [(unit.source.name, unit.shards) for unit in units] == [("b", 1), ("c", 1), ("a", 1)]


def test_a_source_that_is_most_of_the_data_is_split_to_a_fair_share() -> None:
    """1000 of 1200 bytes on four workers: a fair share is 300."""
    units = plan([source("big", 1000), source("small", 200)], 4, min_shard_bytes=100)
    assert sorted((unit.source.name, unit.shard, unit.shards) for unit in units) == [
        ("big", 0, 3),
        ("big", 1, 3),
        ("big", 2, 3),
        ("small", 0, 1),
    ]


def test_small_units_share_a_task_and_big_ones_have_their_own() -> None:
    """Every unit in one task; never more tasks than the driver should keep account of."""
    small = plan([source(str(number), 1000) for number in range(100)], 4)
    big = plan([source(str(number), 100 << 20) for number in range(6)], 4)
    many = plan([source(str(number), 100 << 20) for number in range(1000)], 4)
    assert [len(share_out(units, 4)) for units in (small, big, many)] == [4, 6, 128]
    for units in (small, big, many):
        assert sorted(unit.id for task in share_out(units, 4) for unit in task) == sorted(unit.id for unit in units)


def test_both_directions_of_a_connection_are_in_the_same_shard() -> None:
    """For IPv4 and IPv6, and not all in one shard."""
    flows = [
        bytes([10, 0, 0, host, 10, 0, 1, 1]) + bytes([0x9C, port, 0x23, 0x84]) for host in range(20) for port in (1, 2)
    ]
    flows += [bytes(range(host, host + 32)) + bytes([0x9C, host, 0x23, 0x84]) for host in range(20)]
    assert all(shard_of(flow, 7) == shard_of(reverse(flow), 7) for flow in flows)
    assert {shard_of(flow, 7) for flow in flows} == set(range(7))


def test_a_unit_survives_the_way_to_an_executor_and_notices_a_grown_file() -> None:
    """Through JSON and back; size, time, settings and split all count."""
    unit = WorkUnit(source("a", 10), 1, 2)
    assert from_plain(WorkUnit, json.loads(json.dumps(asdict(unit)))) == unit
    others = [
        WorkUnit(source("a", 11), 1, 2),
        WorkUnit(source("a", 10), 0, 2),
        WorkUnit(CaptureSeries("a", (File("a", 10, 2),)), 1, 2),
    ]
    prints = {one.fingerprint("s") for one in [unit, *others]} | {unit.fingerprint("t")}
    assert len(prints) == 5
