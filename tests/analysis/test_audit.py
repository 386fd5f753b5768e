"""The audit against another release. The versions each release takes are those of Kafka's own ApiKeys."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.analysis.audit import audit
from kwiresniff.errors import SchemaError
from kwiresniff.results.clients import ApiUse, AuditRow, Client

NAMES = {0: "Produce", 1: "Fetch", 4: "LeaderAndIsr", 18: "ApiVersions", 71: "GetTelemetrySubscriptions", 999: "New"}


def client(*used: tuple[int, int], **more: Any) -> Client:
    uses = tuple(ApiUse(NAMES[key], key, version, 1, 0, 7, 1) for key, version in used)
    given: dict[str, Any] = {
        "kind": "client", "client_id": "app", "address": "10.0.0.5", "broker": "10.0.0.1:9092",
        "software": (None, None), "sasl": None, "tls": None, "negotiates": True, "offered": {}, "uses": uses,
        "topics": (), "groups": (), "transactional_ids": (), "connections": 1, "exchanges": 1, "errors": 0,
        "unanswered": 0, "request_bytes": 1, "response_bytes": 1, "first_ns": 1, "last_ns": 2,
    }  # fmt: skip
    return Client(**{**given, **more})


def verdict(one: Client, target: str = "4.0") -> tuple[str, str]:
    (row,) = audit([one], target)
    return row.verdict, row.reason


def test_what_the_target_takes_is_ok() -> None:
    assert verdict(client((0, 3), (1, 4), (1, 17)))[0] == "ok"


@pytest.mark.parametrize("target", ["4.0", "4.0.1", "4.4"])
def test_a_client_that_does_not_negotiate_breaks_on_versions_that_were_removed(target: str) -> None:
    found, reason = verdict(client((0, 2), negotiates=False), target)
    assert found == "breaks"
    assert "Produce v2" in reason and "takes v3" in reason


def test_a_client_that_goes_no_higher_than_its_broker_offered_breaks() -> None:
    assert verdict(client((1, 3), offered={1: (0, 17)}))[0] == "breaks"


def test_a_client_held_down_by_its_broker_is_not_known() -> None:
    found, reason = verdict(client((1, 3), offered={1: (0, 3)}))
    assert found == "unknown"
    assert "stopped at v3" in reason
    assert verdict(client((1, 3), negotiates=None))[0] == "unknown"


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("3.7.1", "ok"),  # its Fetch goes to v16, 4.0 takes v4 to v17
        ("2.1.0", "ok"),  # to v10
        ("0.10.2.1", "breaks"),  # to v3
        ("unheard of", "unknown"),
    ],
)
def test_a_java_client_is_judged_by_its_release(release: str, expected: str) -> None:
    assert verdict(client((1, 3), software=("apache-kafka-java", release), offered={1: (0, 3)}))[0] == expected


def test_a_java_client_too_new_for_an_old_target_breaks() -> None:
    # The clients of 4.0 fetch in v4 and newer, the brokers of 0.10.2 take v0 to v3.
    found, reason = verdict(client((1, 17), software=("apache-kafka-java", "4.0.0")), "0.10.2")
    assert (found, "this client speaks v4 to v17" in reason) == ("breaks", True)


def test_an_api_that_was_removed_breaks_and_one_that_was_not_there_yet_may() -> None:
    assert verdict(client((4, 1), kind="client"))[0] == "breaks"
    assert verdict(client((71, 0)), "3.6")[0] == "unknown"
    assert verdict(client((71, 0), negotiates=False), "3.6")[0] == "breaks"
    assert verdict(client((999, 0)))[0] == "unknown"


def test_a_newer_api_versions_is_answered_by_every_broker() -> None:
    assert verdict(client((18, 5)), "2.0")[0] == "ok"


def test_nodes_of_the_cluster_and_encrypted_clients_are_not_judged() -> None:
    assert verdict(client((4, 1), kind="broker"))[0] == "not_judged"
    assert verdict(client(kind="encrypted"))[0] == "unknown"
    assert verdict(client())[0] == "unknown"


def test_the_worst_comes_first_and_every_finding_is_kept() -> None:
    rows: list[AuditRow] = audit([client((0, 3)), client((0, 2), (1, 0), (1, 4), negotiates=False)], "4.0")
    assert [row.verdict for row in rows] == ["breaks", "ok"]
    assert [(finding.use.api, finding.use.version, finding.offered) for finding in rows[0].findings] == [
        ("Produce", 2, (3, 12)),
        ("Fetch", 0, (4, 17)),
    ]


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"no Kafka release '9\.9'"):
        audit([], "9.9")


@pytest.mark.parametrize("version", ["9" * 5_000, "1." * 20_000, "9" * 41, "", "4.x"])
def test_a_version_that_is_none_says_nothing_of_the_client(version: str) -> None:
    """Software versions are what clients say of themselves."""
    assert verdict(client((0, 3), software=("apache-kafka-java", version)))[0] == "ok"
    assert verdict(client((1, 3), software=("apache-kafka-java", version), offered={1: (0, 3)}))[0] == "unknown"
