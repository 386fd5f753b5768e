"""Plugins in the tasks of the pipeline, without Spark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.cli.pipeline_options import Decoding
from kwiresniff.errors import PluginError
from kwiresniff.pipeline.batches import table_batches
from kwiresniff.pipeline.plan import WorkUnit, find_sources
from kwiresniff.pipeline.unit_reader import Settings
from tests.support.paths import CAPTURES

pytest.importorskip("pyarrow")

PLUGIN = """
import json
from kwiresniff.plugins import Decoded, DoesNotFit

def decode(topic, part, data, headers):
    if b"grace" in data:
        raise DoesNotFit("orders-value", data.decode())
    if part == "value":
        return Decoded({**json.loads(data), "of": topic}, 5, "json")

def register(hooks):
    hooks.value_decoder(decode)
    hooks.annotator(lambda exchange: 1 / 0)
"""


@pytest.fixture
def plugin(tmp_path: Path) -> str:
    (tmp_path / "orders.py").write_text(PLUGIN)
    return str(tmp_path / "orders.py")


def rows(table: str, settings: Settings) -> list[dict[str, Any]]:
    (source,) = find_sources([str(CAPTURES / "first-look.pcap")])
    return [row for batch in table_batches(table, WorkUnit(source), settings) for row in batch.to_pylist()]


def decoded(settings: Settings) -> list[tuple[str, Any]]:
    found = [(row["api"], row["value_decoded"]) for row in rows("records", settings) if row["topic"] == "orders"]
    return [(api, None if text is None else json.loads(text)) for api, text in found]


def test_records_have_decoded_values_beside_the_bytes(plugin: str) -> None:
    """Five orders are written, and read; one of them does not fit its schema."""
    found = decoded(Decoding(plugin=(plugin,)).settings())
    assert [api for api, _ in found] == ["Produce"] * 5 + ["Fetch"] * 5
    assert found[0][1]["data"]["order"] == 1001
    assert (found[0][1]["plugin"], found[0][1]["schema"], found[0][1]["data"]["of"]) == ("orders", 5, "orders")
    assert [value is None for _, value in found] == [False, True, False, False, False] * 2
    assert all(value is None for _, value in decoded(Settings()))


def test_a_filter_of_the_pipeline_looks_into_what_was_decoded(plugin: str) -> None:
    """What the plugin adds is found; bodies as JSON have it, and the problem of the exchange."""
    settings = Decoding(plugin=(plugin,), where="record.value.of == orders").settings()
    found = rows("exchanges", settings)
    assert [row["api"] for row in found] == ["Produce", "Fetch"]
    body = json.loads(found[0]["request_body"])
    batch = body["topic_data"][0]["partition_data"][0]["records"][0]
    assert batch["records"][2]["decoded"]["value"]["data"]["order"] == 1003
    assert "payload_does_not_fit" in str(found[0]["problems"])


def test_redaction_takes_decoded_values_away(plugin: str) -> None:
    """And the reason of what does not fit."""
    settings = Decoding(plugin=(plugin,), redact=True).settings()
    assert all(value is None for _, value in decoded(settings))
    assert "grace" not in str(rows("exchanges", settings))


def test_what_goes_wrong_with_a_plugin_is_a_row_of_problems(plugin: str) -> None:
    """It belongs to no exchange."""
    settings = Decoding(plugin=(plugin,)).settings()
    codes = [row["code"] for row in rows("problems", settings)]
    assert codes.count("plugin_failed") == codes.count("plugin_disabled") == 1


def test_another_set_of_plugins_than_was_planned_with_is_an_error(plugin: str) -> None:
    """A worker on which a package is missing would leave values as they are."""
    settings = Decoding(plugin=(plugin,)).settings()
    assert settings.plugin_names == ("orders",)
    with pytest.raises(PluginError, match="plugins here: orders; where the work was planned: avro, orders"):
        Settings(plugins=settings.plugins, plugin_names=("avro", "orders")).load_plugins()


def test_the_data_source_of_spark_has_what_plugins_and_schemas_decode(spark: Any, plugin: str) -> None:
    """Records beside their bytes, bodies, and filters that look into them; ids are learnt from the capture."""
    read = spark.read.format("kwiresniff")
    capture = str(CAPTURES / "first-look.pcap")
    records = read.options(plugins=plugin, table="records").load(capture).where("topic = 'orders'").collect()
    assert [(row.api, row.value_decoded and json.loads(row.value_decoded)) for row in records] == decoded(
        Decoding(plugin=(plugin,)).settings()
    )
    wanted = spark.read.format("kwiresniff").options(plugins=plugin, where="record.value.of == orders").load(capture)
    assert [row.api for row in wanted.collect()] == ["Produce", "Fetch"]
    serdes = str(CAPTURES / "values" / "serdes.pcap.xz")
    values = spark.read.format("kwiresniff").options(table="records", valueFormats="packed=msgpack, auto").load(serdes)
    found = {row.topic: json.loads(row.value_decoded) for row in values.where("value_decoded is not null").collect()}
    assert found["packed"]["format"] == "msgpack" and found["orders"]["schema"].startswith("orders-value version 1")


def test_a_plugin_that_the_data_source_does_not_find_is_told_before_there_are_tasks(spark: Any) -> None:
    """With its path."""
    with pytest.raises(Exception, match=r"plugin /no/such\.py: no such file"):
        spark.read.format("kwiresniff").option("plugins", "/no/such.py").load(str(CAPTURES)).count()
