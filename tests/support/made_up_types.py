"""Every reader with two types in the table that no release has, run as a process of its own.

``UINT64`` is a whole number like others. ``DECIMAL`` needs a reader that nobody has. What each says of a message with
such fields is printed as JSON.
"""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
ROWS = """    WireType("uint64", "UINT64", "integer", 0, Fixed("Q", 8)),
    WireType("decimal", "DECIMAL", "number", 0, Fixed("q", 8), reader="decimal_value"),
"""
LAST_ROW = '    WireType("uuid",'

VALUE = 2**64 - 2
RAW = VALUE.to_bytes(8, "big")


def add_rows() -> None:
    """Put the table with two more rows in the place of the module, before anybody has imported it."""
    package = find_spec("kwiresniff")  # the checkout's, or what is installed where there are no sources
    assert package is not None and package.origin is not None
    table = Path(package.origin).with_name("schema") / "wire_types.py"
    source = table.read_text(encoding="utf-8")
    assert source.count(LAST_ROW) == 1
    module = types.ModuleType("kwiresniff.schema.wire_types")
    sys.modules[module.__name__] = module
    exec(compile(source.replace(LAST_ROW, ROWS + LAST_ROW), str(table), "exec"), module.__dict__)


def outcome(make: Callable[[], Any]) -> Any:
    """What comes of it, or the words with which it is refused."""
    from kwiresniff.errors import KwiresniffError

    try:
        return make()
    except KwiresniffError as error:
        return f"refused: {error}"


def readings(definition: str) -> dict[str, Any]:
    """What each reader makes of a message with a number of this type, and an array of two."""
    from kwiresniff.codec.body_walker import BodyScanner, ElementSkipper
    from kwiresniff.codec.dissector import dissect
    from kwiresniff.codec.node_values import plain
    from kwiresniff.codec.plan import leaf_plan, passing_plan, plan
    from kwiresniff.codec.value_reader import message_decoder
    from kwiresniff.schema.definition_language import parse, print_messages
    from kwiresniff.schema.grammar import grammar
    from kwiresniff.schema.kafka_json import read_definition
    from kwiresniff.schema.resolve import resolve

    def scanned(steps: Any) -> Any:
        scanner = BodyScanner(steps)
        return scanner.found if scanner.scan(raw, 0) else None

    text = f"data Made 0 flexible 0+\n  one {definition}\n  many []{definition}\n  late {definition} tag 0 = 7\n"
    (parsed,) = parse(text)
    message = resolve(parsed, 0)
    raw = RAW + b"\x03" + RAW + RAW + b"\0"
    wanted = frozenset({"one", "many"})
    official = {"name": "One", "type": definition, "versions": "0", "default": "0x10"}
    document = {"name": "Made", "type": "data", "validVersions": "0", "fields": [official]}
    return {
        "printed again": print_messages((parsed,)) == text,
        "from Kafka's definitions": outcome(
            lambda: read_definition(json.dumps(document), "made.json").at(0)[0].default
        ),
        "grammar": grammar(message).splitlines()[1:],
        "decoder": outcome(lambda: message_decoder(message)(raw, 0, [])),
        "dissector": outcome(lambda: plain(dissect(message, raw, 0).root)),
        "scanner": outcome(lambda: scanned(leaf_plan(message, wanted))),
        "skipper": outcome(lambda: ElementSkipper(raw).skip(passing_plan(message, texts=True), 0) == len(raw)),
        "text": outcome(lambda: plan(message) is not None),
    }


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    add_rows()
    print(json.dumps({name: readings(name) for name in ("uint64", "decimal")}))
