"""What real conversations look like: recordings that ship with the project, through the whole way."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from kwiresniff.capture import open_captures
from kwiresniff.model import Exchange
from kwiresniff.render.line_wrapping import cells
from kwiresniff.render.summary import SummaryWriter
from kwiresniff.render.tree import TreeWriter
from kwiresniff.session.annotation import dissect_message
from tests.support.events import analyze

CAPTURES = Path(__file__).parents[2] / "captures"
CHOSEN = ["first-look.pcap", "java-transactions.pcap", "java-fetch.pcapng", "old-java-0.8-produce.pcap"]


def exchanges(name: str) -> list[Exchange]:
    events = analyze(open_captures([str(CAPTURES / name)]), depth="records")
    return [event for event in events if isinstance(event, Exchange)]


def tree(found: list[Exchange], width: int | None, verbosity: int = 0) -> str:
    out = io.StringIO()
    writer = TreeWriter(out, width, False, verbosity)
    for exchange in found:
        writer.write(exchange, dissect_message(exchange, "request"), dissect_message(exchange, "response"))
    return out.getvalue()


@pytest.mark.parametrize("name", CHOSEN)
def test_a_recording_fits_a_terminal_however_much_is_shown(name: str) -> None:
    found = exchanges(name)
    for verbosity in (0, 1, 2):
        text = tree(found, 80, verbosity)
        assert text.count("└─ response") >= len(found)
        assert text.replace("\n", "").isprintable()
        assert max(map(cells, text.splitlines())) <= 80


@pytest.mark.parametrize("name", CHOSEN)
def test_a_recording_is_one_line_an_exchange(name: str) -> None:
    found = exchanges(name)
    out = io.StringIO()
    writer = SummaryWriter(out, 80, False)
    for exchange in found:
        writer.write(exchange)
    lines = out.getvalue().splitlines()
    connections = {exchange.connection.id for exchange in found}
    assert sum(line.startswith("#") for line in lines) == len(connections)
    assert len(lines) == len(found) + 1 + len(connections)
    assert max(map(cells, lines)) <= 80


def test_the_first_look_shows_orders_with_their_keys_and_the_topic_that_was_there() -> None:
    # From the broker's own account of it, captures/recipes.
    text = tree(exchanges("first-look.pcap"), None)
    assert "error_code 36 TOPIC_ALREADY_EXISTS" in text
    assert 'ada → {"order": 1001, "customer": "ada", "amount": 19.90, "currency": "EUR"}' in text
    assert "5 records  zstd " in text
    assert "acks             -1 (all in-sync replicas)" in text


def test_vv_shows_every_byte_of_a_frame_once() -> None:
    exchange = next(exchange for exchange in exchanges("first-look.pcap") if exchange.api == "CreateTopics")
    assert exchange.request is not None
    text = tree([exchange], None, 2)
    request = text.split("─ request  ")[1].split("─ response  ")[0].splitlines()[1:]
    shown = bytes.fromhex("".join(line[8:56] for line in request))
    frame = exchange.request.frame
    assert frame is not None
    # Empty sections of tagged fields, one zero byte each, belong to no field and are not shown.
    assert shown.replace(b"\0", b"") == frame.replace(b"\0", b"")


@pytest.mark.parametrize("name", ["java-sasl-plain.pcap", "old-sasl-plain.pcap", "librdkafka-sasl-scram-256.pcap"])
def test_a_password_is_shown_neither_as_text_nor_in_hex(name: str) -> None:
    # The recipes' password. Hex is cut into rows, so a part of it must do.
    text = tree(exchanges(name), None, 2)
    assert "not-a-secret" not in text
    assert b"not-a-s".hex(" ") not in text
