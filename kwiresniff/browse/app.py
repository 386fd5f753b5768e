"""The program: what is on the screen, which keys there are, and what they do."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.widgets import Footer, Static, TabbedContent, TabPane
from textual.worker import get_current_worker

from kwiresniff.browse.captures_model import CapturesModel
from kwiresniff.browse.details import Details
from kwiresniff.browse.dialogs import HelpScreen, Question
from kwiresniff.browse.exchange_list import ExchangeList
from kwiresniff.browse.filter_bar import FilterBar
from kwiresniff.browse.hex_view import HexView
from kwiresniff.browse.line_view import LineView
from kwiresniff.browse.messages import Indexed, Jobs, Matches, Reported, Saved
from kwiresniff.browse.selection import ORDERS, Order, Selection, rows_with_packets
from kwiresniff.browse.tabs import FIELDS, doctor_blocks, equals, group_blocks, stats_blocks, topic_blocks
from kwiresniff.browse.text_view import TextView
from kwiresniff.browse.timeline_view import TimelineView
from kwiresniff.browse.tree_view import TreeView
from kwiresniff.index.background import Background, Failed, Work
from kwiresniff.index.exchange_index import NEGOTIATION
from kwiresniff.model import OUTCOMES
from kwiresniff.render import format_units
from kwiresniff.render.escape import escape
from kwiresniff.render.theme import Span
from kwiresniff.results.report import Report

TABS: Final = ("exchanges", "timeline", "stats", "topics", "groups", "doctor")
#: Columns from which bytes stand beside the tree, eight or sixteen a line.
_HEX_FROM: Final = 110
_WIDE_HEX_FROM: Final = 160
#: What was listed before, which Escape goes back to.
_MAX_HISTORY: Final = 100
_WAIT = "reading the captures ..."


class BrowseApp(App[None]):
    """Browses the captures of ``model``; ``check`` compiles a filter."""

    TITLE = "kwiresniff"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #status { height: 1; background: $panel; padding: 0 1; }
    #headline { height: 1; background: $panel; padding: 0 1; }
    #details { height: 50%; }
    #hex { width: 44; border-left: solid $panel; display: none; }
    .with-hex #hex { display: block; }
    .with-wide-hex #hex { width: 76; }
    TabbedContent { height: 1fr; }
    TabPane { padding: 0; height: 1fr; }
    ContentSwitcher { height: 1fr; }
    Tabs { height: 2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
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
        Binding("n", "again(1)", show=False),
        Binding("N", "again(-1)", show=False),
        Binding("b", "by", show=False),
        Binding("d", "dark", show=False),
        Binding("question_mark", "help", "Help"),
        Binding("q", "quit", "Quit"),
        Binding("escape", "previous", show=False),
        *(Binding(str(at + 1), f"tab('{name}')", show=False) for at, name in enumerate(TABS)),
    ]

    def __init__(
        self,
        model: CapturesModel,
        jobs: Jobs,
        check: Callable[[str], object],
        *,
        expression: str = "",
        dark: bool = True,
    ) -> None:
        super().__init__()
        self.model = model
        self.selection = Selection(model.index)
        self.expression = expression
        self.report: Report | None = None
        self._jobs = jobs
        self._check = check
        self._dark = dark
        self._processes: dict[str, Background] = {}
        self._history: list[tuple[str, array[int] | None, str, int | None]] = []
        self._pending = array("I")
        self._filtering = False
        self._whole = False
        self._hex: bool | None = None
        self._by = "api"
        self._sought = ""
        self._shown_row: int | None = None

    # -- the screen ---------------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static("", id="status")
        with TabbedContent(id="tabs", initial="exchanges"):
            with TabPane("Exchanges", id="exchanges"):
                yield FilterBar(self._check, self.expression)
                yield ExchangeList(self.selection, "list")
                with Vertical(id="details"):
                    yield Static("", id="headline")
                    with Horizontal():
                        yield TreeView("tree")
                        yield HexView("hex")
            with TabPane("Timeline", id="timeline"):
                yield TimelineView(self.model.index, "timeline-view")
            for name in TABS[2:]:
                with TabPane(name.capitalize(), id=name):
                    yield TextView(f"{name}-view", _WAIT)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.theme = "textual-dark" if self._dark else "textual-light"
        self.query_one("#list").focus()
        self._start("index", self._jobs.read_index, self._take_part)
        if self.expression:
            self._filter(self.expression)

    def on_unmount(self) -> None:
        for one in self._processes.values():
            one.stop()

    def on_resize(self, event: Resize) -> None:
        self._lay_out(event.size.width)

    def _lay_out(self, width: int) -> None:
        shown = self._hex if self._hex is not None else width >= _HEX_FROM
        self.screen.set_class(shown, "with-hex")
        self.screen.set_class(shown and width >= _WIDE_HEX_FROM, "with-wide-hex")

    @property
    def list(self) -> ExchangeList:
        """The list of exchanges."""
        return self.query_one("#list", ExchangeList)

    @property
    def tab(self) -> str:
        """The tab that is shown."""
        return self.query_one("#tabs", TabbedContent).active

    def _status(self) -> None:
        progress, total = self.model.progress, len(self.model.index)
        files = self.model.files
        name = files[0].rpartition("/")[2] if len(files) == 1 else f"{len(files)} captures"
        spans: list[Span] = [("title", escape(name)), ("", "  ")]
        listed = len(self.selection)
        count = format_units.count(total, "exchange")
        spans.append(("value", count if listed == total else f"{listed:,} of {count}"))
        if self.selection.label:
            spans += [("", "  "), ("key", self.selection.label)]
        if self._filtering:
            spans += [("", "  "), ("dim", "filtering ...")]
        if not progress.done:
            spans += [("", "  "), ("dim", f"reading {progress.fraction:.0%}")]
        if self.model.index.left_out:
            spans += [("", "  "), ("warn", f"{self.model.index.left_out:,} more found no room: narrow it with -Y")]
        if progress.problem_count:
            spans += [("", "  "), ("warn", format_units.count(progress.problem_count, "problem"))]
        self.query_one("#status", Static).update(_text(spans))

    # -- work in the background ---------------------------------------------------------------------------------

    def _start(self, name: str, work: Work, take: Callable[[Any], None], *arguments: Any) -> None:
        """Has a process do ``work``, and gives ``take`` what it sends; work of the same name is given up."""
        if (old := self._processes.pop(name, None)) is not None:
            old.stop()
        running = self._processes[name] = Background(work, *self._jobs.arguments, *arguments)

        def follow() -> None:
            worker = get_current_worker()
            while True:
                try:
                    message = running.receive()
                except EOFError:
                    return
                if not worker.is_cancelled:
                    self.call_from_thread(use, message)

        def use(message: object) -> None:
            if self._processes.get(name) is not running:
                return
            if isinstance(message, Failed):
                self.notify(escape(message.reason), title=name, severity="error", timeout=20, markup=False)
            else:
                take(message)

        self.run_worker(follow, group=name, exclusive=True, thread=True, exit_on_error=False)

    def _take_part(self, message: Indexed) -> None:
        first = not len(self.model.index)
        self.model.take(message)
        if self.selection.chosen is not None and self._pending:
            self._take_rows(())
        elif message.done and self.selection.order.name != "time":
            self.selection.sort()
        self.list.show()
        if message.done or self.tab == "timeline":
            self._draw_timeline(whole=True)
        if message.done:
            self._start("report", self._jobs.make_report, self._take_report)
            for problem in self.model.problems[:3]:
                self.notify(problem, severity="warning", markup=False)
        if first:
            self._show_details()
        self._status()

    def _take_report(self, message: Reported) -> None:
        report = self.report = message.report
        self.query_one("#doctor-view", TextView).show_blocks(
            doctor_blocks(report), "nothing is wrong, as far as is seen"
        )
        self.query_one("#topics-view", TextView).show_blocks(topic_blocks(report), "no topic was named")
        self.query_one("#groups-view", TextView).show_blocks(group_blocks(report), "nothing about groups")
        self._draw_stats()
        severe = sum(one.severity == "error" for one in report.findings)
        tab = self.query_one("#tabs", TabbedContent).get_tab("doctor")
        tab.label = f"Doctor {len(report.findings)}" + ("!" if severe else "")

    def _draw_stats(self) -> None:
        if self.report is not None:
            note = f"nothing to count by {self._by}"
            blocks = stats_blocks(self.report, self._by) if dict(self.report.stats).get(self._by) else []
            self.query_one("#stats-view", TextView).show_blocks(blocks, note)

    def _draw_timeline(self, *, whole: bool = False) -> None:
        self.query_one("#timeline-view", TimelineView).show_rows(self.selection.rows, whole=whole)

    # -- which exchanges are listed -----------------------------------------------------------------------------

    def _remember(self) -> None:
        row = self.list.row
        self._history.append((self.expression, self.selection.chosen, self.selection.label, row))
        del self._history[:-_MAX_HISTORY]

    @on(FilterBar.Changed)
    def _filter_changed(self, event: FilterBar.Changed) -> None:
        self._remember()
        self._filter(event.expression)

    def _filter(self, expression: str) -> None:
        """Lists what an expression lets through."""
        self.expression = expression
        if (old := self._processes.pop("filter", None)) is not None:
            old.stop()
        self._filtering = bool(expression)
        self._pending = array("I")
        row = self.list.row
        self.selection.choose(None if not expression else ())
        if expression:
            self._start("filter", self._jobs.find_matches, partial(self._take_matches, row), expression)
        self._relist(None if expression else row)

    def _take_matches(self, row: int | None, message: Matches) -> None:
        self._filtering = not message.done
        self._take_rows(array("I", message.rows))
        if message.done and row is not None:
            self._relist(row)

    def _take_rows(self, rows: Iterable[int]) -> None:
        """Lists further rows, those that the index does not have yet as soon as it does."""
        first = not len(self.selection)
        self._pending.extend(rows)
        have = len(self.model.index)
        self.selection.add([row for row in self._pending if row < have])
        self._pending = array("I", [row for row in self._pending if row >= have])
        self.list.show()
        if first:
            self._show_details()
        if self.tab == "timeline":
            self._draw_timeline()
        self._status()

    def _relist(self, row: int | None) -> None:
        """Shows the list anew, with the cursor on a row where it is listed."""
        place = self.selection.place_of(row) if row is not None else None
        self.list.show(place or 0)
        self._show_details()
        self._status()
        if self.tab == "timeline":
            self._draw_timeline()

    def show_packets(self, packets: tuple[int, ...], label: str) -> None:
        """Lists the exchanges that lie in some packets."""
        rows = rows_with_packets(self.model.index, packets)
        if not rows:
            numbers = ", ".join(str(packet & 0xFFFFFFFFFF) for packet in packets)
            self.notify(f"no exchange lies in packets {numbers or 'of this'}", severity="warning", markup=False)
            return
        self._remember()
        self.query_one(FilterBar).set("")
        self.expression = ""
        self._filtering = False
        self.selection.choose(rows, label)
        self._to_list()
        self._relist(rows[0])

    def show_filter(self, expression: str) -> None:
        """Lists what a filter lets through."""
        self._to_list()
        self.query_one(FilterBar).set(expression)

    def _to_list(self) -> None:
        self.query_one("#tabs", TabbedContent).active = "exchanges"
        self.list.focus()

    @on(FilterBar.Left)
    def _filter_left(self) -> None:
        self.list.focus()

    @on(ExchangeList.Sorted)
    def _sorted(self, event: ExchangeList.Sorted) -> None:
        order = self.selection.order
        reverse = not order.reverse if order.name == event.order else ORDERS[event.order]
        self._sort(Order(event.order, reverse))

    def _sort(self, order: Order) -> None:
        self.selection.sort(order)
        self._relist(None)

    # -- one exchange -------------------------------------------------------------------------------------------

    @on(LineView.Moved, "#list")
    def _moved(self) -> None:
        self._show_details()

    def _show_details(self) -> None:
        row = self.list.row
        if row is None:
            self._shown_row = None
            self.query_one("#tree", TreeView).show_details(None, "no exchange" if self.model.progress.done else _WAIT)
            self.query_one("#headline", Static).update("")
            return
        if row != self._shown_row:
            self._shown_row = row
            self.run_worker(
                partial(self._read, row, self._whole), group="details", exclusive=True, thread=True, exit_on_error=False
            )

    def _read(self, row: int, whole: bool) -> None:
        note = "not found in the files any more: have they changed?"
        try:
            details = self.model.details(row, whole=whole)
        except Exception as error:  # what one exchange cannot be shown for must not end the program
            details, note = None, f"cannot be shown: {type(error).__name__}: {escape(str(error))}"
        if not get_current_worker().is_cancelled:
            self.call_from_thread(self._show_read, row, details, note)

    def _show_read(self, row: int, details: Details | None, note: str) -> None:
        if row == self._shown_row:
            self.query_one("#headline", Static).update(_text(details.headline() if details is not None else []))
            self.query_one("#tree", TreeView).show_details(details, note)

    @on(LineView.Moved, "#tree")
    def _moved_in_tree(self) -> None:
        tree = self.query_one("#tree", TreeView)
        self.query_one("#hex", HexView).show_node(tree.details, tree.side, tree.node)

    @on(LineView.Chosen, "#list")
    def _chosen(self) -> None:
        self.query_one("#tree").focus()

    @on(LineView.Chosen, "TextView")
    def _chosen_line(self, event: LineView.Chosen) -> None:
        target = event.view.target if isinstance(event.view, TextView) else None
        if target is not None and target.filter:
            self.show_filter(target.filter)
        elif target is not None:
            self.show_packets(target.packets, target.label)

    @on(TimelineView.Picked)
    def _picked(self, event: TimelineView.Picked) -> None:
        first, last = (format_units.instant(ns, 9) for ns in event.span)
        slice_of_time = f'time >= "{first}" and time < "{last}"'
        self.show_filter(f"({self.expression}) and {slice_of_time}" if self.expression else slice_of_time)

    # -- keys ---------------------------------------------------------------------------------------------------

    def action_tab(self, name: str) -> None:
        self.query_one("#tabs", TabbedContent).active = name

    @on(TabbedContent.TabActivated)
    def _tab_activated(self, event: TabbedContent.TabActivated) -> None:
        name = event.pane.id
        if name == "timeline":
            self._draw_timeline()
        self.query_one("#list" if name == "exchanges" else f"#{name}-view").focus()

    def action_filter(self) -> None:
        self.query_one("#tabs", TabbedContent).active = "exchanges"
        self.query_one("#filter").focus()

    def action_previous(self) -> None:
        if self.tab != "exchanges" or not self.list.has_focus:
            self._to_list()
        elif self._history:
            expression, chosen, label, row = self._history.pop()
            bar = self.query_one(FilterBar)
            with bar.prevent(FilterBar.Changed):
                bar.set(expression)
            self.expression, self._filtering, self._pending = expression, False, array("I")
            self.selection.choose(chosen, label)
            self._relist(row)

    def action_follow(self, field: str) -> None:
        row = self.list.row
        if row is None:
            return
        index = self.model.index
        topics, groups = index.names_of(row)
        found: str | None
        if field == "connection":
            found = str(index.connection.get(row))
        elif field == "client_id":
            found = self.list.cells.client_id(row)
        else:
            found = next(iter(topics if field == "topic" else groups), None)
        if found is None:
            self.notify(f"this exchange names no {field}", severity="warning")
            return
        self.show_filter(equals(field, found))

    def action_order(self) -> None:
        names = list(ORDERS)[:5]
        name = self.selection.order.name
        following = names[(names.index(name) + 1) % len(names)] if name in names else names[0]
        self._sort(Order(following, ORDERS[following]))

    def action_reverse(self) -> None:
        order = self.selection.order
        self._sort(Order(order.name, not order.reverse))

    def action_error(self, step: int) -> None:
        index = self.model.index
        wrong = {OUTCOMES.index(name) for name in ("error", "unanswered", "undecoded")}
        self._find(lambda row: index.outcomes[row] in wrong and not index.flags[row] & NEGOTIATION, step, "error")

    def action_search(self) -> None:
        def search(text: str | None) -> None:
            if text:
                self._sought = text.lower()
                self.action_again(1)

        self.push_screen(Question("Search for", self._sought), search)

    def action_again(self, step: int) -> None:
        if self._sought:
            text = self.list.cells.text
            self._find(lambda row: self._sought in text(row).lower(), step, repr(self._sought))

    def _find(self, is_wanted: Callable[[int], bool], step: int, what: str) -> None:
        """Goes to the next row that is wanted, from the cursor on, in a thread."""
        self._to_list()
        rows, start = self.selection.rows, self.list.cursor

        def find() -> None:
            worker = get_current_worker()
            places = range(start + 1, len(rows)) if step > 0 else range(start - 1, -1, -1)
            for place in places:
                if worker.is_cancelled:
                    return
                if is_wanted(rows[place]):
                    self.call_from_thread(self.list.go_to, place)
                    return
            self.call_from_thread(partial(self.notify, f"no further {what}", markup=False))

        self.run_worker(find, group="find", exclusive=True, thread=True)

    def action_whole(self) -> None:
        self._whole = not self._whole
        self._shown_row = None
        self._show_details()

    def action_hex(self) -> None:
        self._hex = not self.screen.has_class("with-hex")
        self._lay_out(self.size.width)

    def action_by(self) -> None:
        names = list(FIELDS)
        self._by = names[(names.index(self._by) + 1) % len(names)]
        self.action_tab("stats")
        self._draw_stats()

    def action_save(self) -> None:
        rows = array("I", self.selection.rows)

        def save(path: str | None) -> None:
            if path:
                self._start("save", self._jobs.save_rows, self._saved, rows.tobytes(), path)

        self.push_screen(
            Question(f"Save {format_units.count(len(rows), 'exchange')} as JSON lines to", "exchanges.jsonl"), save
        )

    def _saved(self, message: Saved) -> None:
        self.notify(f"{format_units.count(message.exchanges, 'exchange')} in {message.path}", markup=False)

    def action_dark(self) -> None:
        self.theme = "textual-light" if self.theme == "textual-dark" else "textual-dark"

    def action_help(self) -> None:
        self.push_screen(HelpScreen())


_STYLES: Final = {"title": "bold", "key": "cyan", "dim": "dim", "warn": "yellow", "bad": "bold red", "good": "green"}


def _text(spans: list[Span]) -> Text:
    """Spans as text of rich, which is never markup."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for kind, piece in spans:
        text.append(piece, _STYLES.get(kind, ""))
    return text
