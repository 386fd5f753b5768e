"""Our definitions against a release of Kafka."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kwiresniff.schema.check import differences
from kwiresniff.schema.definition import Field, Message, Versions
from kwiresniff.schema.definition_language import parse
from kwiresniff.schema.importer import read_source
from kwiresniff.schema.registry import definitions
from tests.support.sample import mostly_slow

JARS = Path.home() / ".m2/repository/org/apache/kafka"
#: The jars with messages of some releases: an artifact and its version in each line.
RELEASES = Path(__file__).parent / "data" / "jars.txt"

#: The facts of Kafka 2.2's Heartbeat, in which the generation had its present name already.
HEARTBEAT = """\
api 12 Heartbeat
request 0-2
  group_id string entity groupId
  generation_id int32
  member_id string

response 0-2
  throttle_time_ms int32 1+
  error_code int16
"""

#: The facts of Kafka 4.1's ShareUpdateValue, which has another tagged field since.
SHARE_UPDATE = """\
  snapshot_epoch int32
  leader_epoch int32
  start_offset int64
  state_batches []struct
    first_offset int64
    last_offset int64
    delivery_state int8
    delivery_count int16
"""


def texts(messages: tuple[Message, ...]) -> list[str]:
    return [difference.text for difference in differences(messages)]


@pytest.mark.parametrize("line", mostly_slow(RELEASES.read_text("utf-8").splitlines(), 16))
def test_nothing_differs_from_a_release_of_kafka(line: str) -> None:
    """Needs the release's jar, which fetch_jars.sh gets."""
    artifact, release = line.split()
    jar = JARS / artifact / release / f"{artifact}-{release}.jar"
    if not jar.is_file():
        pytest.skip(f"no {jar.name} in ~/.m2: tests/schema/fetch_jars.sh gets it")
    found = differences(message for message in read_source(jar))
    assert [difference.text for difference in found if not difference.reason] == []


def test_a_release_that_says_the_same_with_fewer_versions_does_not_differ() -> None:
    assert texts(parse(HEARTBEAT)) == []


@pytest.mark.parametrize(
    ("was", "now", "expected"),
    [
        (
            "generation_id int32",
            "generation_id int64",
            "Heartbeat request version 0, generation_id: type is 'int32', in the release 'int64'",
        ),
        (
            "member_id string",
            "member string",
            "Heartbeat request version 0: fields are group_id generation_id member_id, in the release group_id"
            " generation_id member",
        ),
        (
            "throttle_time_ms int32 1+",
            "throttle_time_ms int32",
            "Heartbeat response version 0: fields are error_code, in the release throttle_time_ms error_code",
        ),
        (
            "member_id string",
            "member_id string null",
            "Heartbeat request version 0, member_id: nullable is False, in the release True",
        ),
        (
            "generation_id int32",
            "generation_id int32 = 5",
            "Heartbeat request version 0, generation_id: default is 0, in the release 5",
        ),
        (
            "generation_id int32",
            "generation_id []int32",
            "Heartbeat request version 0, generation_id: array is False, in the release True",
        ),
        ("api 12 Heartbeat", "api 12 Hearing", "Hearing request: not in our definitions"),
        ("api 12 Heartbeat", "api 999 Heartbeat", "Heartbeat request: not in our definitions"),
        (
            "request 0-2",
            "request 0-2 flexible 2+",
            "Heartbeat request version 2: flexible is False, in the release True",
        ),
        ("request 0-2", "request 4-5", "Heartbeat request version 5: not in our definitions"),
    ],
)
def test_every_kind_of_difference_is_told(was: str, now: str, expected: str) -> None:
    assert was in HEARTBEAT
    assert expected in texts(parse(HEARTBEAT.replace(was, now)))


def test_a_tag_that_differs_is_told() -> None:
    (request, _) = definitions("Fetch")
    fields = tuple(field._replace(tag=7) if field.name == "cluster_id" else field for field in request.fields)
    found = texts((request._replace(versions=Versions(12, 12), fields=fields),))
    assert found == ["Fetch request version 12, cluster_id: tag is 0, in the release 7"]


def test_an_older_name_of_a_field_or_an_api_is_no_difference() -> None:
    (request, _) = definitions("ListConfigResources")
    assert texts((request._replace(name="ListClientMetricsResources"),)) == []
    (_, response) = definitions("ListConfigResources")
    (old,) = [field for field in response.fields if field.name == "config_resources"]
    inner = tuple(renamed(field) for field in old.fields)
    fields = tuple(old._replace(fields=inner) if field is old else field for field in response.fields)
    assert texts((response._replace(versions=Versions(0, 0), fields=fields),)) == []


def renamed(field: Field) -> Field:
    return field._replace(name=field.aliases[0]) if field.aliases else field


def test_a_version_that_changed_in_place_comes_with_its_reason() -> None:
    (release,) = parse("data LeaderChangeMessage 0 flexible 0+\n  leader_id int32\n")
    (found,) = differences((release,))
    assert "KIP-595" in found.reason


@pytest.mark.parametrize(
    ("was", "reason"),
    [
        ({"default": 0}, "3.5 gave replica_id that default; it is on the wire in any case"),
        ({"default": 5}, ""),
        ({"type": "bytes"}, ""),
    ],
)
def test_a_default_that_came_later_is_known_and_nothing_else_of_its_field(was: dict[str, Any], reason: str) -> None:
    (request, _) = definitions("Fetch")
    fields = tuple(field._replace(**was) if field.name == "replica_id" else field for field in request.fields)
    (found,) = differences((request._replace(versions=Versions(4, 4), fields=fields),))
    assert (found.reason, "replica_id" in found.text) == (reason, True)


def test_record_sets_that_were_bytes_are_known() -> None:
    """With everything else that 2.2 had of the version."""

    def in_bytes(field: Field) -> Field:
        inner = tuple(map(in_bytes, field.fields))
        return field._replace(type="bytes" if field.type == "records" else field.type, fields=inner)

    (_, response) = definitions("Fetch")
    fields = tuple(map(in_bytes, response.fields))
    (found,) = differences((response._replace(versions=Versions(4, 4), fields=fields),))
    assert found.reason == "2.7 called them records; they are the same bytes"


def test_a_tagged_field_that_a_later_release_added_is_known_wherever_it_is() -> None:
    (release,) = parse("data ShareUpdateValue 0 flexible 0+\n" + SHARE_UPDATE)
    (found,) = differences((release,))
    assert found.text == "ShareUpdateValue version 0, delivery_complete_count: tag 0 is not in the release"
    assert "KIP-482" in found.reason


def test_the_shape_that_a_stored_message_had_on_trial_is_known() -> None:
    (release,) = parse("data ShareUpdateValue 0 flexible 0+\n" + SHARE_UPDATE.replace("epoch int32", "epoch uint16", 1))
    assert {found.reason.partition(",")[0] for found in differences((release,))} >= {"it is ShareUpdateValue@4.0"}
    assert all(found.reason for found in differences((release,)))
    (another,) = parse("data ShareUpdateValue 0 flexible 0+\n" + SHARE_UPDATE.replace("epoch int32", "epoch int8", 1))
    assert not all(found.reason for found in differences((another,)))


def test_a_tagged_field_that_only_the_release_has_is_a_difference() -> None:
    (request, _) = definitions("Fetch")
    (tagged,) = [field for field in request.fields if field.name == "cluster_id"]
    theirs = request._replace(versions=Versions(12, 12), fields=(*request.fields, tagged._replace(name="new", tag=9)))
    (found,) = differences((theirs,))
    assert (" new" in found.text, found.reason) == (True, "")
