"""The program over a live capture: what comes is listed and counted while it goes on."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from threading import Event

import pytest

from kwiresniff.base.sequence_numbers import SEQ_MASK
from kwiresniff.browse.live_app import LiveApp
from kwiresniff.browse.selection import Order
from kwiresniff.capture import open_captures
from kwiresniff.model import Segment
from tests.support.browsing import Browsing, Live, watch
from tests.support.capture_files import heartbeats
from tests.support.conversation import Wire, heartbeat, heartbeat_response
from tests.support.exchanges import START_NS
from tests.support.merged import Network, merged, segments_of
from tests.support.paths import CAPTURES
from tests.support.sample import slow_if


def beats(count: int, first: int) -> list[Segment]:
    """Some heartbeats on a connection of their own."""
    return heartbeats(count, client_port=40_000 + first).segments


def halves(segments: list[Segment]) -> list[Segment]:
    """The same in halves, the first of which came twice: so their packets alone do not tell what they carry."""
    found: list[Segment] = []
    for packet, ns, flow, seq, ack, flags, buffer, start, end, missing in segments:
        middle = (start + end) // 2
        first = (packet, ns, flow, seq, ack, flags, buffer, start, middle, missing)
        last = (packet, ns, flow, (seq + middle - start) & SEQ_MASK, ack, flags, buffer, middle, end, missing)
        found += [first, first, last] if start < middle else [last]
    return found


def test_the_list_follows_the_capture_until_the_cursor_moves_up(tmp_path: Path) -> None:
    """End follows again; rows before the cursor stay where they are meanwhile."""
    live = Live(tmp_path / "live")

    async def script(user: Browsing) -> None:
        live.give(beats(30, 0))
        await user.until(lambda: user.app.exchanges.list.row == 29)
        await user.until(lambda: "correlation_id 30" in user.text("#headline"))
        live.give(beats(10, 1))
        await user.until(lambda: user.app.exchanges.list.row == 39)
        await user.press("up")
        before = user.listed()
        live.give(beats(10, 2))
        await user.until(lambda: len(user.app.model.index) == 50)
        assert user.app.exchanges.list.row == 38 and user.listed() == before
        assert "End: follow" in user.text("#status")
        await user.press("end")
        live.give(beats(10, 3))
        await user.until(lambda: user.app.exchanges.list.row == 59)
        await user.press("enter")  # into the tree, which is read on
        live.give(beats(10, 4))
        await user.until(lambda: len(user.app.model.index) == 70)
        assert user.app.exchanges.list.row == 59

    watch(live, script)


def test_a_list_that_follows_does_not_read_the_capture_again_for_each_exchange(tmp_path: Path) -> None:
    """Only for one that somebody looks at: Enter does."""
    live = Live(tmp_path / "live")

    async def script(user: Browsing) -> None:
        live.give(halves(beats(1, 0)))
        await user.until(lambda: user.app.exchanges.list.row == 0)
        await user.until(lambda: "Enter reads" in user.tree())
        assert user.app.model.reader.from_packets(0) is None
        live.give(beats(1, 1))
        await user.until(lambda: "member_id" in user.tree())
        await user.press("up", "end", "up")
        await user.until(lambda: "Enter reads" not in user.tree() and "correlation_id 1" in user.text("#headline"))
        live.give(halves(beats(1, 2)))
        await user.press("end")
        await user.until(lambda: "Enter reads" in user.tree())
        await user.press("enter")
        await user.until(lambda: "member_id" in user.tree())

    watch(live, script)


def test_an_order_that_takes_long_to_make_is_not_begun_anew_meanwhile(tmp_path: Path) -> None:
    """Otherwise it would never be shown where sorting takes longer than the time between two renewals."""
    live, begun, may_end = Live(tmp_path / "live"), Event(), Event()

    async def script(user: Browsing) -> None:
        app = user.app
        assert isinstance(app, LiveApp)
        live.give(beats(30, 0))
        await user.until(lambda: len(app.model.index) == 30)
        app.exchanges.sort(Order("latency", True))
        await user.until(lambda: app.selection.order.name == "latency")
        in_order = app.selection.in_order

        def slowly(order: Order) -> list[int] | None:
            begun.set()
            may_end.wait(60)
            return in_order(order)

        app.selection.in_order = slowly  # type: ignore[method-assign]
        await user.until(begun.is_set)
        live.give(beats(10, 1))
        sorting = [one for one in app.workers if one.group == "sort" and not one.is_finished]
        app.renew()
        assert [one for one in app.workers if one.group == "sort" and not one.is_finished] == sorting != []
        assert not any(one.is_cancelled for one in sorting)
        may_end.set()
        await user.until(lambda: len(user.app.selection) == 40)

    try:
        watch(live, script)
    finally:
        may_end.set()


@pytest.mark.slow
def test_a_filter_lists_what_was_there_and_what_comes_and_the_tabs_count_it(tmp_path: Path) -> None:
    """The tabs are those of the exchanges that it lets through."""
    live = Live(tmp_path / "live")

    async def script(user: Browsing) -> None:
        live.give(beats(5, 0))
        await user.until(lambda: len(user.listed()) == 5)
        user.app.show_filter("correlation_id == 2")
        await user.until(lambda: len(user.listed()) == 1)
        live.give(beats(5, 1))
        await user.until(lambda: len(user.listed()) == 2 and len(user.app.model.index) == 10)
        assert list(user.app.selection.rows) == [1, 6]
        await user.press("3")
        await user.until(lambda: "Heartbeat 2" in user.text("#stats-view"))
        user.app.show_filter("")
        await user.until(lambda: len(user.listed()) == 10)
        await user.press("3")
        await user.until(lambda: "Heartbeat 10" in user.text("#stats-view"))

    watch(live, script)


@pytest.mark.slow
def test_the_tabs_count_what_came_last_although_nobody_tells_its_cluster_and_nothing_follows(tmp_path: Path) -> None:
    """Also when a filter has them counted anew."""
    live = Live(tmp_path / "live")

    async def script(user: Browsing) -> None:
        live.give(list(open_captures([str(CAPTURES / "first-look.pcap")])))
        await user.press("3")
        await user.until(lambda: "OffsetCommit 2" in user.text("#stats-view"))
        live.give(beats(5, 0))  # with another broker
        await user.until(lambda: "Heartbeat 5" in user.text("#stats-view"))
        for expression, others in (("api == Heartbeat", False), ("", True)):
            user.app.show_filter(expression)
            await user.press("3")
            await user.until(partial(counts, user, "Heartbeat 5", others))

    watch(live, script)


def counts(user: Browsing, text: str, others: bool) -> bool:
    shown = user.text("#stats-view")
    return text in shown and ("OffsetCommit" in shown) is others


@pytest.mark.slow
def test_topics_of_one_name_in_two_clusters_are_two_blocks(tmp_path: Path) -> None:
    """The same recording once more, in another network, on other connections and with another cluster id."""
    live = Live(tmp_path / "live")
    path, cluster = str(CAPTURES / "first-look.pcap"), b"a3dpcmVzbmlmZi1kZW1vMQ"
    other: list[Segment] = []
    for one in segments_of(path, begin_ns=START_NS, network=Network("10.9.0.", "10.8.0.")):
        packet, ns, flow, seq, ack, flags, payload, start, end, missing = one
        said = bytes(payload).replace(cluster, cluster[::-1])
        other.append((packet, ns, flow, seq + 1 & SEQ_MASK, ack + 1 & SEQ_MASK, flags, said, start, end, missing))

    async def script(user: Browsing) -> None:
        live.give(merged(segments_of(path, begin_ns=START_NS), other))
        await user.press("4")
        for name in (cluster, cluster[::-1]):
            head = f"orders cluster {name.decode()} 1 partition in 5 records 255 B"
            await user.until(partial(says, user, "#topics-view", head))

    watch(live, script)


def says(user: Browsing, view: str, text: str) -> bool:
    return text in user.text(view)


@pytest.mark.slow
def test_requests_in_flight_and_lost_packets_are_told_and_a_pause_holds_the_screen(tmp_path: Path) -> None:
    """The request is in flight until its answer comes."""
    live = Live(tmp_path / "live")
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1)).up(heartbeat(2))
    asked = len(wire.segments)

    async def script(user: Browsing) -> None:
        live.give(wire.segments)
        await user.until(lambda: "1 in flight, oldest" in user.text("#status"))
        assert "7 packets dropped" in user.text("#status") and len(user.listed()) == 1
        await user.press("p")
        assert "paused" in user.text("#status")
        wire.down(heartbeat_response(2))
        live.give(wire.segments[asked:])
        await user.until(lambda: user.app._held)  # type: ignore[attr-defined]
        assert len(user.listed()) == 1
        await user.press("p")
        await user.until(lambda: len(user.listed()) == 2 and "0 in flight" in user.text("#status"))

    watch(live, script)


def has(user: Browsing, rows: int) -> bool:
    """Whether the index has so many rows."""
    return len(user.app.model.index) == rows


@pytest.mark.slow
def test_rows_whose_packets_are_gone_stay_and_say_so(tmp_path: Path) -> None:
    """A filter that is typed then lists what can still be read, and saves it."""
    live = Live(tmp_path / "live", most_bytes=8_000)

    async def script(user: Browsing) -> None:
        live.give(beats(3, 0))
        await user.until(lambda: len(user.listed()) == 3)
        for first in range(1, 8):
            live.give(beats(20, first))
            await user.until(partial(has, user, 3 + 20 * first))
        await user.until(lambda: user.app.model.given_up > 3)
        gone = user.app.model.given_up
        assert f"packets of {gone} not kept" in user.text("#status")
        await user.press("home")
        await user.until(lambda: "not kept any more" in user.text("#tree"))
        await user.press("end")
        await user.until(lambda: "generation_id" in user.tree())
        user.app.show_filter("api == Heartbeat")
        await user.until(lambda: user.app.exchanges.expression and user.app.selection.chosen)
        assert min(user.app.selection.rows) >= gone
        out = tmp_path / "saved.jsonl"
        count = len(user.app.selection)
        user.app.exchanges.list.focus()
        await user.press("s", *["backspace"] * len("exchanges.jsonl"))
        user.app.screen.query_one("Input").value = str(out)  # type: ignore[attr-defined]
        await user.press("enter")
        await user.until(lambda: any("written to" in note for note in user.notes()))
        assert len(out.read_text().splitlines()) == count

    watch(live, script)


@pytest.mark.parametrize("end", slow_if(["q", "ctrl+c", "by itself", "limit"], "q", "by itself", "limit"))
def test_it_ends_when_all_that_was_captured_is_read(tmp_path: Path, end: str) -> None:
    """With a key, when the capture ends, or when enough exchanges are listed; requests without an answer are told."""
    live = Live(tmp_path / "live")
    wire = heartbeats(3)
    left = Wire(client_port=41_000).open().up(heartbeat(1)).down(heartbeat_response(1)).up(heartbeat(2))

    async def script(user: Browsing) -> None:
        live.give(wire.segments)
        live.give(left.segments)
        if end == "by itself":
            live.stop()
        elif end != "limit":
            await user.until(lambda: len(user.listed()) == 4)
            await user.press(end)
        await user.until(lambda: not user.app.is_running)

    app = watch(live, script, limit=4 if end == "limit" else None)
    assert live.is_stopped
    assert len(app.model.index) == 5 and app.report is not None and app.report.done
    assert sum(row.unanswered for row in app.report.stats["api"]) == 1
    assert app.was_interrupted is (end == "ctrl+c")
