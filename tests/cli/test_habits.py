"""Command lines as they are typed for tcpdump and tshark, and ``read -e``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.capture_files import save
from tests.support.command import Run
from tests.support.conversation import Wire, request, response
from tests.support.paths import CAPTURES

FIRST = str(CAPTURES / "first-look.pcap")


@pytest.mark.parametrize("line", [["-r", FIRST], ["-nr", FIRST], ["-Y", "api == Fetch", "-r", FIRST]])
def test_a_capture_is_read_without_a_subcommand(kwiresniff: Run, line: list[str]) -> None:
    assert kwiresniff(*line) == kwiresniff("read", *line)
    assert kwiresniff(*line).out


def test_a_capture_may_be_called_like_a_subcommand(
    kwiresniff: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an option says that it is a file."""
    monkeypatch.chdir(tmp_path)
    Path("stats").write_bytes(Path(FIRST).read_bytes())
    assert kwiresniff("-nr", "stats") == kwiresniff("read", "-r", "stats")
    assert kwiresniff("-q", "stats", "stats").code == 2  # -q is no option before a subcommand


def test_interfaces_are_listed_without_a_subcommand(kwiresniff: Run) -> None:
    """As ``tcpdump -D`` does; the loopback interface is always there."""
    done = kwiresniff("-D")
    assert done == kwiresniff("sniff", "-D") == kwiresniff("sniff", "--list-interfaces")
    assert (done.code, "\tlo\t" in done.out) == (0, True)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (["read", "--json", FIRST], "-o json"),
        (["-r", FIRST, "-T", "fields"], "-e FIELD"),
        (["-r", FIRST, "-z", "io,stat,1"], "stats"),
        (["stats", "-z", FIRST], "stats"),
        (["-z"], "stats"),
    ],
)
def test_options_of_others_are_answered_with_what_they_are_called(kwiresniff: Run, line: list[str], hint: str) -> None:
    done = kwiresniff(*line)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert hint in done.err


def test_an_option_that_nobody_has_is_answered_as_before(kwiresniff: Run) -> None:
    done = kwiresniff("read", "--jason", FIRST)
    assert (done.code, "--jason" in done.err) == (2, True)


def test_fields_are_those_of_the_json(kwiresniff: Run) -> None:
    names = ["time", "api", "api_version", "client", "latency", "size", "error", "request.body.topics.name"]
    options = [part for name in names for part in ("-e", name)]
    lines = kwiresniff("read", *options, FIRST).out.splitlines()
    found = [json.loads(line) for line in kwiresniff("read", "-o", "jsonl", FIRST).out.splitlines()]
    exchanges = [one for one in found if one["kind"] == "exchange"]
    assert len(lines) == len(exchanges)
    for line, one in zip(lines, exchanges, strict=True):
        time, api, version, client, latency, size, error, topics = line.split("\t")
        assert (time, api, int(version), client) == (
            one["request"]["time"], one["api"], one["api_version"], one["client"],
        )  # fmt: skip
        assert round(float(latency) * 1e9) == one["latency_ns"]
        assert int(size) == one["request"]["size_bytes"] + one["response"]["size_bytes"]
        assert error == (",".join(dict.fromkeys(each["name"] for each in one["errors"])) or "NONE")
        body_topics = one["request"]["body"].get("topics") or []
        assert topics == ",".join(topic["name"] for topic in body_topics if topic.get("name"))


def test_fields_of_a_filter_alone(kwiresniff: Run) -> None:
    done = kwiresniff("read", "-e", "client_id", "-Y", "api == CreateTopics", FIRST)
    assert done.out == "deploy\n"


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["-e", "nosuch"], "no field of that name"),
        (["-e", "request.body.topicz"], "near it"),
        (["-e", "api", "-o", "json"], "two forms of output"),
    ],
)
def test_a_mistake_in_fields_is_told(kwiresniff: Run, options: list[str], told: str) -> None:
    done = kwiresniff("read", *options, FIRST)
    assert (done.code, done.out, told in done.err) == (2, "", True)


def test_a_name_cannot_end_its_field(kwiresniff: Run, tmp_path: Path) -> None:
    """A client id with a tab, a newline and an escape sequence is one field of one line."""
    asked = request(18, 0, 1, b"", client="a\tb\nc\x1b[2J")
    wire = Wire().open().up(asked).down(response(1, b"\0\0\0\0\0\0")).close()
    done = kwiresniff("read", "-e", "client_id", "-e", "api", save(tmp_path / "a.pcap", wire))
    assert done.out == "a\\tb\\nc\\x1b[2J\tApiVersions\n"
