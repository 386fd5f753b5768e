"""Topics, partitions, groups and transactional ids of exchanges."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.analysis.names import groups_of, partitions_of, topics_of, transactional_ids_of
from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from kwiresniff.pipeline.mentions import mentions
from kwiresniff.session import Analyzer
from tests.support.exported import recorded


@pytest.mark.parametrize("capture", recorded(), ids=lambda path: path.name)
def test_nothing_is_missed_by_asking_the_definitions_first(capture: Path) -> None:
    """The same as walking every body for everything."""
    analyzer = Analyzer("bodies")
    for exchange in analyzer.analyze(open_captures([str(capture)])):
        if not isinstance(exchange, Exchange):
            continue
        bodies = [part.body for part in (exchange.request, exchange.response) if part is not None]
        found = mentions(exchange, analyzer.topics.name)
        finders: list[Callable[..., list[Any]]] = [topics_of, partitions_of, groups_of, transactional_ids_of]
        for values, find in zip(found, finders, strict=True):
            expected = [value for body in bodies for value in find(body)]
            if find is topics_of:
                expected = [value for body in bodies for value in topics_of(body, analyzer.topics.name)]
            assert values == list(dict.fromkeys(expected)), exchange.api
