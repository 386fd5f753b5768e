"""What makes parts of an index while captures are read.

Written for mypyc: each exchange of a capture passes it.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, ClassVar, Final

from kwiresniff.analysis.body_entities import message_groups, message_topics, session_topics
from kwiresniff.base.needs import Needs
from kwiresniff.index.columns import narrow_part
from kwiresniff.index.exchange_index import (
    NEGOTIATION,
    PROBLEMS,
    REQUEST,
    RESPONSE,
    WAIT_SHIFT,
    WAITS,
    ConnectionEnds,
    IndexPart,
)
from kwiresniff.index.value_table import ValueTable
from kwiresniff.model import OUTCOMES, Exchange, Problem, Sink, TopicNames

if TYPE_CHECKING:
    from mypy_extensions import i64

#: Exchanges in an index: some 900 MB of memory. Further ones are counted.
MAX_EXCHANGES: Final = 10_000_000
#: Topics, and groups, of an exchange that are kept to be shown.
MAX_SHOWN: Final = 4
#: Stands for further ones.
AND_MORE: Final = "…"
#: Problems that wait to be taken; the others are only counted.
MAX_PROBLEMS: Final = 1_000

_OUTCOME_NUMBERS: Final[dict[str, int]] = {name: number for number, name in enumerate(OUTCOMES)}


class IndexSink(Sink):
    """Gathers exchanges until ``take`` makes a part of them; ``topic_name`` gives topics their names.

    ``waiting`` exchanges are gathered. An index has room for ``most`` of them in all.
    """

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True, digests=True)

    def __init__(self, topic_name: TopicNames, most: int = MAX_EXCHANGES) -> None:
        self._topic_name = topic_name
        self._room = most
        self._left_out = 0
        self._values = ValueTable()
        self._known: set[int] = set()
        self._new: list[ConnectionEnds] = []
        self._problems: list[Problem] = []
        self._begin()

    def _begin(self) -> None:
        """Empties the columns."""
        self._started_ns: list[int] = []
        self._packets: list[int] = []
        self._correlation_ids: list[int] = []
        self._apis: list[int] = []
        self._outcomes: list[int] = []
        self._flags: list[int] = []
        self._request_ns: list[int] = []
        self._wait_ns: list[int] = []
        self._response_ns: list[int] = []
        self._queued: list[int] = []
        self._held: list[int] = []
        self._path: list[int] = []
        self._request_packets: list[int] = []
        self._response_first: list[int] = []
        self._response_packets: list[int] = []
        self._request_bytes: list[int] = []
        self._response_bytes: list[int] = []
        self._connections: list[int] = []
        self._client_ids: list[int] = []
        self._names: list[int] = []
        self._errors: list[int] = []

    @property
    def waiting(self) -> int:
        """Exchanges that ``take`` would give."""
        return len(self._started_ns)

    def on_exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        first = request if request is not None else response
        if first is None:
            return
        if self._room == 0:
            self._left_out += 1
            return
        self._room -= 1
        flags = 0
        packet: i64 = first.first_packet
        if request is not None:
            flags = REQUEST
            self._request_ns.append(request.last_ns - request.first_ns)
            self._request_packets.append(request.last_packet - packet)
            self._request_bytes.append(request.size_bytes)
        else:
            self._request_ns.append(0)
            self._request_packets.append(0)
            self._request_bytes.append(0)
        if response is not None:
            flags |= RESPONSE
            self._response_ns.append(response.last_ns - response.first_ns)
            self._response_first.append(response.first_packet - packet)
            self._response_packets.append(response.last_packet - packet)
            self._response_bytes.append(response.size_bytes)
        else:
            self._response_ns.append(0)
            self._response_first.append(0)
            self._response_packets.append(0)
            self._response_bytes.append(0)
        both = request is not None and response is not None
        self._wait_ns.append(response.first_ns - request.last_ns if both else 0)  # type: ignore[union-attr]
        if exchange.problems:
            flags |= PROBLEMS
        if exchange.is_negotiation:
            flags |= NEGOTIATION
        if exchange.waiting:
            flags |= WAITS.index(exchange.waiting) << WAIT_SHIFT
        self._started_ns.append(first.first_ns)
        self._packets.append(packet)
        self._correlation_ids.append(exchange.correlation_id)
        self._apis.append(exchange.api_key)
        self._apis.append(exchange.api_version)
        self._outcomes.append(_OUTCOME_NUMBERS[exchange.outcome])
        self._flags.append(flags)
        self._queued.append(exchange.queued)
        self._held.append(exchange.held)
        self._path.append(exchange.path)
        self._add_names(exchange)

    def _add_names(self, exchange: Exchange) -> None:
        """Adds the numbers of what an exchange names."""
        connection, values = exchange.connection, self._values
        number = connection.id
        if number not in self._known:
            self._known.add(number)
            self._new.append(ConnectionEnds(number, connection.client, connection.broker, connection.proxied))
        self._connections.append(number)
        self._client_ids.append(values.number(exchange.client_id))
        request, response = exchange.request, exchange.response
        groups = message_groups(request) or message_groups(response)
        topics = message_topics(request, self._topic_name)
        if exchange.fetched is not None and len(topics) <= MAX_SHOWN:
            topics += session_topics(exchange, self._topic_name, MAX_SHOWN + 1)
        elif not topics:
            topics = message_topics(response, self._topic_name)
        self._names.append(values.number((_shown(topics), _shown(groups))) if topics or groups else 0)
        self._errors.append(values.number(_error_names(exchange)) if exchange.errors else 0)

    def on_problem(self, problem: Problem) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)

    def take(self) -> IndexPart:
        """Removes and returns what has been gathered."""
        new, self._new = self._new, []
        narrow = (
            self._request_ns, self._wait_ns, self._response_ns, self._queued, self._held, self._path,
            self._request_packets, self._response_first, self._response_packets, self._request_bytes,
            self._response_bytes, self._connections, self._client_ids, self._names, self._errors,
        )  # fmt: skip
        part = IndexPart(
            array("q", self._started_ns).tobytes(),
            array("q", self._packets).tobytes(),
            array("i", self._correlation_ids).tobytes(),
            array("h", self._apis).tobytes(),
            array("B", self._outcomes).tobytes(),
            array("B", self._flags).tobytes(),
            [narrow_part(column) for column in narrow],
            self._values.take_new(),
            new,
            self._left_out,
        )
        self._begin()
        return part

    def take_problems(self) -> list[Problem]:
        """Removes and returns the problems that came since."""
        problems, self._problems = self._problems, []
        return problems


def _error_names(exchange: Exchange) -> tuple[str, ...]:
    """The names of the errors, each once."""
    if len(exchange.errors) == 1:
        return (exchange.errors[0][2],)
    return tuple(dict.fromkeys([name for _, _, name, _ in exchange.errors]))


def _shown(names: list[str]) -> tuple[str, ...]:
    if len(names) > 1:
        names = list(dict.fromkeys(names))
        if len(names) > MAX_SHOWN:
            names = [*names[:MAX_SHOWN], AND_MORE]
    return tuple(names)
