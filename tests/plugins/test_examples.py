"""The worked examples work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.plugins.loading import load_plugins
from tests.support.command import Done
from tests.support.exchanges import exchange

ROOT = Path(__file__).parents[2]
JSON_VALUES = str(ROOT / "plugins" / "json_values.py")
COMMIT_AUDIT = str(ROOT / "plugins" / "commit_audit.py")
REAL = str(ROOT / "captures" / "first-look.pcap")


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"order": 1, "items": [null, 1.5]}', {"order": 1, "items": [None, 1.5]}),
        (b"[1, 2]", [1, 2]),
        (b"5", None),
        (b"{nearly", None),
        (b"\xff\xfe", None),
        (b"[" * 100_000, None),
    ],
)
def test_json_values_are_shown_as_json(data: bytes, expected: Any) -> None:
    plugins = load_plugins([JSON_VALUES])
    found = plugins.decode("t", "value", data, [])
    assert found == (None if expected is None else ("json_values", expected))
    assert plugins.take_problems() == []


def commit(offset: int, **more: Any) -> Any:
    partitions = [{"partition_index": 0, "committed_offset": offset}]
    body = {"group_id": "g", "topics": [{"name": "orders", "partitions": partitions}]}
    return exchange("OffsetCommit", 8, 8, request=body, **more)


def test_a_commit_that_moves_back_is_a_problem() -> None:
    plugins = load_plugins([COMMIT_AUDIT])
    said = []
    for given in (commit(5), commit(9), commit(7), commit(1, outcome="error"), commit(8), exchange()):
        plugins.annotate(given)
        said += [problem.message for problem in given.problems]
    assert said == ["group g moves orders-0 back from 9 to 7"]
    assert plugins.take_problems() == []


def test_decoded_values_stand_in_the_output_of_read(kwiresniff: Callable[..., Done]) -> None:
    done = kwiresniff("read", "-o", "jsonl", "--plugin", JSON_VALUES, "-Y", "api == Produce", REAL)
    record = json.loads(done.out.splitlines()[0])["request"]["body"]["topic_data"][0]["partition_data"][0]["records"][
        0
    ]["records"][0]
    assert record["decoded"]["value"] == {"plugin": "json_values", "data": json.loads(record["value"])}
    assert "(json_values)" in kwiresniff("read", "--plugin", JSON_VALUES, "-Y", "api == Produce", REAL).out


def test_decoders_see_nothing_that_is_redacted(kwiresniff: Callable[..., Done]) -> None:
    for form in ("jsonl", "tree"):
        done = kwiresniff("read", "-o", form, "--redact", "--plugin", JSON_VALUES, "-Y", "api == Produce", REAL)
        assert done.code == 0
        assert "json_values" not in done.out


def test_real_commits_only_move_forward(kwiresniff: Callable[..., Done]) -> None:
    assert kwiresniff("read", "-o", "summary", "--strict", "--plugin", COMMIT_AUDIT, REAL).code == 0


def test_the_plugins_command_lists_what_is_loaded(kwiresniff: Callable[..., Done]) -> None:
    rows = json.loads(kwiresniff("plugins", "-o", "json", "--plugin", JSON_VALUES, "--plugin", COMMIT_AUDIT).out)
    assert rows[0] == {
        "plugin": "json_values",
        "origin": JSON_VALUES,
        "adds": "value decoder",
        "name": "decode",
        "summary": "Objects and arrays in JSON.",
    }
    assert rows[1]["adds"] == "annotator"
    table = kwiresniff("plugins", "--plugin", COMMIT_AUDIT)
    assert table.code == 0
    assert "commit_audit" in table.out
    assert kwiresniff("plugins").out.startswith("no plugins; ")


def test_a_plugin_that_fails_is_told_and_the_reading_goes_on(kwiresniff: Callable[..., Done], tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("def register(hooks):\n    hooks.annotator(lambda exchange: 1 / 0)\n")
    whole = kwiresniff("read", "-o", "summary", REAL)
    done = kwiresniff("read", "-o", "summary", "--plugin", str(broken), REAL)
    assert (done.code, done.out) == (0, whole.out)
    assert [line.split(":")[0] for line in done.err.splitlines()] == ["kwiresniff"] * 2
    assert "ZeroDivisionError" in done.err.splitlines()[0]
    assert "switched off" in done.err.splitlines()[1]
    assert kwiresniff("read", "-q", "--strict", "--plugin", str(broken), REAL).code == 1


def test_client_names_is_an_observer_and_a_cause_of_the_doctor(kwiresniff: Callable[..., Done]) -> None:
    """Its finding stands among the others."""
    capture = str(ROOT / "captures" / "leftovers" / "librdkafka-mock.pcap")
    plugin = str(ROOT / "plugins" / "client_names.py")
    hooks = [(hook.kind, hook.name) for hook in load_plugins([plugin]).examiners]
    assert hooks == [("doctor observer", "ClientNames"), ("doctor cause", "default_client_id")]
    done = kwiresniff("doctor", "--plugin", plugin, "--fail-on", "never", capture)
    assert (done.code, "goes by the name that its library came with" in done.out) == (0, True)


def test_an_observer_that_raises_is_told_and_the_examination_goes_on(
    kwiresniff: Callable[..., Done], tmp_path: Path
) -> None:
    """One that raises, or returns what is no observation, is reported, and the others go on."""
    (tmp_path / "bad.py").write_text(
        "class Bad:\n"
        "    apis = None\n"
        "    def __init__(self, context): pass\n"
        "    def exchange(self, exchange): raise ValueError('no')\n"
        "    def observations(self): return ['this']\n"
        "def register(hooks): hooks.doctor_observer(Bad)\n"
    )
    capture = str(ROOT / "captures" / "java-sasl-plain.pcap")
    done = kwiresniff("doctor", "--plugin", str(tmp_path / "bad.py"), capture)
    assert done.code == 1
    assert "doctor observer Bad raised ValueError: no" in done.err
    assert "SASL_AUTHENTICATION_FAILED" in done.out


SEEN = """
from kwiresniff.analysis.doctor import Cause, Explanation, Harm, Observation, Observer

class Seen(Observer):
    kinds = ("seen",)
    def observations(self):
        yield Observation("seen", frozenset({"topic:orders"}), "orders was seen", harm=Harm(records_unread=1))

class Because(Cause):
    codes = ("because",)
    def weigh(self, observed):
        for one in observed.of("seen"):
            yield Explanation("because", "orders", "is seen", "look away", (one,), supports=("eyes",))

class Wrong(Cause):
    def weigh(self, observed):
        yield "nothing"

def register(hooks):
    hooks.doctor_observer(Seen)
    hooks.doctor_cause(Because)
    hooks.doctor_cause(Wrong)
"""


def test_observers_and_causes_of_plugins_take_part_in_the_judgement(
    kwiresniff: Callable[..., Done], tmp_path: Path
) -> None:
    """With -v their sentences are told; one that gives what is no explanation is reported."""
    plugin = tmp_path / "seen.py"
    plugin.write_text(SEEN)
    capture = str(ROOT / "captures" / "librdkafka-sasl-plain.pcap")
    done = kwiresniff("doctor", "-v", "-o", "jsonl", "--plugin", str(plugin), capture)
    found = {one["code"]: one for one in map(json.loads, done.out.splitlines())}["because"]
    assert (found["severity"], found["topics"]) == ("warning", ["orders"])
    assert (found["observed"], found["supports"], found["contradicts"]) == (["orders was seen"], ["eyes"], [])
    assert "doctor cause Wrong failed: str is no Explanation" in done.err
    plain = kwiresniff("doctor", "-o", "jsonl", "--plugin", str(plugin), capture).out
    assert not any("observed" in json.loads(line) for line in plain.splitlines())
