"""Which release offers what. Expected values: Kafka's release notes, and KIP-896 for what 4.0 dropped."""

from __future__ import annotations

import pytest

from kwiresniff import schema
from kwiresniff.errors import SchemaError


def test_4_0_dropped_what_kip_896_says() -> None:
    before, after = schema.versions_in("3.9"), schema.versions_in("4.0")
    keys = {name: schema.api_by_name(name).key for name in ("Produce", "Fetch", "ListOffsets", "LeaderAndIsr")}
    assert [before[keys[name]][0] for name in ("Produce", "Fetch", "ListOffsets", "LeaderAndIsr")] == [0, 0, 0, 0]
    assert [after[keys[name]][0] for name in ("Produce", "Fetch", "ListOffsets")] == [3, 4, 1]
    assert keys["LeaderAndIsr"] not in after


def test_a_patch_release_offers_what_its_release_does() -> None:
    assert schema.versions_in("2.4.1") == schema.versions_in("2.4")
    assert schema.find_release("0.10.2.2") == "0.10.2"


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
