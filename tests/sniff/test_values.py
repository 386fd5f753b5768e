"""``sniff --schemas`` and ``sniff --plugin``: values are decoded while they pass."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.paths import CAPTURES
from tests.support.replay import conversations, listener, say
from tests.support.sniffing import FIRST_LOOK, Sniffer, capturing, objects, read

Start = Callable[..., Sniffer]
SERDES = str(CAPTURES / "values" / "serdes.pcap.xz")
SCHEMAS = str(CAPTURES / "values" / "serdes" / "schemas")
PLUGIN = """
import json

def decode(topic, part, data, headers):
    return {"live": json.loads(data)["order"]} if topic == "orders" and part == "value" else None

def register(hooks):
    hooks.value_decoder(decode)
"""


def values(exchanges: list[dict[str, Any]]) -> list[str]:
    """What values of Produce were decoded to, in no order: connections pass side by side."""
    return sorted(
        json.dumps(record["decoded"]["value"], sort_keys=True)
        for exchange in exchanges
        if exchange["api"] == "Produce"
        for topic in exchange["request"]["body"]["topic_data"]
        for partition in topic["partition_data"]
        for batch in partition["records"]
        for record in batch["records"]
        if "value" in record.get("decoded", {})
    )


@pytest.mark.slow
@pytest.mark.capturing
def test_values_are_decoded_as_they_pass(start: Start, tmp_path: Path) -> None:
    """By schemas of a folder, by those that pass before them, and by a plugin; a filter looks into them."""
    plugin = tmp_path / "orders.py"
    plugin.write_text(PLUGIN)
    options = ("--schemas", SCHEMAS, "--value-format", "packed=msgpack", "--plugin", str(plugin))
    expected = {path: values(objects(read(*options, path))) for path in (SERDES, FIRST_LOOK)}
    assert len(expected[SERDES]) > 10 and len(expected[FIRST_LOOK]) == 5
    with listener() as server:
        port = str(server.getsockname()[1])
        live = ("sniff", "-i", "lo", "--port", port, "-o", "jsonl", "-Z", "root", *options)
        sniffer, wanted = start(*live), start(*live, "-Y", "record.value.live == 1001")
        capturing(sniffer)
        capturing(wanted)
        for path in (SERDES, FIRST_LOOK):
            for one in conversations(path):
                say(server, one)
        total = [*expected[SERDES], *expected[FIRST_LOOK]]
        sniffer.wait_for(lambda: len(values(objects(list(sniffer.out)))) >= len(total))
        wanted.wait_for(lambda: len(objects(list(wanted.out))) >= 2)
        assert sniffer.interrupt() == wanted.interrupt() == 130, sniffer.err
    assert values(objects(sniffer.out)) == sorted(total)
    assert [one["api"] for one in objects(wanted.out)] == ["Produce", "Fetch"]


@pytest.mark.slow
@pytest.mark.capturing
def test_nobody_decodes_values_by_libraries_that_only_root_may_read(start: Start) -> None:
    """Python and the libraries of the formats may lie below /root; all that is needed later is loaded before."""
    with listener() as server, tempfile.TemporaryDirectory() as name:
        shutil.copytree(SCHEMAS, f"{name}/schemas")
        Path(name).chmod(0o755)
        rules = ("packed=msgpack", "concise=cbor", "bare=avro:reading.avsc", "auto")
        options = ["--schemas", f"{name}/schemas", *(word for rule in rules for word in ("--value-format", rule))]
        expected = values(objects(read(*options, SERDES)))
        sniffer = start("sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-o", "jsonl", *options)
        capturing(sniffer)
        assert not any("goes on as root" in line for line in sniffer.err)
        for one in conversations(SERDES):
            say(server, one)
        sniffer.wait_for(lambda: len(values(objects(list(sniffer.out)))) >= len(expected))
        assert sniffer.interrupt() == 130, sniffer.err
    assert values(objects(sniffer.out)) == expected
    assert {json.loads(one)["format"] for one in expected} > {"avro", "protobuf", "json-schema", "msgpack", "cbor"}
