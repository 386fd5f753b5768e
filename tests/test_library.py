"""The library, used as programs use it: what it gives is what the commands print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import kwiresniff
from kwiresniff.export.encode import json_line
from tests.support.exported import exchanges, export
from tests.support.paths import CAPTURES

ROOT = Path(__file__).resolve().parent.parent
CAPTURE = CAPTURES / "first-look.pcap"


class Everything(kwiresniff.Sink):
    """Keeps a line for each event."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def on_exchange(self, exchange: kwiresniff.Exchange) -> None:
        self.events.append(exchange.api)

    def on_connection(self, connection: kwiresniff.Connection) -> None:
        self.events.append(connection.client)

    def on_problem(self, problem: kwiresniff.Problem) -> None:
        self.events.append(problem.code)


def test_exchanges_are_those_of_json_lines(tmp_path: Path) -> None:
    """In the same order, member by member."""
    printed = exchanges(export(tmp_path / "x.jsonl", CAPTURE))
    found = [json.loads(json_line(kwiresniff.event_json(one))) for one in kwiresniff.read(CAPTURE)]
    assert len(found) == 25
    assert found == printed


def test_a_filter_chooses_exchanges() -> None:
    """It looks into bodies where it has to."""
    found = list(kwiresniff.read([CAPTURE], filter="api == Produce and request.body.acks == -1", port=9092))
    assert found
    assert {one.api for one in found} == {"Produce"}


def test_a_sink_is_given_what_is_no_exchange_too(tmp_path: Path) -> None:
    """A capture that is cut off has its problem in its place: behind the last exchange, before the connections end."""
    path = tmp_path / "cut.pcap"
    path.write_bytes(CAPTURE.read_bytes()[:-10])
    sink = Everything()
    kwiresniff.read_into(sink, path)
    apis = [one.api for one in kwiresniff.read(path)]
    assert [event for event in sink.events if event in apis] == apis
    assert "capture_truncated" in sink.events or "capture_cut" in sink.events
    assert any(":" in event for event in sink.events)


def test_an_iterator_that_is_left_early_closes_the_file() -> None:
    """Whatever is left unread."""
    iterator = kwiresniff.read(CAPTURE)
    assert next(iterator).api
    iterator.close()  # type: ignore[attr-defined]
    assert list(iterator) == []


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        ({"captures": "/nowhere.pcap"}, "/nowhere.pcap: "),
        ({"captures": CAPTURE, "filter": "api = Produce"}, "=="),
        ({"captures": CAPTURE, "topics": "/nowhere.txt"}, "/nowhere.txt: "),
        ({"captures": []}, "no capture named"),
        ({"captures": CAPTURE, "decode_as": "vxlan"}, "decode_as: 'vxlan' is not"),
    ],
)
def test_what_is_wrong_is_raised_by_the_call_in_one_line(arguments: dict[str, object], what: str) -> None:
    """Before anything is read."""
    with pytest.raises(kwiresniff.KwiresniffError, match=re.escape(what)) as raised:
        kwiresniff.read(**arguments)  # type: ignore[arg-type]
    assert "\n" not in str(raised.value)


def test_record_keys_and_values_are_redacted() -> None:
    """As by --redact-key: a length and a hash stand in their place."""
    (produced, *_) = kwiresniff.read(CAPTURE, redact_key="k", filter="api == Produce")
    assert produced.request is not None and produced.request.body is not None
    records = produced.request.body["topic_data"][0]["partition_data"][0]["records"][0]["records"]
    assert set(records[0]["value"]) == {"redacted", "size_bytes", "hash"}


def test_importing_the_package_imports_no_reader() -> None:
    """Commands, which import it too, start without most of it; names that are not there are named as Python does."""
    code = "import sys, kwiresniff; assert 'kwiresniff.session' not in sys.modules; kwiresniff.read; kwiresniff.nothing"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert "AttributeError: module 'kwiresniff' has no attribute 'nothing'" in done.stderr
    assert set(kwiresniff.__all__) <= set(dir(kwiresniff))


@pytest.mark.parametrize("number", [0, 1])
def test_the_examples_of_the_page_run(number: int) -> None:
    """As they stand there."""
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    example = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[number]
    done = subprocess.run([sys.executable, "-c", example], check=True, cwd=ROOT, capture_output=True, text=True)
    assert ("CreateTopics" if number == 0 else "client") in done.stdout
    assert not done.stderr


@pytest.mark.parametrize("redact_key", [None, "k"])
def test_plugins_decode_what_programs_read(redact_key: str | None, tmp_path: Path) -> None:
    """Filters lead into it, and --redact takes it away; without plugins nothing is decoded."""
    (tmp_path / "loud.py").write_text(
        "def register(hooks):\n"
        "    hooks.value_decoder(lambda topic, part, data, headers: {'loud': data.decode().upper()})\n"
        "    hooks.annotator(lambda exchange: 1 / 0)\n"
    )
    sink = Everything()
    found = "record.key.loud == EDSGER"
    kwiresniff.read_into(sink, CAPTURE, filter=found, plugins=[tmp_path / "loud.py"], redact_key=redact_key)
    assert sink.events[:2] == ["Produce", "plugin_failed"]
    (seen, _) = kwiresniff.read(CAPTURE, filter=found, plugins=[tmp_path], redact_key=redact_key)
    assert seen.request is not None and seen.request.body is not None
    (batch,) = seen.request.body["topic_data"][0]["partition_data"][0]["records"]
    decoded = {"key": {"plugin": "loud", "data": {"loud": "EDSGER"}}}
    assert batch["records"][2].get("decoded", {}).get("key") == (None if redact_key else decoded["key"])
    assert list(kwiresniff.read(CAPTURE, filter=found)) == []


def test_one_rule_or_plugin_needs_no_list() -> None:
    """A text is one rule, and not its letters."""
    plugin = ROOT / "plugins" / "json_values.py"
    asked = "record.value.customer == ada and api == Produce"
    assert len(list(kwiresniff.read(CAPTURE, filter=asked, plugins=str(plugin)))) == 1
    found = list(kwiresniff.read(CAPTURE, filter=asked, value_formats="json", decode_as="udp.port==8473,vxlan"))
    assert len(found) == 1
