"""The forms of output that commands with tables have in common."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.capture_files import irc, save
from tests.support.command import Run
from tests.support.paths import CAPTURES

#: Every command that prints a table of what it has collected, with a recording of which it has something to tell.
COMMANDS = {
    "stats": "first-look.pcap",
    "clients": "first-look.pcap",
    "audit --target 4.0": "first-look.pcap",
    "topics": "java-group-consumer.pcapng",
    "groups": "java-group-consumer.pcapng",
    "producers": "java-transactions.pcap",
    "flows": "java-group-consumer.pcapng",
    "doctor --fail-on never": "java-sasl-plain.pcap",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_json_and_json_lines_have_the_same_objects(kwiresniff: Run, command: str) -> None:
    capture = str(CAPTURES / COMMANDS[command])
    lines = [json.loads(line) for line in kwiresniff(*command.split(), "-o", "jsonl", capture).out.splitlines()]
    assert lines and json.loads(kwiresniff(*command.split(), "-o", "json", capture).out) == lines
    assert {one["schema_version"] for one in lines} == {1}


@pytest.mark.parametrize("command", COMMANDS)
def test_without_kafka_there_is_nothing_and_that_is_said(kwiresniff: Run, command: str, tmp_path: Path) -> None:
    capture = save(tmp_path / "irc.pcap", irc())
    for form, text in (("table", ""), ("csv", ""), ("jsonl", ""), ("json", "[]\n")):
        done = kwiresniff(*command.split(), "-o", form, capture)
        assert (done.code, done.out) == (0, text)
        assert "no Kafka in it" in done.err
