"""The program: what is on the screen, which keys there are, and what they do."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Sequence
from secrets import token_hex
from tempfile import gettempdir
from threading import Thread
from typing import ClassVar, Final

from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.widgets import Footer, Static, TabbedContent, TabPane
from textual.worker import get_current_worker

from kwiresniff.browse.blocks import Target
from kwiresniff.browse.captures_model import CapturesModel
from kwiresniff.browse.dialogs import HelpScreen, Question
from kwiresniff.browse.exchanges_pane import ExchangesPane
from kwiresniff.browse.line_view import LineView, text_of
from kwiresniff.browse.messages import Jobs, Reported, Saved
from kwiresniff.browse.processes import Processes
from kwiresniff.browse.selection import Order, Selection, rows_with_packets
from kwiresniff.browse.tabs import DIMENSIONS, doctor_blocks, equals, group_blocks, stats_blocks, topic_blocks
from kwiresniff.browse.text_view import TextView
from kwiresniff.browse.timeline_view import TimelineView
from kwiresniff.index import Indexed
from kwiresniff.index.background import Work
from kwiresniff.index.forks import Background, Forks
from kwiresniff.model import packet_number
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.theme import Span

STANDARD_OUTPUT: Final = "-"
TABS: Final = ("exchanges", "timeline", "stats", "topics", "groups", "doctor")
#: Columns from which bytes stand beside the tree, eight or sixteen a line.
_HEX_FROM: Final = 110
_WIDE_HEX_FROM: Final = 160
#: Problems of the captures that are told as they come; Doctor has them all.
_PROBLEMS_TOLD: Final = 3
#: Seconds between two looks whether the terminal is there.
_TERMINAL_S: Final = 2.0
#: The exit code of such a program: that of one that SIGHUP has ended.
_WITHOUT_TERMINAL: Final = 129


class BrowseApp(App[None]):
    """Browses the captures of ``model``, which ``index`` reads. ``check`` compiles a filter, ``expression`` is the one
    to begin with, ``tab`` the tab. ``by`` are the dimensions of the statistics, each alone or several
    (``api+client``). ``forks`` starts reading processes.
    """

    TITLE = "kwiresniff"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #status { height: 1; background: $panel; padding: 0 1; }
    TabbedContent { height: 1fr; }
    TabPane { padding: 0; height: 1fr; }
    ContentSwitcher { height: 1fr; }
    Tabs { height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
        Binding("f", "filter", "Filter"),
        Binding("slash", "search", "Search"),
        Binding("e", "error(1)", "Error"),
        Binding("E", "error(-1)", show=False),
        Binding("c", "follow('connection')", "Conn"),
        Binding("i", "follow('client_id')", "Client"),
        Binding("t", "follow('topic')", "Topic"),
        Binding("g", "follow('group')", "Group"),
        Binding("o", "order", "Sort"),
        Binding("O", "reverse", show=False),
        Binding("v", "whole", "Fields"),
        Binding("x", "hex", "Hex"),
        Binding("s", "save", "Save"),
        Binding("w", "write", show=False),
        Binding("n", "again(1)", show=False),
        Binding("N", "again(-1)", show=False),
        Binding("b", "by", show=False),
        Binding("d", "dark", show=False),
        Binding("escape", "previous", show=False),
        *(Binding(str(at + 1), f"tab('{name}')", show=False) for at, name in enumerate(TABS)),
    ]

    def __init__(
        self,
        model: CapturesModel,
        jobs: Jobs,
        check: Callable[[str], object],
        index: Background,
        forks: Forks,
        *,
        expression: str = "",
        tab: str = "exchanges",
        by: Sequence[str] = DIMENSIONS,
        dark: bool = True,
    ) -> None:
        super().__init__()
        self.model = model
        self.report: Reported | None = None
        self.reading = Processes(self, jobs.arguments, forks)
        self.exchanges = ExchangesPane(model, self.reading, jobs.find_matches, check, expression)
        self._jobs = jobs
        self._index = index
        self._dark = dark
        self._hex: bool | None = None
        self._tab = tab
        self._dimensions = by
        self._by = by[0]
        self._counted: str | None = None  # the filter of what the tabs count, or are about to
        self._sought = ""
        self._is_ending = False

    # -- the screen ---------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        self._lay_out(self.size.width)
        yield Static("", id="status")
        with TabbedContent(id="tabs", initial=self._tab):
            with TabPane("Exchanges", id="exchanges"):
                yield self.exchanges
            with TabPane("Timeline", id="timeline"):
                yield TimelineView(self.model.index, "timeline-view")
            for name in TABS[2:]:
                with TabPane(name.capitalize(), id=name):
                    yield TextView(f"{name}-view", "reading the captures ...")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.theme = "textual-dark" if self._dark else "textual-light"
        (self.exchanges.list if self._tab == "exchanges" else self.query_one(f"#{self._tab}-view")).focus()
        self.reading.take_from("index", self._index, self.take_part)
        if not self.is_headless:
            Thread(target=self._leave_with_terminal, daemon=True).start()

    def _leave_with_terminal(self) -> None:
        """Ends the program when its terminal is gone, which nobody else may tell it: what is still drawn then may wait
        for ever to be written, and so would the end of the program.
        """
        while os.isatty(0):
            time.sleep(_TERMINAL_S)
        self.reading.stop_all()
        os._exit(_WITHOUT_TERMINAL)

    def on_unmount(self) -> None:
        self.reading.stop_all()

    def on_resize(self, event: Resize) -> None:
        self._lay_out(event.size.width)

    def _lay_out(self, width: int) -> None:
        shown = self._hex if self._hex is not None else width >= _HEX_FROM
        self.exchanges.set_class(shown, "with-hex")
        self.exchanges.set_class(shown and width >= _WIDE_HEX_FROM, "with-wide-hex")

    @property
    def selection(self) -> Selection:
        """What is listed."""
        return self.exchanges.selection

    @property
    def tab(self) -> str:
        """The tab that is shown."""
        return self.query_one("#tabs", TabbedContent).active

    @on(ExchangesPane.Relisted)
    def _relisted(self) -> None:
        if not self.query("#tabs"):  # the program is ending
            return
        if self.tab == "timeline":
            self._draw_timeline()
        if self._counted not in (None, self.exchanges.expression):
            self.start_report()
        self.show_status()

    def show_status(self) -> None:
        """Shows the line at the top anew."""
        progress, total, files = self.model.progress, len(self.model.index), self.model.files
        name = files[0].rpartition("/")[2] if len(files) == 1 else f"{len(files)} captures"
        listed = len(self.selection)
        count = format_units.count(total, "exchange")
        spans: list[Span] = [("title", escape(name)), ("value", count if listed == total else f"{listed:,} of {count}")]
        spans.append(("key", self.selection.label))
        spans.append(("dim", "filtering ..." if self.exchanges.is_filtering else ""))
        spans += self.progress_spans()
        if self.model.index.left_out:
            spans.append(("warn", f"{self.model.index.left_out:,} more found no room: narrow it with -Y"))
        if progress.problem_count:
            spans.append(("warn", format_units.count(progress.problem_count, "problem")))
        line: list[Span] = []
        for span in spans:
            line += [span, ("", "  ")] if span[1] else []
        for status in self.query("#status").results(Static):  # none while the program is ending
            status.update(text_of(line))

    def progress_spans(self) -> list[Span]:
        """What the line at the top says of how far the reading has come."""
        progress = self.model.progress
        return [("dim", "" if progress.done else f"reading {progress.fraction:.0%}")]

    # -- what reading processes send ----------------------------------------------------------------------------

    def take_part(self, message: Indexed) -> None:
        """Shows a further part of the index."""
        self.model.take(message)
        self.exchanges.take_part()
        if message.done or self.tab == "timeline":
            self._draw_timeline(whole=True)
        if message.done:
            if self._counted is None:
                self.start_report()
            for problem in self.model.problems[:_PROBLEMS_TOLD]:
                self.notify(problem, severity="warning", markup=False)
        self.show_status()

    def start_report(self) -> None:
        """Has the tabs counted, of what the filter lets through."""
        self._counted = expression = self.exchanges.expression
        by = [one.split("+") for one in self._dimensions]
        self.reading.start("report", self._jobs.make_report, self.take_report, by, expression)

    def take_report(self, message: Reported) -> None:
        """Shows in the tabs what was counted."""
        report = self.report = message
        self.query_one("#doctor-view", TextView).show_blocks(doctor_blocks(report), "no findings")
        self.query_one("#topics-view", TextView).show_blocks(topic_blocks(report), "no topic was named")
        self.query_one("#groups-view", TextView).show_blocks(group_blocks(report), "nothing about groups")
        self._draw_stats()
        severe = any(one.severity == "error" for one in report.findings)
        tab = self.query_one("#tabs", TabbedContent).get_tab("doctor")
        tab.label = f"Doctor {len(report.findings)}" + ("!" if severe else "")

    def _draw_stats(self) -> None:
        if self.report is not None:
            note = f"nothing to count by {self._by}"
            blocks = stats_blocks(self.report, self._by) if self.report.stats.get(self._by) else []
            self.query_one("#stats-view", TextView).show_blocks(blocks, note)

    def _draw_timeline(self, *, whole: bool = False) -> None:
        self.query_one("#timeline-view", TimelineView).show_rows(self.selection.rows, whole=whole)

    # -- what leads to exchanges --------------------------------------------------------------------------------

    def show_filter(self, expression: str) -> None:
        """Lists what a filter lets through."""
        self.action_tab("exchanges")
        self.exchanges.show_filter(expression)

    def show_packets(self, target: Target) -> None:
        """Lists the exchanges that lie in the packets of a line."""

        def show(rows: list[int]) -> None:
            self.action_tab("exchanges")
            self.exchanges.show_rows(rows, target.label)

        self._find_packets(target.packets, show)

    def _find_packets(self, packets: tuple[int, ...], take: Callable[[list[int]], None]) -> None:
        """Looks in a thread for the rows that lie in some packets; gives them to ``take``, or says there are none."""

        def find() -> None:
            rows = rows_with_packets(self.model.index, packets)
            if not get_current_worker().is_cancelled:
                self.call_from_thread(take if rows else tell, rows)

        def tell(_: list[int]) -> None:
            numbers = ", ".join(str(packet_number(packet)) for packet in packets)
            text = f"no exchange lies in packets {numbers}" if numbers else "this has no packets as evidence"
            self.notify(text, severity="warning", markup=False)

        self.run_worker(find, group="packets", exclusive=True, thread=True)

    @on(LineView.Chosen, "TextView")
    def _chosen_line(self, event: LineView.Chosen) -> None:
        target = event.view.target if isinstance(event.view, TextView) else None
        if target is not None and target.filter:
            counted = self.report.expression if self.report is not None else ""
            self.show_filter(f"({counted}) and {target.filter}" if counted else target.filter)
        elif target is not None:
            self.show_packets(target)

    @on(TimelineView.Picked)
    def _picked(self, event: TimelineView.Picked) -> None:
        first, last = (format_units.instant(ns, 9) for ns in event.span)
        slice_of_time = f'time >= "{first}" and time < "{last}"'
        expression = self.exchanges.expression
        self.show_filter(f"({expression}) and {slice_of_time}" if expression else slice_of_time)

    # -- keys ---------------------------------------------------------------------------------------------------

    def action_tab(self, name: str) -> None:
        self.query_one("#tabs", TabbedContent).active = name

    @on(TabbedContent.TabActivated)
    def _tab_activated(self, event: TabbedContent.TabActivated) -> None:
        name = event.pane.id
        if name == "timeline":
            self._draw_timeline()
        if name != "exchanges":
            self.query_one(f"#{name}-view").focus()
        elif not self.exchanges.has_focus_within:
            self.exchanges.list.focus()

    def action_filter(self) -> None:
        self.action_tab("exchanges")
        self.query_one("#filter").focus()

    def action_previous(self) -> None:
        if self.tab == "exchanges" and self.exchanges.list.has_focus:
            self.exchanges.show_previous()
        else:
            self.action_tab("exchanges")
            self.exchanges.list.focus()

    def action_follow(self, field: str) -> None:
        row = self.exchanges.list.row
        if row is None:
            return
        index = self.model.index
        topics, groups = index.names_of(row)
        found: str | None
        if field == "connection":
            found = str(index.connection.get(row))
        elif field == "client_id":
            found = self.exchanges.list.cells.client_id(row)
        else:
            found = next(iter(topics if field == "topic" else groups), None)
        if found is None:
            self.notify(f"this exchange names no {field}", severity="warning")
        else:
            self.show_filter(equals(field, found))

    def action_order(self) -> None:
        self.exchanges.sort_by_next()

    def action_reverse(self) -> None:
        order = self.selection.order
        self.exchanges.sort(Order(order.name, not order.reverse))

    def action_error(self, step: int) -> None:
        self.action_tab("exchanges")
        self.exchanges.find_error(step)

    def action_search(self) -> None:
        def search(text: str | None) -> None:
            if text:
                self._sought = text.lower()
                self.action_again(1)

        self.push_screen(Question("Search for", self._sought), search)

    def action_again(self, step: int) -> None:
        if self._sought:
            self.action_tab("exchanges")
            self.exchanges.find_text(self._sought, step)

    def action_whole(self) -> None:
        self.exchanges.toggle_whole()

    def action_hex(self) -> None:
        self._hex = not self.exchanges.has_class("with-hex")
        self._lay_out(self.size.width)

    def action_by(self) -> None:
        names = list(self._dimensions)
        self._by = names[(names.index(self._by) + 1) % len(names)]
        self.action_tab("stats")
        self._draw_stats()

    def action_save(self) -> None:
        self._save("save", self._jobs.save_rows, "Save {} as JSON lines to", "exchanges.jsonl")

    def action_write(self) -> None:
        if self.model.shows_bytes:
            self._save("write", self._jobs.save_packets, "Write the packets of {} to", "exchanges.pcapng")
        else:
            self.notify(
                "with --redact no packets are written: they contain the records", severity="warning", markup=False
            )

    def _save(self, name: str, work: Work, question: str, file: str) -> None:
        """Asks for a file, then starts ``work``: on the exchanges of the finding under the cursor in Doctor, in other
        tabs on those that are listed.
        """

        def ask(rows: Sequence[int]) -> None:
            def save(path: str | None) -> None:
                if path == STANDARD_OUTPUT:
                    self.notify("- is no file here: the screen is on the standard output", severity="warning")
                elif path:
                    self.notify(f"writing {escape(path)} ...", markup=False)
                    self.reading.start(name, work, self._saved, self.model.numbers_of(rows).tobytes(), path)

            asked = question.format(format_units.count(len(rows), "exchange"))
            self.push_screen(Question(asked, _proposed(file)), save)

        target = self.query_one("#doctor-view", TextView).target if self.tab == "doctor" else None
        if target is not None:
            self._find_packets(target.packets, ask)
        else:
            ask(array("I", self.selection.rows))

    def _saved(self, message: Saved) -> None:
        self.notify(f"{message.what}, written to {escape(message.path)}", markup=False)

    def action_dark(self) -> None:
        self.theme = "textual-light" if self.theme == "textual-dark" else "textual-dark"

    def is_saving(self) -> bool:
        """Whether a file is being written."""
        return self.reading.is_running("save", "write")

    async def action_quit(self) -> None:
        if self.is_saving() and not self._is_ending:
            self._is_ending = True
            self.notify("a file is being written: q again ends without it", severity="warning")
            return
        self.reading.stop_all()
        self.exit()

    def action_help(self) -> None:
        self.push_screen(HelpScreen())


def _proposed(file: str) -> str:
    """A file in the current folder, else one in that for temporary files, whose name nobody can foresee."""
    if os.access(".", os.W_OK):
        return file
    stem, dot, ending = file.partition(".")
    return os.path.join(gettempdir(), f"{stem}-{token_hex(4)}{dot}{ending}")
