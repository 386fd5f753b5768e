"""Rights that are missing, and who took them away."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import SECOND, failed, findings, many


def acls(api: str, permission: int, name: str, pattern: int = 3) -> Exchange:
    """Somebody makes an ACL, or deletes it."""
    acl = {"resource_type": 2, "resource_name": name, "principal": "User:alice", "permission_type": permission}
    asked: dict[str, Any]
    answer: dict[str, Any]
    if api == "CreateAcls":
        asked, answer = {"creations": [acl | {"resource_pattern_type": pattern}]}, {"results": [{"error_code": 0}]}
    else:
        asked, answer = {}, {"filter_results": [{"matching_acls": [acl | {"error_code": 0, "pattern_type": pattern}]}]}
    key = {"CreateAcls": 30, "DeleteAcls": 31}[api]
    return exchange(api, key, 3, client_id="acl-admin", request=asked, response=answer)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (acls("CreateAcls", 2, "a"), "acl-admin 10.0.0.5 denied it to User:alice at"),
        (acls("DeleteAcls", 3, "a"), "acl-admin 10.0.0.5 deleted an ACL that allowed it to User:alice at"),
        (acls("CreateAcls", 2, "*"), "denied it"),
        (acls("CreateAcls", 2, "", 4), "denied it"),
        (acls("CreateAcls", 3, "a"), ""),
        (acls("DeleteAcls", 2, "a"), ""),
        (acls("CreateAcls", 2, "b"), ""),
        (acls("CreateAcls", 2, "b", 4), ""),
    ],
)
def test_who_took_a_right_away_stands_with_the_refusal(change: Exchange, words: str) -> None:
    """What was allowed, or is about something else, did not take it away; nor what came later."""
    refused = failed("TOPIC_AUTHORIZATION_FAILED", 29, "a")
    later = exchange(start_ns=START_NS + SECOND, **refused)
    (found,) = findings(change, later)
    assert ("at 22:13:20" in found.title and words in found.title) if words else "acl-admin" not in found.title
    (found,) = findings(exchange(start_ns=START_NS - SECOND, **refused), change)
    assert "acl-admin" not in found.title


def test_asking_again_and_again_for_what_is_denied_is_no_other_trouble() -> None:
    refused = failed("TOPIC_AUTHORIZATION_FAILED", 29, "a")
    (found,) = findings(*many(30, SECOND // 10, lambda **more: exchange("Metadata", 3, 12, **refused, **more)))
    assert found.code == "topic_authorization_failed"
    assert [one.code for one in found.symptoms] == ["metadata_storm"]


def test_followers_that_may_not_fetch_are_one_cause_of_what_their_leaders_refuse() -> None:
    """Two followers are denied a topic; the write that is refused meanwhile is a symptom."""
    refused = failed("TOPIC_AUTHORIZATION_FAILED", 29, "orders")
    followers = [
        exchange("Fetch", 1, 12, **refused, request={"replica_id": node}, client_id=f"broker-{node}-fetcher-0")
        for node in (2, 3)
    ]
    written = exchange("Produce", 0, 9, **failed("NOT_ENOUGH_REPLICAS", 19, "orders"), start_ns=START_NS + SECOND)
    (found,) = findings(*followers, written)
    assert (found.code, found.severity, found.subject, found.count) == (
        "replication_denied", "error", "replication", 2,
    )  # fmt: skip
    assert "orders" in found.title and "ClusterAction" in found.remedy
    assert [one.code for one in found.symptoms] == ["not_enough_replicas"]
