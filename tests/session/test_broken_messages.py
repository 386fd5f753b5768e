"""Messages that break off: what is said of them, and of those that follow them on the same connection."""

from __future__ import annotations

import json
from pathlib import Path
from struct import pack
from typing import Any

import pytest

from tests.support.capture_files import save
from tests.support.command import Run
from tests.support.conversation import (
    HEARTBEAT_BODY,
    Wire,
    events,
    exchanges,
    heartbeat,
    heartbeat_response,
    request,
    response,
)

#: UNSUPPORTED_VERSION, and an array of one API, ApiVersions 0 to 3: what a broker answers whoever asks in a version
#: that it does not know, in version 0 whatever the request had (KIP-511).
REFUSED = pack(">h", 35) + pack(">i", 1) + pack(">hhh", 18, 0, 3)
CODE = {"path": "error_code", "code": 35, "name": "UNSUPPORTED_VERSION", "retriable": False}


def asked(path: Path, answer: bytes) -> str:
    """A capture in which ApiVersions v3 is answered with these bytes."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    wire.up(request(18, 3, 2, b"\2a\2b\0", tags=b"\0")).down(response(2, answer))
    return save(path / "refused.pcap", wire.close())


def answered(kwiresniff: Run, capture: str) -> Any:
    lines = map(json.loads, kwiresniff("read", "-o", "jsonl", capture).out.splitlines())
    return next(line for line in lines if line.get("api") == "ApiVersions")


def counted(kwiresniff: Run, capture: str) -> tuple[int, int]:
    """The errors of ApiVersions, and the answers by which a client is told to ask in another version."""
    rows = map(json.loads, kwiresniff("stats", "-o", "jsonl", capture).out.splitlines())
    row = next(row for row in rows if row.get("api") == "ApiVersions")
    return row["errors"], row["negotiation"]


@pytest.mark.parametrize("length", range(len(REFUSED) + 1))
def test_a_refusal_of_api_versions_that_breaks_off_is_one_as_far_as_its_code_is_there(
    length: int, kwiresniff: Run, tmp_path: Path
) -> None:
    """Version 0 begins with the code, in two bytes, which is negotiation; without it nobody knows what was answered."""
    capture = asked(tmp_path, REFUSED[:length])
    line = answered(kwiresniff, capture)
    broken = [problem["direction"] for problem in line["problems"]]
    assert broken == (["response"] if length < len(REFUSED) else [])
    if length < 2:
        assert (line["outcome"], line["errors"]) == ("undecoded", [])
        assert counted(kwiresniff, capture) == (0, 0)
    else:
        assert (line["outcome"], line["errors"], line["response"]["body"]["error_code"]) == ("error", [CODE], 35)
        assert counted(kwiresniff, capture) == (0, 1)


def test_what_follows_a_message_that_breaks_off_is_read_to_its_end() -> None:
    """Heartbeat v0 that is cut, one that is whole, and one with a byte too many: group, generation and member."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number, body in enumerate((HEARTBEAT_BODY[:-1], HEARTBEAT_BODY, HEARTBEAT_BODY + b"x"), 2):
        wire.up(request(12, 0, number, body)).down(heartbeat_response(number))
    _, cut, whole, longer = exchanges(events(wire.close(), depth="bodies"))
    fields = {"group_id": "group", "generation_id": 5, "member_id": "member"}
    assert [one.request.body for one in (whole, longer) if one.request is not None] == [fields, fields]
    said = [[problem.code for problem in one.problems] for one in (cut, whole, longer)]
    assert said == [["truncated"], [], ["trailing_bytes"]]


@pytest.mark.parametrize(("api_key", "version", "body"), [(12, 0, HEARTBEAT_BODY), (3, 12, b"\1\0\0\0")], ids=str)
def test_a_message_that_breaks_off_is_read_once_for_what_is_wrong_and_for_its_tree(
    api_key: int, version: int, body: bytes
) -> None:
    """Not where the answer may name topics, which the tree is to show (Metadata)."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    tags = b"\0" if api_key == 3 else b""
    wire.up(request(api_key, version, 2, body[:-1], tags=tags)).down(response(2, tags + b"\0"))
    found = events(wire.close(), depth="records", shown=True)
    _, cut = exchanges(found)
    assert cut.request is not None
    assert [problem.code for problem in cut.problems if (problem.details or {})["direction"] == "request"] == [
        "truncated"
    ]
    if api_key == 3:
        assert cut.request.dissection is None
    else:
        assert cut.request.dissection is not None
        assert cut.request.body == {"group_id": "group", "generation_id": 5}
        assert [node.name for node in cut.request.dissection.root.children] == [
            "group_id",
            "generation_id",
            "member_id",
        ]
