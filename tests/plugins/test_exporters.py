"""Formats that plugins add to ``export``."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from kwiresniff.plugins.loading import load_plugins
from tests.support.command import Done

REAL = str(Path(__file__).parents[2] / "captures" / "first-look.pcap")

COUNTING = """
import json

class Counting:
    def __init__(self, out, files):
        self.out, self.found = out, {"files": len(files), "exchanges": 0, "orders": [], "connections": 0}

    def on_exchange(self, exchange):
        self.found["exchanges"] += 1
        if exchange.api == "Produce":
            for batch in exchange.request.body["topic_data"][0]["partition_data"][0]["records"]:
                self.found["orders"] += [record["decoded"]["value"]["data"]["order"] for record in batch["records"]]

    def on_connection(self, connection):
        self.found["connections"] += 1

    def close(self):
        self.out.write(json.dumps(self.found).encode())

def register(hooks):
    hooks.exporter("count", Counting)
    hooks.value_decoder(lambda topic, part, data, headers: json.loads(data) if part == "value" else None)
"""


@pytest.fixture
def counting(tmp_path: Path) -> str:
    (tmp_path / "counting.py").write_text(COUNTING)
    return str(tmp_path / "counting.py")


@pytest.mark.parametrize(
    ("name", "more"),
    [("x.count", []), ("x.count.gz", []), ("x.bin", ["-o", "count"]), ("x.jsonl", ["-o", "count"])],
)
def test_a_plugin_writes_a_file(
    name: str, more: list[str], kwiresniff: Callable[..., Done], counting: str, tmp_path: Path
) -> None:
    """By the ending of its name, compressed where that says so, or by -o; bodies are decoded, by plugins too."""
    file = tmp_path / name
    done = kwiresniff("export", "--plugin", counting, "-O", str(file), *more, REAL)
    assert done.code == 0, done.err
    data = gzip.decompress(file.read_bytes()) if name.endswith(".gz") else file.read_bytes()
    whole = kwiresniff("read", "-o", "jsonl", REAL).out
    kinds = [json.loads(line)["kind"] for line in whole.splitlines()]
    assert json.loads(data) == {
        "files": 1,
        "exchanges": kinds.count("exchange"),
        "orders": [1001, 1002, 1003, 1004, 1005],
        "connections": kinds.count("connection"),
    }


def test_o_names_a_format_of_kwiresniff_as_well(kwiresniff: Callable[..., Done], tmp_path: Path) -> None:
    """It goes before the ending."""
    kwiresniff("export", "-O", str(tmp_path / "a.txt"), "-o", "jsonl", REAL)
    kwiresniff("export", "-O", str(tmp_path / "b.jsonl"), REAL)
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["-O", "x.nothing"], ".parquet, .count (and"),
        (["-O", "x.count", "-o", "nothing"], "nothing: unknown format; it is one of jsonl, json, csv, parquet, count"),
    ],
)
def test_an_unknown_format_is_a_mistake_that_lists_those_of_plugins(
    given: list[str], says: str, kwiresniff: Callable[..., Done], counting: str
) -> None:
    """Before anything is written."""
    done = kwiresniff("export", "--plugin", counting, *given, REAL)
    assert done.code == 2
    assert says in done.err


@pytest.mark.parametrize("method", ["__init__", "on_exchange", "on_connection", "close"])
def test_one_that_fails_leaves_no_file(method: str, kwiresniff: Callable[..., Done], tmp_path: Path) -> None:
    """It is one line that names the plugin."""
    (tmp_path / "bad.py").write_text(
        "class Bad:\n"
        "    def __init__(self, out, files): pass\n"
        f"    def {method}(self, *_): raise ValueError('no')\n"
        "def register(hooks): hooks.exporter('bad', Bad)\n"
    )
    done = kwiresniff("export", "--plugin", str(tmp_path / "bad.py"), "-O", str(tmp_path / "x.bad"), REAL)
    assert done.code == 1
    assert done.err == "kwiresniff: plugin bad: exporter bad raised ValueError: no; nothing is written\n"
    assert [path.name for path in tmp_path.glob("*bad*")] == ["bad.py"]


def test_a_name_with_a_dot_is_refused(tmp_path: Path) -> None:
    """It would never be found."""
    (tmp_path / "bad.py").write_text("def register(hooks): hooks.exporter('.bad', print)\n")
    with pytest.raises(Exception, match="small letters and digits"):
        load_plugins([str(tmp_path / "bad.py")])
