"""The tab of exchanges: a filter, the list of what it lets through, and the selected one as fields and bytes."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, NamedTuple

from textual import on
from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.widgets import Static
from textual.worker import get_current_worker

from kwiresniff.browse.captures_model import CapturesModel
from kwiresniff.browse.details import Details
from kwiresniff.browse.exchange_list import ExchangeList
from kwiresniff.browse.filter_bar import FilterBar
from kwiresniff.browse.hex_view import HexView
from kwiresniff.browse.line_view import LineView, text_of
from kwiresniff.browse.messages import Matches
from kwiresniff.browse.processes import Processes
from kwiresniff.browse.selection import ORDERS, Order, Selection
from kwiresniff.browse.tree_view import TreeView
from kwiresniff.index.background import Work
from kwiresniff.index.exchange_index import NEGOTIATION
from kwiresniff.model import OUTCOMES
from kwiresniff.render.escape import escape

#: What was listed before, which Escape goes back to.
MAX_HISTORY: Final = 100
#: Rows of each that are kept; more of them are filtered again.
MAX_KEPT_ROWS: Final = 100_000
#: The orders that a key goes through; a click on a column takes any.
_KEY_ORDERS: Final = ("time", "latency", "size", "api", "outcome")
_WRONG: Final = frozenset(OUTCOMES.index(name) for name in ("error", "unanswered", "undecoded"))


class _Listed(NamedTuple):
    """What was listed before: by a filter (rows None where they are to be found again), or rows with a label."""

    expression: str
    rows: array[int] | None
    label: str
    row: int | None


class ExchangesPane(Vertical):
    """Lists the exchanges of ``model``; ``find_matches`` is the work of a filter, ``check`` compiles one."""

    DEFAULT_CSS = """
    ExchangesPane { height: 1fr; }
    ExchangesPane #headline { height: 1; background: $panel; padding: 0 1; }
    ExchangesPane #details { height: 50%; }
    ExchangesPane #hex { width: 44; border-left: solid $panel; display: none; }
    ExchangesPane.with-hex #hex { display: block; }
    ExchangesPane.with-wide-hex #hex { width: 76; }
    """

    class Relisted(Message):
        """Other exchanges are listed, or more of them."""

    def __init__(
        self,
        model: CapturesModel,
        processes: Processes,
        find_matches: Work,
        check: Callable[[str], object],
        expression: str,
    ) -> None:
        super().__init__()
        self.selection = Selection(model.index)
        self.expression = expression
        self.is_filtering = False
        self.is_sorting = False
        self._model = model
        self._processes = processes
        self._find_matches = find_matches
        self._check = check
        self._history: list[_Listed] = []
        self._pending = array("q")
        self._whole = False
        self._listed = 0
        self._shown_row: int | None = None
        self._is_reading = False

    def compose(self) -> ComposeResult:
        yield FilterBar(self._check, self.expression)
        yield ExchangeList(self.selection, "list")
        with Vertical(id="details"):
            yield Static("", id="headline")
            with Horizontal():
                yield TreeView("tree")
                yield HexView("hex")

    def on_mount(self) -> None:
        self._filter(self.expression)

    @property
    def list(self) -> ExchangeList:
        """The list."""
        return self.query_one("#list", ExchangeList)

    # -- which exchanges are listed -----------------------------------------------------------------------------

    def take_part(self) -> None:
        """Lists what has come to the index."""
        if self.selection.chosen is not None:
            self._take_numbers(())
            return
        if self._model.progress.done:
            self._sort_again(self.list.row)
        self._show_more()

    def _show_more(self) -> None:
        """Shows the further rows; of a live capture the cursor stays on the last row if it was there, so that the list
        follows the capture until the cursor moves up.
        """
        count = len(self.selection)
        if self.is_following and count != self._listed:
            self.list.show(count - 1)
            self._show_details()
        else:
            self.list.show()
        self._listed = count
        if self._shown_row is None:
            self._show_details()
        self.post_message(self.Relisted())

    @property
    def is_following(self) -> bool:
        """Whether the cursor goes with the end of the list of a live capture; not while somebody reads the tree."""
        if self._model.captured is None or self.selection.order != Order():
            return False
        reads = any(one.has_focus for one in self.query("#tree, #hex"))  # none while the program is ending
        return self.list.cursor >= self._listed - 1 and not reads

    def show_filter(self, expression: str) -> None:
        """Lists what a filter lets through."""
        self.list.focus()
        self.query_one(FilterBar).set(expression)

    def show_rows(self, rows: Iterable[int], label: str) -> None:
        """Lists these rows, which ``label`` tells in words."""
        self._remember()
        self._stop("")
        self.selection.choose(rows, label)
        self.list.focus()
        self._relist(None)
        self._sort_again()

    def show_previous(self) -> None:
        """Lists what was listed before."""
        if not self._history:
            return
        before = self._history.pop()
        self._stop(before.expression)
        if before.expression and before.rows is None:
            self._filter(before.expression)
            return
        self.selection.choose(before.rows, before.label)
        self._relist(before.row)
        self._sort_again(before.row)

    def _remember(self) -> None:
        rows = self.selection.chosen
        is_kept = self._model.captured is None and not self.is_filtering and len(self.selection) <= MAX_KEPT_ROWS
        if self.expression and not is_kept:
            rows = None
        self._history.append(_Listed(self.expression, rows, self.selection.label, self.list.row))
        del self._history[:-MAX_HISTORY]

    @on(FilterBar.Changed)
    def _filter_changed(self, event: FilterBar.Changed) -> None:
        self._remember()
        self._filter(event.expression)

    @on(FilterBar.Left)
    def _filter_left(self) -> None:
        self.list.focus()

    def _stop(self, expression: str) -> None:
        """Gives up the filter that is at work, and shows another expression."""
        self._processes.stop("filter")
        self.is_filtering = False
        self._pending = array("q")
        self.expression = expression
        self.query_one(FilterBar).set(expression, silent=True)

    def _filter(self, expression: str) -> None:
        """Lists what an expression lets through."""
        row = self.list.row
        self._stop(expression)
        self.selection.choose(() if expression else None)
        if expression:
            self.is_filtering = self._model.captured is None  # a live capture is filtered without an end
            self._processes.start("filter", self._find_matches, partial(self._take_matches, row), expression)
        self._relist(None if expression else row)
        if not expression:
            self._sort_again(row)

    def _take_matches(self, row: int | None, message: Matches) -> None:
        self.is_filtering = self._model.captured is None and not message.done
        self._take_numbers(array("q", message.numbers))
        if message.done and row is not None and not self.list.cursor:
            self._relist(row)
        if message.done:
            self._sort_again(row)

    def _take_numbers(self, numbers: Iterable[int]) -> None:
        """Lists further exchanges, those that the index does not have yet as soon as it does."""
        self._pending.extend(numbers)
        rows, self._pending = self._model.rows_of(self._pending)
        self.selection.add(rows)
        self._show_more()

    def _relist(self, row: int | None) -> None:
        """Shows the list anew, with the cursor on a row where it is listed."""
        place = self.selection.place_of(row) if row is not None else None
        self._listed = len(self.selection)
        self.list.show(place or 0)
        self._show_details()
        self.post_message(self.Relisted())

    @on(ExchangeList.Sorted)
    def _sorted(self, event: ExchangeList.Sorted) -> None:
        order = self.selection.order
        reverse = not order.reverse if order.name == event.order else ORDERS[event.order]
        self.sort(Order(event.order, reverse))

    def _sort_again(self, row: int | None = None) -> None:
        """Sorts what has come, where another order was asked for than that of the index."""
        if self.selection.order != Order():
            self.sort(self.selection.order, row)

    def sort(self, order: Order, row: int | None = None) -> None:
        """Sorts what is listed, in a thread; the cursor goes to a row then, or to the first."""
        selection, chosen, call = self.selection, self.selection.chosen, self.app.call_from_thread
        self.is_sorting = True

        def sort() -> None:
            rows = selection.in_order(order)
            if not get_current_worker().is_cancelled:
                call(take, rows)

        def take(rows: list[int] | None) -> None:
            self.is_sorting = False
            if selection.chosen is chosen:
                selection.take_sorted(order, rows)
                self._relist(row)

        self.run_worker(sort, group="sort", exclusive=True, thread=True)

    def sort_by_next(self) -> None:
        """Sorts what is listed by the order after the one that it is in."""
        name = self.selection.order.name
        at = _KEY_ORDERS.index(name) + 1 if name in _KEY_ORDERS else 0
        following = _KEY_ORDERS[at % len(_KEY_ORDERS)]
        self.sort(Order(following, ORDERS[following]))

    # -- where the cursor goes ----------------------------------------------------------------------------------

    def find_error(self, step: int) -> None:
        """Goes to the next exchange that went wrong, or with a ``step`` of -1 to the one before."""
        index = self._model.index
        self._find(lambda row: index.outcomes[row] in _WRONG and not index.flags[row] & NEGOTIATION, step, "error")

    def find_text(self, text: str, step: int) -> None:
        """Goes to the next line with this text, in small letters."""
        line = self.list.cells.text
        self._find(lambda row: text in line(row).lower(), step, repr(text))

    def _find(self, is_wanted: Callable[[int], bool], step: int, what: str) -> None:
        """Goes to the next row that is wanted, from the cursor on and round the end of the list, in a thread."""
        self.list.focus()
        rows, start = self.selection.rows, self.list.cursor
        call = self.app.call_from_thread

        def find() -> None:
            worker = get_current_worker()
            count = len(rows)
            for distance in range(1, count):
                if worker.is_cancelled:
                    return
                place = (start + step * distance) % count
                if is_wanted(rows[place]):
                    call(self.list.go_to, place)
                    if (place < start) is (step > 0):
                        call(partial(self.notify, f"{what}: went on at the other end of the list", markup=False))
                    return
            call(partial(self.notify, f"no other {what}", markup=False))

        self.run_worker(find, group="find", exclusive=True, thread=True)

    # -- one exchange -------------------------------------------------------------------------------------------

    def toggle_whole(self) -> None:
        """Shows all fields, or the short tree again."""
        self._whole = not self._whole
        self._shown_row = None
        self._show_details()

    @on(LineView.Moved, "#list")
    def _moved(self) -> None:
        self._show_details()

    def _show_details(self) -> None:
        row = self.list.row
        if row is None:
            self._shown_row = None
            note = "no exchange" if self._model.progress.done and not self.is_filtering else "reading ..."
            if self._model.captured is not None:
                note = "waiting for exchanges ..."
            if self._model.progress.done and not len(self._model.index) and self._model.problems:
                note = self._model.problems[-1]  # what there was instead of Kafka
            self.query_one("#tree", TreeView).show_details(None, note)
            self.query_one("#headline", Static).update("")
        elif row != self._shown_row:
            self._shown_row = row
            self._read_details(row)

    def _read_details(self, row: int) -> None:
        """Has a row read in a thread, or as soon as what is being read is there: a thread cannot be ended."""
        if not self._is_reading:
            self._is_reading = True
            read = partial(self._read, row, self._whole, self.is_following)
            self.run_worker(read, group="details", thread=True, exit_on_error=False)

    def _read(self, row: int, whole: bool, quick: bool) -> None:
        """Reads a row; with ``quick`` no more than its packets: the next one may come before all are read again."""
        note = "not found in the files any more: have they changed?"
        if quick:
            note = "its packets alone do not tell it: Enter reads those before it, too"
        if self._model.is_given_up(row):
            note = "its packets are not kept any more: newer ones took their place (-w FILE keeps all)"
        try:
            details = None if self._model.is_given_up(row) else self._model.details(row, whole=whole, quick=quick)
        except Exception as error:  # what one exchange cannot be shown for must not end the program
            details, note = None, f"cannot be shown: {type(error).__name__}: {escape(str(error))}"
        if not get_current_worker().is_cancelled:
            self.app.call_from_thread(self._show_read, row, details, note, whole, quick)

    def _show_read(self, row: int, details: Details | None, note: str, whole: bool, quick: bool) -> None:
        self._is_reading = False
        if self._shown_row is None:
            return
        if (row, whole) != (self._shown_row, self._whole):
            self._read_details(self._shown_row)
            return
        self.query_one("#headline", Static).update(text_of(details.headline() if details is not None else []))
        self.query_one("#tree", TreeView).show_details(details, note)
        if details is None and quick:
            self._shown_row = None  # read again when the list does not follow any more
            if not self.is_following:
                self._show_details()

    @on(LineView.Moved, "#tree")
    def _moved_in_tree(self) -> None:
        tree = self.query_one("#tree", TreeView)
        self.query_one("#hex", HexView).show_node(tree.details, tree.side, tree.node)

    @on(LineView.Chosen, "#list")
    def _chosen(self) -> None:
        self.query_one("#tree").focus()
        self.call_after_refresh(self._show_details)
