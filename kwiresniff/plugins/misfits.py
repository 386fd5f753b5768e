"""Keys and values that name a schema and do not fit it, as problems of their exchange."""

from __future__ import annotations

from typing import Any

from kwiresniff.analysis.body_entities import topic_of_struct
from kwiresniff.base.api_keys import PRODUCE
from kwiresniff.base.entities import PARTITION_INDEXES
from kwiresniff.model import Body, Direction, Exchange, Problem, TopicNames
from kwiresniff.plugins.answers import DoesNotFit

#: Problems of one exchange; each counts all records of a partition that do not fit one schema.
MAX_MISFIT_PROBLEMS = 100


class Misfits:
    """Counts misfitting records by partition, part and schema; ``hides_values`` omits schema and reason."""

    def __init__(self, exchange: Exchange, topic_name: TopicNames, *, hides_values: bool) -> None:
        self._exchange = exchange
        self._topic_name = topic_name
        self._hides = hides_values
        self._found: dict[tuple[Any, ...], Problem] = {}
        self._side: Direction = "request"
        self._topic: str | None = None
        self._holder: Body = {}

    def begin(self, side: Direction, topic: str | None, holder: Body) -> None:
        """The next record set is that of the structure ``holder``."""
        self._side, self._topic, self._holder = side, topic, holder

    def add(self, path: str, record: Body, part: str, plugin: str, error: DoesNotFit) -> None:
        """One more; ``path`` leads to it from its record set."""
        partition = _partition_of(self._holder)
        key = (self._side, self._topic, partition, part, plugin, error.schema)
        if key not in self._found and len(self._found) >= MAX_MISFIT_PROBLEMS:
            key = next(reversed(self._found))  # the last one counts those, too, for which there is no room
        known = self._found.get(key)
        if known is not None and known.details is not None:
            known.details["records"] += 1
            return
        offset = record.get("offset", 0) + self._written_at(partition)
        self._found[key] = Problem(
            "payload_does_not_fit",
            self._text(f"{self._topic or '?'}-{partition}", offset, part, error),
            path=f"{self._path()}{path}",
            details={
                "direction": self._side,
                "topic": self._topic,
                "partition": partition,
                "record_offset": offset,
                "part": part,
                "schema": None if self._hides else error.schema,
                "plugin": plugin,
                "records": 1,
            },
        )

    def problems(self) -> list[Problem]:
        """The problems found."""
        return [_counted(problem) for problem in self._found.values()]

    def _text(self, where: str, offset: int, part: str, error: DoesNotFit) -> str:
        if self._hides:
            return f"the {part} at offset {offset} of {where} does not fit the schema that it names"
        why = f": {error.why}" if error.why else ""
        return f"the {part} at offset {offset} of {where} names schema {error.schema} and does not fit it{why}"

    def _written_at(self, partition: Any) -> int:
        """The offset that the broker gave the first record of what was produced; others are counted from it."""
        exchange = self._exchange
        response = exchange.response.body if exchange.response is not None else None
        if exchange.api_key != PRODUCE or not response:
            return 0
        for topic in response.get("responses") or ():
            if topic_of_struct("responses", topic, self._topic_name) == self._topic:
                for answer in topic.get("partition_responses") or ():
                    if _partition_of(answer) == partition:
                        return max(int(answer.get("base_offset", 0)), 0)
        return 0

    def _path(self) -> str:
        """The path of the record set in its message."""
        exchange = self._exchange
        message = exchange.request if self._side == "request" else exchange.response
        todo: list[tuple[str, Any]] = [("", message.body if message is not None else None)]
        while todo:
            path, member = todo.pop()
            if member is self._holder:
                return f"{path}.records".removeprefix(".")
            if isinstance(member, dict):
                todo += [(f"{path}.{name}", one) for name, one in member.items() if name != "records"]
            elif isinstance(member, list):
                todo += [(f"{path}[{index}]", one) for index, one in enumerate(member)]
        return "records"


def _counted(problem: Problem) -> Problem:
    """The problem with the number of its records in its text."""
    more = (problem.details or {}).get("records", 1) - 1
    return problem._replace(message=f"{problem.message}; {more} more do not fit it either") if more else problem


def _partition_of(holder: Body) -> int | None:
    return next((holder[name] for name in PARTITION_INDEXES if name in holder), None)
