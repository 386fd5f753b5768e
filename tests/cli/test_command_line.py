"""Ordinary command lines are read without click, and as click reads them."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kwiresniff.cli.click_commands import group
from kwiresniff.cli.command_line import values_of
from kwiresniff.cli.help import COMMANDS
from kwiresniff.cli.options import CaptureCommand, ReadOptions
from tests.support.capture_files import heartbeats, save
from tests.support.command import Run

FOUND = {name: import_module(f"kwiresniff.cli.{name}").command for name in COMMANDS}
READERS = {name: command for name, command in FOUND.items() if isinstance(command, CaptureCommand)}
FLAGS = sorted({flag for command in READERS.values() for option in command.options for flag in option.flags})
#: What stands behind options, sometimes behind the wrong ones, and where captures do.
TEXTS = (
    "a.pcap", "-", "", "--", "x y", "é", "table", "json", "jsonl", "tree", "summary", "always", "Always", "never",
    "error", "1", "007", "0", "-1", "+1", "1_0", "65535", "65536", "9" * 30, " 7", "\u0661", "10m", "03:04:05", "12:99",
    "2026-01-02T03:04:05Z", "soon", "api", "api,topic", "api+topic", "topic+partition", "api,,", "4.0", "api == Fetch",
    "=", "a=b", "-h", "--help", "--version", "-vv", "-qv", "-vqn", "-qx", "-vo", "-v-", "-o=json",
    "-ojson", "--filt", "--limit=", "--", "@file",
)  # fmt: skip
WORDS = st.one_of(
    st.sampled_from(TEXTS),
    st.sampled_from(FLAGS),
    st.builds("{}={}".format, st.sampled_from(FLAGS), st.sampled_from(TEXTS)),
)
#: An option with a text behind it, which mostly is one of its kind.
PAIRS = st.tuples(st.sampled_from(FLAGS), st.sampled_from(TEXTS))
LINES = st.one_of(
    st.lists(WORDS, max_size=6), st.lists(PAIRS, max_size=4).map(lambda pairs: [word for one in pairs for word in one])
)


def through_click(name: str, words: list[str]) -> dict[str, Any] | None:
    """The values that click finds; None where it has something else to say."""
    context = click.Context(group, info_name="kwiresniff", **group.context_settings)
    command = group.get_command(context, name)
    assert command is not None
    try:
        return command.make_context(name, list(words), parent=context).params
    except (click.ClickException, click.exceptions.Exit):
        return None


@given(name=st.sampled_from(sorted(READERS)), words=LINES, key=st.sampled_from([None, "", "k"]))
def test_a_line_that_is_read_without_click_has_the_values_that_click_finds(
    name: str, words: list[str], key: str | None
) -> None:
    """Of any words, in any order, right or wrong, and with a key in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("KWIRESNIFF_REDACT_KEY", raising=False)
        if key is not None:
            patch.setenv("KWIRESNIFF_REDACT_KEY", key)
        values = values_of(READERS[name].options, words)
        if values is not None:
            assert values == through_click(name, words)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("stats a.pcap", {"captures": ("a.pcap",), "by": (("api",),), "form": "table", "records": False}),
        ("stats --by=client,api+topic -o json -", {"by": (("client",), ("api", "topic")), "form": "json"}),
        ("read -r a -o summary b -r c", {"files": ("a", "c"), "captures": ("b",), "form": "summary"}),
        ("read a -v -q -v --port 9092 --port=9093", {"verbose": 2, "quiet": True, "port": (9092, 9093)}),
        ("doctor -vvq a -qnv", {"verbose": 3, "quiet": True, "numeric": True, "captures": ("a",)}),
        ("audit --target 4.0 a --limit 5 --limit 6", {"target": "4.0", "limit": 6, "plugin": ()}),
        ("export -O - a --redact --redact-key k", {"output": "-", "redact": True, "redact_key": "k"}),
    ],
)
def test_what_most_people_type_is_read_without_click(line: str, expected: dict[str, Any]) -> None:
    """Values that are typed here, and None or a default for what is not there."""
    name, *words = line.split()
    values = values_of(READERS[name].options, words)
    assert values is not None
    assert values.items() >= expected.items()
    assert {name for name in ReadOptions._fields if values[name] != getattr(ReadOptions(), name)} <= expected.keys()


@pytest.mark.parametrize(
    "line",
    ["stats --help", "stats -vo json a", "stats -ojson a", "stats -o=json a", "stats -- a", "stats --lim 3 a",
     "stats -o", "stats -o xml a", "stats --limit 0 a", "stats --limit -5 a", "stats --records=1 a", "audit a",
     "stats -vh a"],
)  # fmt: skip
def test_help_mistakes_and_what_is_seldom_typed_are_left_to_click(line: str) -> None:
    name, *words = line.split()
    assert values_of(READERS[name].options, words) is None


def test_every_command_that_reads_captures_does_without_click() -> None:
    """The others are click's own: live capture, and what reads no traffic."""
    assert FOUND.keys() - READERS.keys() == {"sniff", "decode", "schema", "pipeline", "plugins"}


@pytest.mark.parametrize(
    ("typed", "code", "said"),
    [
        (("stats",), 2, "kwiresniff: stats: missing argument 'CAPTURE...'; see 'kwiresniff stats --help'\n"),
        (("audit", "--target", "9.9", "{}"), 2, "kwiresniff: audit: invalid value for --target: "),
        (("stats", "-o", "xml", "{}"), 2, "kwiresniff: stats: invalid value for '-o': 'xml' is not one of "),
        (("export", "-O", "x.y", "{}"), 2, "kwiresniff: export: "),
        (("stats", "-Y", "api ==", "{}"), 2, "kwiresniff: filter: at column 7: "),
        (("stats", "/not/there"), 1, "kwiresniff: /not/there: "),
    ],
)
def test_a_mistake_reads_the_same_whoever_finds_it(
    kwiresniff: Run, tmp_path: Path, typed: tuple[str, ...], code: int, said: str
) -> None:
    """The command line read without click, and the same with ``-c99``, which only click reads."""
    capture = str(save(tmp_path / "a.pcap", heartbeats(2)))
    name, *rest = (word.replace("{}", capture) for word in typed)
    for more in ((), ("-c99",)):
        done = kwiresniff(name, *more, *rest)
        assert (done.code, done.out) == (code, "")
        assert done.err.startswith(said)
