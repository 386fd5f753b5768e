"""``kwiresniff decode``: single messages.

The bytes are frames of a recording, whose bodies other tests hold to the broker's own log.
"""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange, Message
from kwiresniff.session import Analyzer
from tests.support.command import Run
from tests.support.events import analyze_with

CAPTURE = str(Path(__file__).resolve().parents[2] / "captures" / "first-look.pcap")
#: The protocol guide's request header v1 around an ApiVersions v0 request: key 18, version 0, id 1, client "cli".
API_VERSIONS_V0 = "0012 0000 00000001 0003 636c69"
#: Metadata v1 request: an array of one topic, "a".
METADATA_V1 = "00000001 0001 61"


def messages() -> Iterator[tuple[Exchange, str, Message]]:
    for event in analyze_with(Analyzer("records"), open_captures([CAPTURE], stdin=io.BytesIO())):
        if isinstance(event, Exchange):
            for direction, message in (("request", event.request), ("response", event.response)):
                if message is not None:
                    yield event, direction, message


@pytest.fixture
def bodies(kwiresniff: Run) -> Iterator[dict[str, Any]]:
    """The bodies as ``read`` prints them, in the order of ``messages``."""
    lines = map(json.loads, kwiresniff("read", "-o", "jsonl", CAPTURE).out.splitlines())
    return (
        one[side]["body"] for one in lines if one["kind"] == "exchange" for side in ("request", "response") if one[side]
    )


@pytest.mark.parametrize("start", ["body", "header", "length"])
def test_a_message_reads_as_it_does_in_its_capture(
    kwiresniff: Run, bodies: Iterator[dict[str, Any]], tmp_path: Path, start: str
) -> None:
    file = tmp_path / "message.bin"
    for (exchange, direction, message), body in zip(messages(), bodies, strict=True):
        frame = message.frame
        assert frame is not None
        length = len(frame).to_bytes(4, "big")
        file.write_bytes({"body": frame[message.body_offset :], "header": frame, "length": length + frame}[start])
        given = ["--api", exchange.api, "--version", str(message.version), f"--{direction}", "--from", start]
        done = kwiresniff("decode", "--file", str(file), "--input", "raw", "-o", "json", *given)
        found = json.loads(done.out)
        assert (done.code, found["body"], found["problems"]) == (0, body, [])
        if start != "body":
            assert found["header"]["correlation_id"] == exchange.correlation_id


def test_what_the_bytes_begin_with_is_found_out(kwiresniff: Run) -> None:
    framed = f"0000000d {API_VERSIONS_V0}"
    for data in (API_VERSIONS_V0, framed, framed.replace(" ", ":"), "0x" + framed.replace(" ", "")):
        found = json.loads(kwiresniff("decode", "-o", "json", data).out)
        assert (found["api"], found["api_version"], found["size_bytes"]) == ("ApiVersions", 0, 13)
        assert found["header"] == {"header_version": 1, "correlation_id": 1, "client_id": "cli"}
    body = json.loads(kwiresniff("decode", "-o", "json", "--api", "3", "--version", "1", METADATA_V1).out)
    assert (body["body"], body["header"]) == ({"topics": [{"name": "a"}]}, None)


def test_base64_is_understood(kwiresniff: Run) -> None:
    data = base64.b64encode(bytes.fromhex(API_VERSIONS_V0)).decode()
    assert json.loads(kwiresniff("decode", "-o", "json", data).out)["api"] == "ApiVersions"


def test_the_tree_names_the_message_and_its_fields(kwiresniff: Run) -> None:
    done = kwiresniff("decode", "--api", "Metadata", "--version", "1", METADATA_V1)
    assert done.code == 0
    assert done.out.splitlines()[0].startswith("Metadata v1 request  7 B")
    assert "topics" in done.out
    assert "00 00 00 01" in kwiresniff("decode", "--api", "Metadata", "--version", "1", "-vv", METADATA_V1).out


def test_a_message_that_does_not_fit_is_decoded_as_far_as_it_goes(kwiresniff: Run) -> None:
    done = kwiresniff("decode", "--api", "Metadata", "--version", "1", "-o", "json", METADATA_V1 + "ff")
    assert (done.code, [problem["code"] for problem in json.loads(done.out)["problems"]]) == (1, ["trailing_bytes"])
    done = kwiresniff("decode", "--api", "Metadata", "--version", "1", "7fffffff000161")
    assert done.code == 1
    assert "2147483647" in done.out


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        ((), 2, "give the message as DATA or with --file"),
        (("zz-not-hex!",), 2, "is not a notation that is known"),
        (("",), 2, "is empty"),
        (("--response", "00000001"), 1, "a response does not say what it answers"),
        (("--from", "body", "00000001"), 1, "a body does not say what it is"),
        (("--api", "Nonsense", "00"), 2, "Nonsense"),
        (("--api", "Fetch", "--version", "99", "00"), 1, "Fetch has no version 99"),
        (("00120000000000010003",), 1, "too early"),
        (("--from", "length", "00000003" + API_VERSIONS_V0), 1, "a length of 3 before 13 bytes"),
        (("--api", "Fetch", "--from", "header", API_VERSIONS_V0), 1, "API key 18 in the header, 1 was asked for"),
        (("--file", "/nowhere/message.bin"), 1, "/nowhere/message.bin: No such file"),
    ],
)
def test_a_mistake_is_one_line(kwiresniff: Run, args: tuple[str, ...], code: int, says: str) -> None:
    done = kwiresniff("decode", *args)
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1)
    assert says in done.err


def test_secrets_are_withheld(kwiresniff: Run) -> None:
    # SaslAuthenticate v0 with the PLAIN token of RFC 4616's example.
    token = b"\x00tim\x00tanstaaftanstaaf"
    data = (len(token).to_bytes(4, "big") + token).hex()
    given = ["decode", "--api", "SaslAuthenticate", "--version", "0", data]
    for more in ((), ("-o", "json"), ("-vv",)):
        assert "tanstaaf" not in kwiresniff(*given, *more).out
    assert "tanstaaf" in kwiresniff(*given, "--show-secrets", "-o", "json").out
