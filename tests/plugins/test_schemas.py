"""Decoders that name schemas, learn them from the capture, and refuse what does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.analysis.body_entities import record_sets
from kwiresniff.analysis.sinks import Observed
from kwiresniff.identity.clusters import Clusters
from kwiresniff.model import Exchange, Sink
from kwiresniff.plugins import Decoded, DoesNotFit, Hooks, Plugin, Plugins
from kwiresniff.plugins.answers import MAX_REASON_CHARS
from kwiresniff.plugins.misfits import MAX_MISFIT_PROBLEMS
from kwiresniff.plugins.sinks import DecodingSink, SchemaLearner
from tests.support.command import Done
from tests.support.exchanges import exchange

REAL = str(Path(__file__).parents[2] / "captures" / "first-look.pcap")


def loaded(register: Callable[[Hooks], Any]) -> Plugins:
    plugin = Plugin("mine", "here")
    register(Hooks(plugin))
    return Plugins([plugin])


def no_name(topic_id: str) -> None:
    return None


def produce(*values: bytes, topic: str = "orders", base_offset: int = 40) -> Exchange:
    records: list[dict[str, Any]] = [
        {"offset": number, "key": None, "value": one, "headers": []} for number, one in enumerate(values)
    ]
    partition = {"index": 3, "records": [{"base_offset": 0, "records": records}]}
    answer = {"index": 3, "error_code": 0, "base_offset": base_offset}
    return exchange(
        "Produce", 0, 9,
        request={"topic_data": [{"name": topic, "partition_data": [partition]}]},
        response={"responses": [{"name": topic, "partition_responses": [answer]}]},
    )  # fmt: skip


def records_of(given: Exchange) -> list[dict[str, Any]]:
    assert given.request is not None
    ((_, _, batches),) = record_sets(given.request.body)
    return [record for batch in batches for record in batch["records"]]


def refuse(topic: str | None, part: str, data: bytes, headers: Any) -> Any:
    if data.startswith(b"bad"):
        raise DoesNotFit(data.decode(), "ends in the middle of field id")
    return None


def passed(plugins: Plugins, given: Exchange) -> Exchange:
    DecodingSink(Sink(), plugins, no_name, Clusters()).on_exchange(given)
    return given


@pytest.mark.parametrize(
    ("answer", "member"),
    [
        (Decoded({"id": 7}, "orders-value", "avro"), {"format": "avro", "schema": "orders-value", "data": {"id": 7}}),
        (Decoded([1], 5), {"schema": 5, "data": [1]}),
        (Decoded("x", format="text"), {"format": "text", "data": "x"}),
        (Decoded(None), {"data": None}),
    ],
)
def test_a_decoder_tells_format_and_schema(answer: Decoded, member: dict[str, Any]) -> None:
    """They stand between the plugin's name and the data."""
    given = passed(loaded(lambda hooks: hooks.value_decoder(lambda *_: answer)), produce(b"x"))
    (record,) = records_of(given)
    assert record["decoded"]["value"] == {"plugin": "mine", **member}
    assert list(record["decoded"]["value"]) == ["plugin", *member]


@pytest.mark.parametrize("answer", [Decoded(1, schema=b"x"), Decoded(1, format=3.5), Decoded(1, schema=True)])  # type: ignore[arg-type]
def test_a_schema_that_is_no_name_is_the_plugin_s_failure(answer: Decoded) -> None:
    """It would not be found in any registry."""
    plugins = loaded(lambda hooks: hooks.value_decoder(lambda *_: answer))
    assert plugins.decode("t", "value", b"x", []) is None
    assert [problem.code for problem in plugins.take_problems()] == ["plugin_failed"]


def test_what_does_not_fit_is_a_problem_of_the_exchange_and_no_failure() -> None:
    """With the place of the first record, by the offset that the broker gave it, and how many there are."""
    plugins = loaded(lambda hooks: hooks.value_decoder(refuse))
    given = passed(plugins, produce(b"fine", b"bad-1", b"bad-1", b"bad-2"))
    first, second = given.problems
    assert first.code == second.code == "payload_does_not_fit"
    assert first.message == (
        "the value at offset 41 of orders-3 names schema bad-1 and does not fit it: ends in the middle of field id; "
        "1 more do not fit it either"
    )
    assert first.path == "topic_data[0].partition_data[0].records[0].records[1].value"
    assert first.details == {
        "direction": "request", "topic": "orders", "partition": 3, "record_offset": 41, "part": "value",
        "schema": "bad-1", "plugin": "mine", "records": 2,
    }  # fmt: skip
    assert second.details is not None and second.details["records"] == 1
    assert plugins.take_problems() == []
    assert plugins.decoders[0].failures == 0


def test_what_another_decoder_reads_fits() -> None:
    """Bytes may look as if they named a schema."""

    def register(hooks: Hooks) -> None:
        hooks.value_decoder(refuse)
        hooks.value_decoder(lambda *_: 1)

    assert passed(loaded(register), produce(b"bad-1")).problems == []


def test_problems_of_one_exchange_are_bounded() -> None:
    """The last one counts the records for which there is no room."""
    values = [b"bad-%d" % number for number in range(MAX_MISFIT_PROBLEMS + 5)]
    given = passed(loaded(lambda hooks: hooks.value_decoder(refuse)), produce(*values))
    assert len(given.problems) == MAX_MISFIT_PROBLEMS
    assert given.problems[-1].details is not None and given.problems[-1].details["records"] == 6


def test_a_reason_is_as_long_as_anybody_reads() -> None:
    """Schema and reason may be words of the payload."""
    error = DoesNotFit("s" * 10_000, "w" * 10_000)
    assert (len(error.schema), len(error.why)) == (MAX_REASON_CHARS, MAX_REASON_CHARS)


class Registry:
    """Learns what a schema is called by its id."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.told: list[tuple[str, bytes | None, bytes | None]] = []

    def learn(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        self.told.append((topic, key, value))
        found = json.loads(value or b"{}")
        self.names[found["id"]] = found["subject"]

    def __call__(self, topic: str | None, part: str, data: bytes, headers: Any) -> Any:
        return Decoded(data[5:].decode(), self.names[data[4]]) if data[0] == 0 and data[4] in self.names else None


def test_schemas_are_learned_from_the_records_of_their_topic() -> None:
    """Of other topics nothing is learned; what fails is the plugin's failure."""
    registry = Registry()
    plugins = loaded(lambda hooks: hooks.value_decoder(registry))
    clusters = Clusters()
    learner = SchemaLearner(plugins, no_name, clusters)
    sink = Observed(DecodingSink(Sink(), plugins, no_name, clusters), learner.learn)
    payload = b"\x00\x00\x00\x00\x07hello"
    before, after = produce(payload), produce(payload)
    sink.on_exchange(before)
    sink.on_exchange(produce(b'{"subject": "wrong", "id": 7}', topic="other"))
    sink.on_exchange(produce(b'{"subject": "orders-value", "id": 7}', topic="_schemas"))
    sink.on_exchange(after)
    sink.on_exchange(produce(b"no json", topic="_schemas"))
    assert registry.told[0] == ("_schemas", None, b'{"subject": "orders-value", "id": 7}')
    assert "decoded" not in records_of(before)[0]
    assert records_of(after)[0]["decoded"]["value"] == {"plugin": "mine", "schema": "orders-value", "data": "hello"}
    assert [problem.code for problem in plugins.take_problems()] == ["plugin_failed"]


PICKY = """
from kwiresniff.plugins import Decoded, DoesNotFit

class Picky:
    def __init__(self):
        self.orders = 0
    def learn(self, topic, key, value):
        pass
    def __call__(self, topic, part, data, headers):
        if part == "key":
            return Decoded(data.decode().upper(), 3, "shout")
        if b"grace" in data:
            raise DoesNotFit("orders-value", "customer is " + data.decode())

def register(hooks):
    hooks.value_decoder(Picky(), "picky")
"""


@pytest.fixture
def picky(tmp_path: Path) -> str:
    (tmp_path / "picky.py").write_text(PICKY)
    return str(tmp_path / "picky.py")


def test_the_doctor_names_who_wrote_what_does_not_fit(kwiresniff: Callable[..., Done], picky: str) -> None:
    """Once: the consumer that is given the same record is not named."""
    done = kwiresniff("doctor", "-o", "jsonl", "--plugin", picky, REAL)
    (found,) = (one for one in map(json.loads, done.out.splitlines()) if one["code"] == "payload_does_not_fit")
    assert (found["severity"], found["subject"]) == ("warning", "topic orders")
    assert found["title"] == "shop 10.9.0.2 writes 1 record that names orders-value and does not fit it"
    assert found["numbers"]["records"] == 1


@pytest.mark.parametrize("more", [[], ["-v"]])
def test_a_tree_shows_what_was_decoded_and_what_does_not_fit(
    more: list[str], kwiresniff: Callable[..., Done], picky: str
) -> None:
    """From values, and from nodes."""
    out = kwiresniff("read", *more, "--plugin", picky, "-Y", "api == Produce", REAL).out
    assert "ADA (picky: shout, 3) → " in out
    assert "names schema orders-value and does not fit it: customer is" in out


def test_a_filter_finds_what_a_plugin_decoded(kwiresniff: Callable[..., Done], picky: str) -> None:
    """The decoder is asked before the filter; without it no record has such a key."""
    filtered = ["read", "-o", "jsonl", "-Y", "record.key == EDSGER", REAL]
    found = [json.loads(line) for line in kwiresniff(*filtered, "--plugin", picky).out.splitlines()]
    assert [one["api"] for one in found if one["kind"] == "exchange"] == ["Produce", "Fetch"]
    assert kwiresniff(*filtered).out == ""


def test_what_does_not_fit_counts_as_a_problem(kwiresniff: Callable[..., Done], picky: str) -> None:
    """In every form of output, with --strict."""
    assert kwiresniff("read", "-o", "summary", "--strict", "--plugin", picky, REAL).code == 1


HARMFUL = """
from kwiresniff.plugins import Decoded, DoesNotFit
BAD = "\\x1b[31m\\x07\\u202e[bold]"

def decode(topic, part, data, headers):
    if b"grace" in data:
        raise DoesNotFit(BAD, BAD)
    return Decoded({BAD: BAD}, BAD, BAD) if part == "key" else Decoded(BAD, BAD, BAD)

def register(hooks):
    hooks.value_decoder(decode)
"""


@pytest.mark.parametrize("form", [["read"], ["read", "-v"], ["read", "-vv"], ["read", "-o", "jsonl"], ["doctor", "-v"]])
def test_what_a_plugin_takes_from_the_wire_reaches_no_terminal_as_it_is(
    form: list[str], kwiresniff: Callable[..., Done], tmp_path: Path
) -> None:
    """Data, format, schema and reason may all be words of a record."""
    (tmp_path / "harmful.py").write_text(HARMFUL)
    done = kwiresniff(*form, "--plugin", str(tmp_path / "harmful.py"), REAL)
    said = done.out + done.err
    assert not {"\x1b", "\x07", "\u202e"}.intersection(said)
    assert "[bold]" in said
