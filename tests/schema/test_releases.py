"""Which release offers what. Expected values: Kafka's release notes, and KIP-896 for what 4.0 dropped."""

from __future__ import annotations

import re

import pytest

from kwiresniff import schema
from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import read_data
from kwiresniff.schema.release_table import FILE, with_release


def test_4_0_dropped_what_kip_896_says() -> None:
    before, after = schema.versions_in("3.9"), schema.versions_in("4.0")
    keys = {name: schema.api_by_name(name).key for name in ("Produce", "Fetch", "ListOffsets", "LeaderAndIsr")}
    assert [before[keys[name]][0] for name in ("Produce", "Fetch", "ListOffsets", "LeaderAndIsr")] == [0, 0, 0, 0]
    assert [after[keys[name]][0] for name in ("Produce", "Fetch", "ListOffsets")] == [3, 4, 1]
    assert keys["LeaderAndIsr"] not in after


def test_a_patch_release_offers_what_its_release_does() -> None:
    assert schema.versions_in("2.4.1") == schema.versions_in("2.4")
    assert schema.find_release("0.10.2.2") == "0.10.2"


def test_a_patch_release_that_changed_versions_is_one_of_its_own() -> None:
    """4.0.1 took JoinGroup 0 and 1 back, which 4.0.0 had dropped."""
    found = [schema.find_release(name) for name in ("4.0", "4.0.0", "4.0.1", "4.0.2")]
    assert found == ["4.0", "4.0", "4.0.1", "4.0.1"]
    assert [schema.versions_in(name)[11] for name in ("4.0.0", "4.0.2", "4.1")] == [(2, 9), (0, 9), (0, 9)]


@pytest.mark.parametrize("name", ["", "4", "4.x", "99.1", "0.8", "0.8.1", "4.0-rc1"])
def test_what_names_no_release_is_refused(name: str) -> None:
    with pytest.raises(SchemaError, match="no Kafka release"):
        schema.find_release(name)


def test_the_first_release_known_has_no_api_versions_yet() -> None:
    assert 18 not in schema.versions_in("0.9.0")
    assert schema.versions_in("0.10.0")[18] == (0, 0)


def test_an_unknown_release_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SchemaError, match=r"known are 0\.8\.2, .*4\.4"):
        schema.versions_in("17")


def test_no_release_offers_a_version_that_has_no_definition() -> None:
    for release in schema.releases():
        for key, (low, high) in schema.versions_in(release).items():
            known = schema.version_range(key)
            assert known[0] <= low <= high <= known[1], (release, key)


def test_an_api_says_when_it_came_and_went() -> None:
    history = schema.release_history(schema.api_by_name("StopReplica").key)
    assert history[0] == ("0.8.2", (0, 0))
    assert history[-1] == ("4.0", None)


def test_a_release_that_is_added_gives_the_table_that_there_is() -> None:
    table = read_data(FILE)
    newest = schema.releases()[-1]
    before = "".join(
        f"{line}\n"
        for each in table.splitlines()
        if (line := re.sub(rf" {re.escape(newest)}(:\S+)?$", "", each)) and not line.isdigit()
    )
    assert before != table
    assert with_release(before, f"{newest}.0", schema.versions_in(newest)) == table
    assert with_release(table, f"{newest}.1", {}) == table


def test_an_api_that_a_release_drops_has_none_from_then_on() -> None:
    table = "# Why.\nreleases 4.4\n0 4.4:3-13\n4 4.4:0-7\n"
    assert with_release(table, "5.0.2", {0: (3, 14), 95: (0, 0)}) == (
        "# Why.\nreleases 4.4 5.0\n0 4.4:3-13 5.0:3-14\n4 4.4:0-7 5.0:none\n95 5.0:0-0\n"
    )
    with pytest.raises(SchemaError, match=r"has 4\.4 and not 3\.1"):
        with_release(table, "3.1.0", {})
