"""What the screen knows of the captures: their index, as far as it has come, and how an exchange is read.

Of a live capture the newest packets are kept (``kwiresniff.capture.spooled``): rows whose packets are gone stay.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from kwiresniff.browse.details import Details, Dissect
from kwiresniff.capture.packet_places import PacketPlaces
from kwiresniff.index import ExchangeIndex, ExchangeReader, Indexed
from kwiresniff.model import Exchange
from kwiresniff.session import TopicNameTable

#: Exchanges that a filter has found and the index has not yet; of a live capture, which may have begun before it.
MAX_PENDING: Final = 100_000


class Progress(NamedTuple):
    """How far the index has come: the ``fraction`` of all bytes, and the problems of the captures so far."""

    fraction: float = 0.0
    problem_count: int = 0
    done: bool = False
    in_flight: tuple[int, int] = (0, 0)


class Captured(NamedTuple):
    """How far a live capture has come. ``given_up`` packets are not kept any more, ``dropped`` never came here."""

    packets: int = 0
    dropped: int = 0
    given_up: int = 0


class CapturesModel:
    """The captures in ``files``. ``reader`` reads exchanges of ``index``, ``ask_plugins`` has plugins decode and
    comment on them, ``dissect`` makes nodes of their messages. Without ``shows_bytes`` nobody sees their frames.
    ``captured`` is None where nothing is captured: there an exchange has its row for a number, in a live capture the
    one that tells its place (``number_of``).
    """

    def __init__(
        self,
        files: list[str],
        index: ExchangeIndex,
        places: PacketPlaces,
        topics: TopicNameTable,
        reader: ExchangeReader,
        ask_plugins: Callable[[Exchange], None],
        dissect: Dissect,
        *,
        shows_bytes: bool = True,
        captured: Captured | None = None,
    ) -> None:
        self.files = files
        self.index = index
        self.reader = reader
        self.progress = Progress()
        self.problems: list[str] = []
        self._places = places
        self._topics = topics
        self._ask_plugins = ask_plugins
        self._dissect = dissect
        self.shows_bytes = shows_bytes
        self.captured = captured
        self.given_up = 0
        self._rows: dict[int, int] = {}  # by their numbers, as far as their packets are kept
        self._numbered = 0

    def take(self, message: Indexed) -> None:
        """Adds what a reading process has sent."""
        for place in message.places:
            self._places.add(*place)
        if message.topics is not None:
            self._topics.restore(message.topics)
        self.problems += message.problems
        self.index.extend(message.part)
        self.progress = Progress(message.fraction, message.problem_count, message.done, message.in_flight)

    def take_captured(self, captured: Captured) -> None:
        """Takes in how far the capture has come; counts the rows whose packets are gone (``given_up``)."""
        before, self.captured = self.captured, captured
        if before is None or captured.given_up == before.given_up:
            return
        packets = self.index.packets
        self.given_up = sum(packet <= captured.given_up for packet in packets)
        self._rows = {number: row for number, row in self._rows.items() if packets[row] > captured.given_up}

    def is_given_up(self, row: int) -> bool:
        """Whether the packets of a row are not kept any more."""
        return self.captured is not None and self.index.packets[row] <= self.captured.given_up

    def rows_of(self, numbers: array[int]) -> tuple[list[int], array[int]]:
        """The rows with these numbers, and the numbers that the index does not have yet."""
        have, index = len(self.index), self.index
        if self.captured is None:
            return [row for row in numbers if row < have], array("q", [row for row in numbers if row >= have])
        self._rows.update((index.number_of(row), row) for row in range(self._numbered, have))
        self._numbered = have
        known = self._rows
        rest = [number for number in numbers if number not in known]
        return [known[number] for number in numbers if number in known], array("q", rest[-MAX_PENDING:])

    def numbers_of(self, rows: Iterable[int]) -> array[int]:
        """The numbers of some rows."""
        return array("q", rows if self.captured is None else map(self.index.number_of, rows))

    def details(self, row: int, *, whole: bool, quick: bool = False) -> Details | None:
        """The exchange of a row as a tree; None where it is not found in the files any more, or, with ``quick``, where
        its packets alone do not tell it.
        """
        exchange = self.reader.from_packets(row) if quick else self.reader.exchange(row)
        if exchange is None:
            return None
        self._ask_plugins(exchange)
        return Details(exchange, self._dissect, self.files, whole=whole, shows_bytes=self.shows_bytes)
