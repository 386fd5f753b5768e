"""What the screen knows of the captures: their index, as far as it has come, and how an exchange is read."""

from __future__ import annotations

from typing import NamedTuple

from kwiresniff.browse.details import Details, Dissect
from kwiresniff.browse.messages import Indexed
from kwiresniff.capture.packet_places import PacketPlaces
from kwiresniff.index import ExchangeIndex, ExchangeReader
from kwiresniff.session import TopicNameTable


class Progress(NamedTuple):
    """How far the index has come: the ``fraction`` of all bytes, and the problems of the captures so far."""

    fraction: float = 0.0
    problem_count: int = 0
    done: bool = False


class CapturesModel:
    """The captures in ``files``. ``reader`` reads exchanges of ``index``, ``dissect`` makes nodes of their messages.
    Without ``shows_bytes`` nobody sees their frames.
    """

    def __init__(
        self,
        files: list[str],
        index: ExchangeIndex,
        places: PacketPlaces,
        topics: TopicNameTable,
        reader: ExchangeReader,
        dissect: Dissect,
        *,
        shows_bytes: bool = True,
    ) -> None:
        self.files = files
        self.index = index
        self.reader = reader
        self.progress = Progress()
        self.problems: list[str] = []
        self._places = places
        self._topics = topics
        self._dissect = dissect
        self.shows_bytes = shows_bytes

    def take(self, message: Indexed) -> None:
        """Adds what a reading process has sent."""
        for place in message.places:
            self._places.add(*place)
        if message.topics is not None:
            self._topics.restore(message.topics)
        self.problems += message.problems
        self.index.extend(message.part)
        self.progress = Progress(message.fraction, message.problem_count, message.done)

    def details(self, row: int, *, whole: bool) -> Details | None:
        """The exchange of a row as a tree; None where it is not found in the files any more."""
        exchange = self.reader.exchange(row)
        if exchange is None:
            return None
        return Details(exchange, self._dissect, self.files, whole=whole, shows_bytes=self.shows_bytes)
