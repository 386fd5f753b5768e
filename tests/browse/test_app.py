"""From a cold start to the packets of the cause, on recorded incidents; and the keys."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from threading import Event

import pytest

from kwiresniff.browse.details import MAX_HEX_BYTES, Details
from kwiresniff.browse.hex_view import HexView
from kwiresniff.browse.tree_view import TreeView
from kwiresniff.cli.options import ReadOptions
from kwiresniff.index.background import Send
from tests.support.browsing import PATIENCE_S, Browsing, browse
from tests.support.capture_files import metadata_v0, save
from tests.support.command import Run
from tests.support.conversation import Wire, heartbeat, heartbeat_response
from tests.support.paths import CAPTURES

INCIDENTS = CAPTURES / "incidents"


def test_the_finding_about_a_fenced_producer_leads_to_the_answer_that_tells_it() -> None:
    """Packet 78, as the doctor's evidence says and the broker's log has it: INVALID_PRODUCER_EPOCH of a Produce."""

    async def script(user: Browsing) -> None:
        await user.read()
        assert len(user.listed()) > 10
        await user.press("6")
        assert "was fenced by payments-new" in user.text("#doctor-view")
        await user.press("enter")
        await user.until(lambda: len(user.listed()) == 1)
        assert "Produce" in user.listed()[0] and "INVALID_PRODUCER_EPOCH" in user.listed()[0]
        await user.until(lambda: "error_code 47" in user.tree())
        assert "packet 78" in user.tree()
        await user.press("escape")
        await user.until(lambda: len(user.listed()) > 10)


@pytest.mark.slow
def test_escape_goes_back_to_what_was_listed_before_step_by_step() -> None:
    """A filter is typed there again, and what other lists lead to is not mixed up with it."""

    async def script(user: Browsing) -> None:
        await user.read()
        user.app.show_filter("api == InitProducerId")
        await user.until(lambda: 0 < len(user.listed()) < 10 and not user.app.exchanges.is_filtering)
        count = len(user.listed())
        await user.press("6", "enter")
        await user.until(lambda: len(user.listed()) == 1)
        assert "payments-tx" in user.app.selection.label
        assert user.app.exchanges.expression == ""
        await user.press("escape")
        await user.until(lambda: len(user.listed()) == count)
        assert user.app.exchanges.expression == "api == InitProducerId"
        await user.press("escape")
        await user.until(lambda: len(user.listed()) > 10)
        assert user.app.exchanges.expression == ""

    browse(INCIDENTS / "fenced.pcap.xz", script)


@pytest.mark.slow
def test_a_topic_that_is_missing_is_found_by_its_errors_and_followed() -> None:
    """The client asks for it nine times (its own log); e goes to the first, t lists all that name it."""

    async def script(user: Browsing) -> None:
        await user.read()
        await user.press("e")
        await user.until(lambda: "UNKNOWN_TOPIC_OR_PARTITION" in user.tree())
        await user.press("t")
        await user.until(lambda: len(user.listed()) == 9)
        assert all("orders" in line for line in user.listed())

    browse(INCIDENTS / "missing-topic.pcap.xz", script)


@pytest.mark.slow
def test_what_stands_before_the_cursor_is_found_from_the_end_of_the_list() -> None:
    """A live list stands at its end. The one error is CreateTopics of a topic that exists; the group joins twice."""

    async def script(user: Browsing) -> None:
        await user.read()
        shown = user.app.exchanges.list

        def row() -> int:
            return shown.row or 0

        await user.press("end", "e")
        await user.until(lambda: "CreateTopics" in shown.cells.text(row()))
        assert user.notes() == ["error: went on at the other end of the list"]
        await user.press("E")
        await user.until(lambda: "no other error" in user.notes())
        await user.press("end", "slash")
        await user.type("joing")
        await user.press("enter")
        await user.until(lambda: "MEMBER_ID_REQUIRED" in shown.cells.text(row()))
        first = row()
        await user.press("n")
        await user.until(lambda: row() == first + 1)
        await user.press("n")
        await user.until(lambda: row() == first)

    browse(CAPTURES / "first-look.pcap", script)


@pytest.mark.slow
def test_a_throttled_producer_is_seen_in_the_order_of_latencies() -> None:
    """The longest wait is that in the muted channel: 3.52 s, as throttle_time_ms of the answer before says."""

    async def script(user: Browsing) -> None:
        await user.read()
        await user.press("o")
        await user.until(lambda: user.app.selection.order.name == "latency")
        first = user.listed()[0]
        assert "Produce" in first and "loader" in first
        await user.press("c", "2")
        await user.until(lambda: "exchanges" in user.text("#timeline-view"))

    browse(INCIDENTS / "produce-quota.pcap.xz", script)


@pytest.mark.slow
def test_a_filter_is_applied_as_it_is_typed_and_its_mistakes_are_shown_in_their_place(kwiresniff: Run) -> None:
    """With the columns of the mistake; the list shows what read -Y prints."""
    capture = INCIDENTS / "fenced.pcap.xz"
    wanted = kwiresniff("read", str(capture), "-o", "jsonl", "-Y", "api == InitProducerId").out.splitlines()
    exchanges = [line for line in wanted if json.loads(line)["kind"] == "exchange"]

    async def script(user: Browsing) -> None:
        await user.read()
        await user.press("f")
        await user.type("api == Nothing")
        await user.until(lambda: user.app.query_one("#filter-error").display)
        await user.press(*["backspace"] * len("Nothing"))
        await user.type("InitProducerId")
        await user.until(lambda: len(user.listed()) == len(exchanges))
        assert not user.app.query_one("#filter-error").display

    browse(capture, script)


@pytest.mark.slow
def test_the_bytes_of_the_selected_field_are_lit_and_those_of_passwords_are_not_shown() -> None:
    """Nowhere on the screen; the length of the secret is told."""

    async def script(user: Browsing) -> None:
        await user.read()
        await user.press("v", "slash")
        await user.type("saslauthenticate")
        await user.press("enter")
        await user.until(lambda: "auth_bytes" in user.tree())
        tree, hex_view = user.app.query_one("#tree", TreeView), user.app.query_one("#hex", HexView)
        place = next(at for at, line in enumerate(user.lines("#tree")) if "auth_bytes" in line)
        tree.go_to(place)
        await user.pilot.pause()
        assert tree.node is not None and tree.node.name == "auth_bytes"
        assert user.lines("#hex")[0].startswith(f"{tree.node.offset} in request")
        assert "··" in "".join(user.lines("#hex"))
        details = tree.details
        assert details is not None
        assert not any(details.visible("request")[tree.node.offset + 2 : tree.node.offset + tree.node.length])
        assert hex_view.line_count == -(-len(details.frame("request")) // hex_view.per_line)

    browse(INCIDENTS / "wrong-password.pcap.xz", script, size=(130, 40))


@pytest.mark.slow
def test_what_is_listed_is_saved_as_json_lines(tmp_path: Path, kwiresniff: Run) -> None:
    """The same lines that read -o jsonl prints of it."""
    capture, out = INCIDENTS / "fenced.pcap.xz", tmp_path / "saved.jsonl"
    wanted = kwiresniff("read", str(capture), "-o", "jsonl", "-Y", "api == Produce").out.splitlines()

    async def script(user: Browsing) -> None:
        await user.read()
        user.app.show_filter("api == Produce")
        await user.until(lambda: user.listed() and all("Produce" in line for line in user.listed()))
        await user.press("s", *["backspace"] * len("exchanges.jsonl"))
        await user.type(str(out))
        await user.press("enter")
        await user.until(lambda: out.exists() and out.stat().st_size > 0)

    browse(capture, script)
    saved = [json.loads(line) for line in out.read_text().splitlines()]
    assert saved == [one for one in map(json.loads, wanted) if one["kind"] == "exchange"]


def found_in(run: Run, path: Path, expression: str) -> list[tuple[str, int, str]]:
    """Client, correlation id and outcome of the exchanges that a filter lets through, sorted: captures with fewer
    packets may end an exchange later.
    """
    found = map(json.loads, run("read", str(path), "-o", "jsonl", "-Y", expression).out.splitlines())
    exchanges = [one for one in found if one["kind"] == "exchange"]
    return sorted((one["client"], one["correlation_id"], one["outcome"]) for one in exchanges)


@pytest.mark.slow
def test_the_packets_of_what_is_listed_are_written_and_read_back(tmp_path: Path, kwiresniff: Run) -> None:
    """The same exchanges are in the file as in the capture; the note tells how many."""
    capture, out = INCIDENTS / "fenced.pcap.xz", tmp_path / "saved.pcapng"
    wanted = found_in(kwiresniff, capture, "api == Produce")

    async def script(user: Browsing) -> None:
        await user.read()
        user.app.show_filter("api == Produce")
        await user.until(lambda: user.listed() and all("Produce" in line for line in user.listed()))
        await user.press("w", *["backspace"] * len("exchanges.pcapng"))
        await user.type(str(out))
        await user.press("enter")
        await user.until(lambda: any("written to" in note for note in user.notes()))
        note = user.notes()[-1]
        assert note.startswith(f"{len(wanted)} exchanges in ") and note.endswith(f" packets, written to {out}")

    browse(capture, script)
    assert found_in(kwiresniff, out, "api == Produce") == wanted != []


@pytest.mark.slow
def test_the_exchanges_of_a_finding_are_written_from_doctor(tmp_path: Path, kwiresniff: Run) -> None:
    """One Produce that was refused (the broker's log), as the tab lists it with Enter; s saves the same as a line."""
    capture, out, lines = INCIDENTS / "fenced.pcap.xz", tmp_path / "saved.pcapng", tmp_path / "saved.jsonl"

    async def script(user: Browsing) -> None:
        await user.read()
        await user.press("6")
        for key, file, path in (("w", "exchanges.pcapng", out), ("s", "exchanges.jsonl", lines)):
            await user.press(key)
            await user.until(lambda: len(user.app.screen_stack) == 2)
            await user.press(*["backspace"] * len(file))
            await user.type(str(path))
            await user.press("enter")
            await user.until(path.exists)
        assert user.app.tab == "doctor"

    browse(capture, script)
    refused = "error == INVALID_PRODUCER_EPOCH"
    assert found_in(kwiresniff, out, refused) == found_in(kwiresniff, capture, refused) != []
    (line,) = lines.read_text().splitlines()
    assert "INVALID_PRODUCER_EPOCH" in line


def go_on(send: Send, *arguments: object) -> None:
    """Writes a file for longer than anybody waits."""
    time.sleep(10 * PATIENCE_S)


@pytest.mark.slow
def test_a_file_that_is_being_written_is_not_left_at_once(tmp_path: Path) -> None:
    """q says so, and ends when it is pressed again."""

    async def script(user: Browsing) -> None:
        await user.read()
        user.app._jobs = user.app._jobs._replace(save_rows=f"{__name__}:go_on")
        await user.press("s", "enter", "q")
        await user.until(lambda: "q again ends without it" in user.notes()[-1])
        assert user.app.is_running
        await user.press("q")
        await user.until(lambda: not user.app.is_running)

    browse(CAPTURES / "first-look.pcap", script)


@pytest.mark.slow
def test_no_packets_are_written_of_what_is_redacted(tmp_path: Path) -> None:
    """Packets contain the records."""

    async def script(user: Browsing) -> None:
        await user.read()
        await user.press("w")
        assert len(user.app.screen_stack) == 1
        assert "--redact" in user.notes()[0]

    browse(CAPTURES / "java-produce.pcap", script, options=ReadOptions(redact=True, redact_key="k"))


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (40, 12), (200, 60)])
def test_every_tab_fits_every_terminal(size: tuple[int, int]) -> None:
    """Also while it is resized."""

    async def script(user: Browsing) -> None:
        await user.read()
        for key in "23456":
            await user.press(key)
        await user.pilot.resize_terminal(90, 20)
        for key in ("1", "x", "v", "question_mark", "escape", "d", "b", "O"):
            await user.press(key)
        await user.pilot.resize_terminal(*size)
        await user.pilot.pause()

    browse(INCIDENTS / "churn-classic.pcap.xz", script, size=size)


def say(send: Send, *_: object) -> None:
    """Sends a word."""
    send("word")


def test_a_process_whose_message_cannot_be_shown_leaves_no_open_pipe() -> None:
    """As one that comes while the program ends, when there is nothing any more to show it in."""

    async def script(user: Browsing) -> None:
        await user.read()
        taken: list[object] = []

        def take(message: object) -> None:
            taken.append(message)
            raise LookupError

        user.app.reading.start("said", f"{__name__}:say", take)
        said = user.app.reading._running["said"]
        await user.until(lambda: said._pipe.closed)
        assert taken == ["word"]

    browse(CAPTURES / "first-look.pcap", script)


@pytest.mark.slow
def test_help_and_the_way_out_are_named_on_a_narrow_terminal() -> None:
    """The line of keys is cut off at the right; in the help no text stands below its key."""

    async def script(user: Browsing) -> None:
        await user.read()

        def keys() -> str:
            return "".join(segment.text for line in user.app.screen._compositor.render_strips() for segment in line)

        await user.until(lambda: "? Help" in keys() and "q Quit" in keys())
        await user.press("question_mark")
        shown = ["".join(one.text for one in line).strip() for line in user.app.screen._compositor.render_strips()]
        assert any(re.search(r"│ {15}before +│", line) for line in shown)

    browse(CAPTURES / "first-look.pcap", script, size=(80, 24))


@pytest.mark.slow
def test_text_from_the_wire_is_never_markup_and_moves_no_cursor(tmp_path: Path) -> None:
    """A topic with tags of rich, an escape sequence and a direction override stands there as it is."""
    capture = save(tmp_path / "odd.pcap", metadata_v0("[bold red]a[/]\x1b[2J\u202e"))

    async def script(user: Browsing) -> None:
        await user.read()
        line = user.listed()[0]
        assert "[bold red]a[/]\\x1b[2J\\u202e" in line
        await user.press("3", "4", "5", "6")
        shown = "".join("".join(user.lines(f"#{name}-view")) for name in ("stats", "topics", "doctor"))
        assert "\x1b" not in shown + user.tree() and "\u202e" not in shown + user.tree()

    browse(capture, script, size=(240, 40))


@pytest.mark.slow
def test_records_are_redacted_in_the_tree_and_their_bytes_are_not_shown() -> None:
    """As with read --redact."""

    async def script(user: Browsing) -> None:
        await user.read()
        user.app.show_filter("api == Produce")
        await user.until(lambda: "topic_data" in user.tree())
        assert "parcel-1" not in user.tree()
        tree = user.app.query_one("#tree", TreeView)
        assert tree.details is not None and not tree.details.frame("request")
        await user.until(lambda: "not shown with --redact" in user.text("#hex"))

    browse(CAPTURES / "java-produce.pcap", script, options=ReadOptions(redact=True, redact_key="k"))


def test_the_hex_of_large_frames_is_left_to_other_commands() -> None:
    """A frame may have 128 MB."""
    assert MAX_HEX_BYTES == 1 << 20


def test_a_capture_without_a_readable_exchange_says_what_it_has_instead() -> None:
    """Two TLS connections, as the manifest says, and the option that takes their keys."""

    async def script(user: Browsing) -> None:
        await user.until(lambda: user.app.model.progress.done)
        await user.until(lambda: "there were 2 TCP connections with TLS" in user.text("#tree"))
        assert user.text("#tree").endswith("name its key log with --keylog FILE")

    browse(CAPTURES / "kcat-tls.pcap", script, size=(80, 24))


def test_the_columns_of_the_list_scroll_and_no_file_is_called_standard_output(tmp_path: Path) -> None:
    """A long client id is whole then; a hyphen in the box of a file name writes nothing."""
    wire = Wire().open()
    for number in range(1, 4):
        wire.up(heartbeat(number, "a-client-whose-name-is-longer-than-others")).down(heartbeat_response(number))
    path = save(tmp_path / "long.pcap", wire.close())

    async def script(user: Browsing) -> None:
        await user.read()
        assert "a-client-whose-name-is-longer-than-others" not in user.listed()[0]
        await user.press(*["right"] * 6)
        assert "a-client-whose-name-is-longer-than-others" in user.listed()[0]
        assert user.lines("#list")[0].split()[:3] == ["broker", "conn", "client"]
        await user.press(*["left"] * 6, "s", *["backspace"] * len("exchanges.jsonl"), "minus", "enter")
        await user.until(lambda: any("standard output" in note for note in user.notes()))
        assert user.lines("#list")[0].split()[0].startswith("time")

    browse(path, script)
    assert not Path("-").exists()


def test_one_exchange_is_read_at_a_time_and_then_the_one_that_is_selected_last() -> None:
    """Reading one may take as long as reading the captures, and cannot be stopped."""
    asked: list[int] = []
    may_end = Event()

    async def script(user: Browsing) -> None:
        await user.read()
        model = user.app.model
        details = model.details

        def slowly(row: int, *, whole: bool, quick: bool = False) -> Details | None:
            asked.append(row)
            may_end.wait(60)
            return details(row, whole=whole, quick=quick)

        model.details = slowly  # type: ignore[method-assign]
        await user.press("down")
        await user.until(lambda: asked == [1])
        await user.press("down", "down", "v", "down")
        may_end.set()
        await user.until(lambda: f"correlation_id {model.index.correlation_ids[4]}" in user.text("#headline"))

    try:
        browse(INCIDENTS / "fenced.pcap.xz", script)
    finally:
        may_end.set()
    assert asked == [1, 4]
