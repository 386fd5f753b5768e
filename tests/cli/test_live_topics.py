"""The screen of ``sniff -o topics``."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kwiresniff.cli.live_topics import TopicView
from kwiresniff.render.line_wrapping import cells
from tests.support.exchanges import exchange


def produce(topic: str, records: int) -> Any:
    batch = {"records_count": records, "size_bytes": 100, "base_offset": 0, "compression": "none"}
    parts = [{"index": 0, "records": [batch]}]
    return exchange("Produce", 0, 9, request={"acks": 1, "topic_data": [{"name": topic, "partition_data": parts}]},
                    response={})  # fmt: skip


def view(*topics: str) -> TopicView:
    live: Any = SimpleNamespace(files=["eth0"], dropped=0, stop=lambda: None)
    reading: Any = SimpleNamespace(topic_name=None, options=SimpleNamespace(color="never"))
    made = TopicView(live, reading)
    for topic in topics:
        made.traffic.exchange(produce(topic, 10))
    return made


def test_rates_are_those_since_a_few_refreshes_ago() -> None:
    """Not over the whole time, which would hide what happens now."""
    shown = view("orders")
    shown.screen(100.0, 200, 10)
    for _ in range(3):
        shown.traffic.exchange(produce("orders", 10))
    lines = shown.screen(102.0, 200, 10)
    row = dict(zip(lines[2].split(), lines[3].split(), strict=True))
    assert (row["topic"], row["records_in"], row["in/s"]) == ("orders", "40", "15.0")


def test_the_screen_is_as_large_as_the_terminal_and_scrolls() -> None:
    """The last line is the help; further topics come with the arrows, none beyond the last."""
    shown = view(*(f"topic-{number:02}" for number in range(30)))
    lines = shown.screen(1.0, 60, 10)
    assert len(lines) == 10 and all(cells(line) <= 60 for line in lines)
    assert lines[3].startswith("topic-00") and "q quit" in lines[-1]
    shown.press("down", 10)
    assert shown.screen(2.0, 60, 10)[3].startswith("topic-01")
    for _ in range(9):
        shown.press("page down", 10)
    lines = shown.screen(3.0, 60, 10)
    assert [line.split()[0] for line in lines[3:9]] == [f"topic-{number}" for number in range(24, 30)]


def test_names_from_the_wire_do_not_move_the_cursor() -> None:
    assert not any("\x1b" in line for line in view("\x1b[2Jevil").screen(1.0, 80, 10))
