"""What fills an index while captures are read.

Written for mypyc: each exchange of a capture passes it.
"""

from __future__ import annotations

from typing import ClassVar, Final

from kwiresniff.analysis.body_entities import message_groups, message_topics, session_topics
from kwiresniff.base.needs import Needs
from kwiresniff.index.exchange_index import ExchangeIndex
from kwiresniff.model import Connection, Exchange, Problem, Sink, TopicNames

#: Topics, and groups, of an exchange that are kept to be shown.
MAX_SHOWN: Final = 4
#: Stands for further ones.
AND_MORE: Final = "…"
#: Problems that wait to be taken; the others are only counted.
MAX_PROBLEMS: Final = 1_000


class IndexSink(Sink):
    """Adds exchanges to ``index``; ``topic_name`` gives topics their names."""

    NEEDS: ClassVar[Needs] = Needs("bodies", sessions=True, digests=True)

    def __init__(self, index: ExchangeIndex, topic_name: TopicNames) -> None:
        self.index = index
        self._topic_name = topic_name
        self._problems: list[Problem] = []

    def on_exchange(self, exchange: Exchange) -> None:
        request, response = exchange.request, exchange.response
        groups = message_groups(request) or message_groups(response)
        topics = message_topics(request, self._topic_name)
        if exchange.fetched is not None and len(topics) <= MAX_SHOWN:
            topics += session_topics(exchange, self._topic_name, MAX_SHOWN + 1)
        elif not topics:
            topics = message_topics(response, self._topic_name)
        self.index.add(exchange, _shown(topics), _shown(groups))

    def on_connection(self, connection: Connection) -> None:
        self.index.end_connection(connection)

    def on_problem(self, problem: Problem) -> None:
        if len(self._problems) < MAX_PROBLEMS:
            self._problems.append(problem)

    def take_problems(self) -> list[Problem]:
        """Removes and returns the problems that came since."""
        problems, self._problems = self._problems, []
        return problems


def _shown(names: list[str]) -> tuple[str, ...]:
    if len(names) > 1:
        names = list(dict.fromkeys(names))
        if len(names) > MAX_SHOWN:
            names = [*names[:MAX_SHOWN], AND_MORE]
    return tuple(names)
