from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest

from kwiresniff.render.line_wrapping import cells
from kwiresniff.render.summary import SummaryWriter
from tests.support import annotated_samples

Golden = Callable[[str, str], None]


def rendered(width: int | None, color: bool = False) -> str:
    out = io.StringIO()
    writer = SummaryWriter(out, width, color)
    for made, _, _ in annotated_samples.all_samples():
        writer.write(made)
    return out.getvalue()


@pytest.mark.parametrize("width", [80, 120, 160, None])
def test_the_lines_are_exactly_these(golden: Golden, width: int | None) -> None:
    golden(f"summary-{width or 'pipe'}.txt", rendered(width))


def test_the_colours_are_exactly_these(golden: Golden) -> None:
    golden("summary-80-color.txt", rendered(80, color=True).replace("\x1b", "␛"))


@pytest.mark.parametrize("width", [40, 50, 60, 72, 80, 100, 120, 132, 150, 160, 200])
def test_an_exchange_is_one_line_no_wider_than_the_terminal(width: int) -> None:
    lines = rendered(width).splitlines()
    legend = [line for line in lines if line.startswith("#")]
    assert len(lines) == 1 + len(legend) + len(annotated_samples.all_samples())
    assert max(map(cells, lines)) <= width


@pytest.mark.parametrize(("width", "told"), [(60, False), (72, True), (120, True), (150, False), (None, False)])
def test_a_connection_that_is_a_number_is_told_once_with_its_ends(width: int | None, told: bool) -> None:
    """Above its first line; where there is room the ends stand in each line."""
    samples = [one for one, *_ in annotated_samples.all_samples()]
    ends: dict[int, str] = {}
    for one in samples:
        ends.setdefault(one.connection.id, f"{one.connection.client} → {one.connection.broker}")
    lines = rendered(width).splitlines()
    expected = [f"#{number} {text}" for number, text in ends.items()] if told else []
    assert [line for line in lines if line.startswith("#")] == expected


def test_in_a_pipe_there_is_no_title_no_colour_and_no_cut() -> None:
    lines = rendered(None).splitlines()
    assert len(lines) == len(annotated_samples.all_samples())
    assert not any("…" in re.sub("member …", "", line) for line in lines)
    assert "\x1b" not in "".join(lines)
    assert lines[0].startswith("2024-03-05T08:15:02.123456Z ")


def test_what_went_wrong_comes_before_what_it_was_about() -> None:
    line = rendered(None).splitlines()[1]
    assert line.index("NOT_LEADER_OR_FOLLOWER") < line.index("orders-0,3")
    assert "8 records 526 B zstd" in line


def test_every_outcome_but_ok_is_told_in_words() -> None:
    text = rendered(None)
    for words in ("no response expected", "unanswered", "request missing", "undecoded"):
        assert words in text


def test_a_queue_is_told_where_it_is_longer_than_the_work() -> None:
    """28 ms of which 27 were queued say so; a long answer after a short queue does not."""
    for queued_ms, said in ((27.0, True), (0.4, False)):
        one, _, _ = annotated_samples.metadata()
        assert one.request is not None
        assert one.response is not None
        one.response.first_ns = one.request.last_ns + 28_000_000
        one.queued, one.held = int(queued_ms * 1e6), 0
        out = io.StringIO()
        SummaryWriter(out, None, False).write(one)
        assert ("queued 27.0 ms" in out.getvalue()) is said


def test_what_a_hostile_peer_sends_never_reaches_the_terminal() -> None:
    text = rendered(None)
    assert text.replace("\n", "").isprintable()


def test_topic_ids_get_the_names_the_capture_has_told() -> None:
    made, _, _ = annotated_samples.fetch()
    assert made.request is not None
    assert made.response is not None
    made.request.body = {"topics": [{"topic_id": "bGtpbmctdGVzdC0wMQ", "partitions": [{"partition": 2}]}]}
    made.response.body = {"responses": []}
    out = io.StringIO()
    SummaryWriter(out, None, False, topic_name={"bGtpbmctdGVzdC0wMQ": "orders"}.get).write(made)
    assert "orders-2 nothing new" in out.getvalue()
