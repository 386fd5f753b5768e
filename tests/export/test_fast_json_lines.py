"""Lines put together from text are those that the encoder makes of the whole object."""

from __future__ import annotations

from typing import Any

import pytest

from kwiresniff.export.encode import json_line, json_text
from kwiresniff.export.fast_json_lines import MAX_KEPT, ExchangeLines
from kwiresniff.export.json_objects import exchange_json
from kwiresniff.export.writers import JsonArrayWriter, JsonLinesWriter
from kwiresniff.model import Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.odd_exchanges import EXCHANGES, FILES, with_text


def joined(lines: ExchangeLines, built: Exchange) -> bytes:
    return b"".join(lines.line(built) or ())


@pytest.mark.parametrize("files", [(), FILES[:1], FILES], ids=len)
def test_a_line_is_what_encoding_the_object_gives(files: tuple[str, ...]) -> None:
    lines = ExchangeLines(json_text, files)
    for name, built in (*EXCHANGES.items(), *reversed(EXCHANGES.items())):
        assert joined(lines, built) == json_line(exchange_json(built, files)), name


def test_texts_are_not_kept_for_ever() -> None:
    lines = ExchangeLines(json_text)
    for number in range(MAX_KEPT + 5):
        on = connection(number, client=f"10.0.0.5:{number}")
        built = with_text(exchange(on=on, client_id=f"client-{number}"), b"{}", b"{}")
        assert joined(lines, built) == json_line(exchange_json(built))


@pytest.mark.parametrize("ns", [-(1 << 63), 1 << 62, 1 << 70])
def test_times_that_no_clock_shows_are_left_to_the_encoder(ns: int) -> None:
    assert ExchangeLines(json_text).line(with_text(exchange(start_ns=ns), b"{}", b"{}")) is None


@pytest.mark.parametrize("body", [{"a": [1, b"x", b"\xff"], "_tagged_fields": {7: b"y"}}, None], ids=["values", "none"])
def test_bodies_that_are_values_stand_in_the_same_line(body: Any) -> None:
    """Messages that break off have such, by the thousand in some captures."""
    built = exchange(request=body)
    assert joined(ExchangeLines(json_text), built) == json_line(exchange_json(built))


@pytest.mark.parametrize("kind", [JsonLinesWriter, JsonArrayWriter])
def test_writers_take_bodies_as_text_or_as_values(kind: Any) -> None:
    written: list[list[bytes]] = []
    for text in (b'{"a":[1]}', None):
        out: list[bytes] = []
        writer = kind(type("Out", (), {"write": staticmethod(out.append)})())
        for start_ns in (START_NS, 1 << 70, START_NS):
            writer.write(with_text(exchange(request={"a": [1]}, start_ns=start_ns), text, None))
        writer.close()
        written.append(out)
    assert b"".join(written[0]) == b"".join(written[1])
