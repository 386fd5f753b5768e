"""Work travels as JSON and comes back equal, whichever dataclasses it is made of."""

from __future__ import annotations

import json
from dataclasses import asdict, astuple
from typing import Any

import pytest

from kwiresniff.pipeline.choice import Condition
from kwiresniff.pipeline.deduplication import Filled, LeftOut
from kwiresniff.pipeline.observed_connections import ObservedConnection
from kwiresniff.pipeline.open_state import Batch
from kwiresniff.pipeline.plain_values import from_plain
from kwiresniff.pipeline.plan import CaptureSeries, File, WorkUnit
from kwiresniff.pipeline.unit_reader import Settings

FILES = (File("/a", 1, 2), File("/b", 3, 4, named=False, origin="hdfs:/b"))
FILLED = Filled("other", "0a", 5, 6, -7, (((1, 2), (9, 3)), ()), (True, False))
SERIES = CaptureSeries("/a*", FILES, (LeftOut("0b", 1, 2, "c"),), (FILLED,), (CaptureSeries("d", FILES[:1]),))
SEEN = ObservedConnection(
    "0c", 1, 2, (3, -1), (4, 5), (((0, 9), (20, 30)), ()), (((7, 1),), ((8, 2), (9, 3))), 19, 1, -1
)
SETTINGS = Settings(
    "bodies", (9092, 19092), None, "4.0", pushed=(Condition("date", ("a", "b"), True),), topics=FILES[1]
)


@pytest.mark.parametrize(
    "value", [WorkUnit(SERIES, 1, 4), Batch("/a*", 7, FILES, (("/c", 10),), True), SEEN, SETTINGS, Settings()]
)
@pytest.mark.parametrize("plain", [asdict, astuple])
def test_what_went_out_as_json_comes_back_equal(value: Any, plain: Any) -> None:
    """By the names of its fields or in their order; tuples, which JSON makes lists, are tuples again."""
    assert from_plain(type(value), json.loads(json.dumps(plain(value)))) == value


def test_a_missing_field_has_its_default() -> None:
    """An earlier version may have written fewer; a field that there is not is refused, as is one that is lacking."""
    assert from_plain(File, {"path": "/a", "size_bytes": 1, "modified_ns": 2}) == File("/a", 1, 2)
    with pytest.raises(TypeError):
        from_plain(File, {"path": "/a"})
    with pytest.raises(KeyError):
        from_plain(File, {"path": "/a", "size_bytes": 1, "modified_ns": 2, "colour": "red"})
    with pytest.raises(ValueError):
        from_plain(File, ["/a", 1])
