"""With --redact nothing of a record is shown by way of plugins."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import Done

REAL = str(Path(__file__).parents[2] / "captures" / "first-look.pcap")
#: Words of keys and values of the recording that nothing else in it has. The key of the hashes is fixed: with one made
#: up, some hash has ``1003`` in it by chance.
WORDS = ("edsger", "grace", "barbara", "currency", "19.9", "1003", "RUTRHR1I=")

#: Says words of records in every way that a decoder has.
TALKATIVE = """
import json
from kwiresniff.plugins import Decoded, DoesNotFit

class Talkative:
    def learn(self, topic, key, value):
        raise ValueError(value)
    def __call__(self, topic, part, data, headers):
        if b"grace" in data:
            raise DoesNotFit(data.decode(), data.decode())
        if b"barbara" in data:
            raise ValueError(data.decode())
        if part == "key":
            return Decoded(data, data.decode(), "text")
        return Decoded(json.loads(data), "of " + data.decode(), "json")

def register(hooks):
    hooks.value_decoder(Talkative())
    hooks.annotator(lambda exchange: [str(exchange.request and exchange.request.body), str(exchange.problems)])
"""
#: Leaves the order's number alone, and fails where the customer is tony.
CAREFUL = """
def leave(topic, part, data):
    if part == "key":
        return None
    if data["customer"] == "tony":
        raise ValueError(str(data))
    return {"order": data["order"], "topic": topic}

def register(hooks):
    hooks.redactor(leave)
"""

FORMS = [
    ["read"], ["read", "-v"], ["read", "-vv"], ["read", "-o", "summary", "--strict"], ["read", "-o", "jsonl"],
    ["read", "-o", "json"], ["read", "-Y", "record.value.customer == edsger"], ["doctor", "-v"],
    ["doctor", "-o", "json"], ["topics", "--strict"], ["flows", "-o", "json", "--strict"], ["stats", "--strict"],
    ["export", "-O", "x.jsonl"], ["export", "-O", "x.json"], ["export", "-O", "x.csv"], ["export", "-O", "x.jsonl.gz"],
    pytest.param(["export", "-O", "x.parquet"], marks=pytest.mark.slow),
    pytest.param(["report", "-O", "x.html"], marks=pytest.mark.slow),
]  # fmt: skip


@pytest.fixture
def talkative(tmp_path: Path) -> str:
    (tmp_path / "talkative.py").write_text(TALKATIVE)
    return str(tmp_path / "talkative.py")


def everything(done: Done, folder: Path) -> str:
    """What a run printed, on both streams, and the file that it wrote."""
    files = [path.read_bytes() for path in folder.glob("x.*")]
    texts = [(gzip.decompress(one) if one.startswith(b"\x1f\x8b") else one).decode("latin-1") for one in files]
    return "".join([done.out, done.err, *texts])


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_no_output_quotes_a_record(
    form: list[str], kwiresniff: Callable[..., Done], talkative: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither decoded values, nor schemas, nor what does not fit, nor what a decoder raises."""
    monkeypatch.chdir(tmp_path)
    done = kwiresniff(*form, "--redact-key", "k", "--plugin", talkative, REAL)
    said = everything(done, tmp_path)
    assert [word for word in WORDS if word in said] == []


def test_the_words_are_there_without_it(kwiresniff: Callable[..., Done], talkative: str) -> None:
    """The test above would find them."""
    done = kwiresniff("read", "-o", "jsonl", "--plugin", talkative, REAL)
    assert [word for word in WORDS[:-1] if word not in done.out + done.err] == []


def test_what_does_not_fit_is_told_without_words_of_it(kwiresniff: Callable[..., Done], talkative: str) -> None:
    """Neither schema nor reason: where it is, and how many there are."""
    done = kwiresniff("read", "-o", "jsonl", "--redact", "--plugin", talkative, "-Y", "api == Produce", REAL)
    seen = json.loads(done.out.splitlines()[0])
    (first, second) = (one for one in seen["problems"] if one["code"] == "payload_does_not_fit")
    assert first["message"] == "the key at offset 1 of orders-0 does not fit the schema that it names"
    assert (second["part"], second["schema"], second["records"]) == ("value", None, 1)


def decoded_orders(text: str) -> list[Any]:
    events = [json.loads(line) for line in text.splitlines()]
    (seen,) = (one for one in events if one.get("api") == "Produce")
    batch = seen["request"]["body"]["topic_data"][0]["partition_data"][0]["records"][0]
    return [one.get("decoded") for one in batch["records"]]


def test_a_redactor_says_what_is_left(kwiresniff: Callable[..., Done], talkative: str, tmp_path: Path) -> None:
    """The schema is not; where it fails, nothing is."""
    (tmp_path / "careful.py").write_text(CAREFUL)
    plugins = ["--plugin", talkative, "--plugin", str(tmp_path / "careful.py")]
    done = kwiresniff("read", "-o", "jsonl", "--redact", *plugins, REAL)
    left = {"plugin": "talkative", "format": "json", "redacted": True}
    assert decoded_orders(done.out) == [
        {"value": {**left, "data": {"order": 1001, "topic": "orders"}}},
        None,
        {"value": {**left, "data": {"order": 1003, "topic": "orders"}}},
        None,
        None,
    ]
    assert "redactor leave raised ValueError;" in done.out
    assert "tony" not in done.out + done.err
    for more in ([], ["-v"]):
        tree = kwiresniff("read", "--redact", *more, *plugins, REAL).out
        assert '{"order": 1003, "topic": "orders"}' in tree
        assert "edsger" not in tree


def test_without_redact_a_redactor_is_not_asked(
    kwiresniff: Callable[..., Done], talkative: str, tmp_path: Path
) -> None:
    """It says what --redact leaves."""
    (tmp_path / "careful.py").write_text(CAREFUL)
    done = kwiresniff("read", "-o", "jsonl", "--plugin", talkative, "--plugin", str(tmp_path / "careful.py"), REAL)
    assert decoded_orders(done.out)[0]["value"]["data"]["customer"] == "ada"
