"""Bodies that do not decode cleanly: what is wrong with them, and as much of them as can be read."""

from __future__ import annotations

from typing import final

from kwiresniff import schema
from kwiresniff.codec.decode_errors import trailing_bytes
from kwiresniff.codec.dissector import MessageBytes
from kwiresniff.codec.embedded import OPENERS
from kwiresniff.codec.folding import dissect_shown, front_of, problems_of
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.record_limits import MAX_NODES
from kwiresniff.model import Body, Direction, Exchange, Message, Problem, RecordsMode
from kwiresniff.session.secrets import is_sound
from kwiresniff.session.topic_ids import TopicNameTable, names_topics


@final
class MalformedBodies:
    """Reports what is wrong with bodies, record sets included as ``records`` says; ``shown`` dissects for trees."""

    def __init__(self, records: RecordsMode, topics: TopicNameTable) -> None:
        self._opens = records in ("full", "shown")
        self._draws = records == "shown"
        self._topics = topics

    def report_trailing(self, exchange: Exchange, message: Message, direction: Direction, end: int) -> None:
        """Reports the bytes behind a body that has no other problem."""
        assert message.frame is not None
        size = len(message.frame)
        if size > MAX_NODES:  # it may have more fields than are kept
            problems = problems_of(self._bytes(exchange, message, direction))
        else:
            problems = [trailing_bytes(end, size - end, {"direction": direction})]
        exchange.problems += problems

    def report(
        self,
        exchange: Exchange,
        message: Message,
        direction: Direction,
        body: Body | None,
        issues: list[Problem],
    ) -> tuple[Body, bool]:
        """Reports what is wrong with a message; returns its ``body``, read as far as possible, and whether that can be
        trusted.
        """
        assert message.frame is not None
        missing = message.size_bytes - len(message.frame)
        problems: list[Problem] | None = None
        if self._draws and not names_topics(exchange.api_key, "response"):  # it might name what is shown
            problems, shown = self.dissect(exchange, message, direction)
            body = shown if body is None else body
        if body is None:
            body, problems = front_of(self._bytes(exchange, message, direction))
        elif problems is None:
            problems = problems_of(self._bytes(exchange, message, direction))
        exchange.problems += problems
        if problems and problems[-1].code == "too_many_fields":  # the dissector may not have come as far
            known = {problem.code for problem in problems}
            for issue in issues:
                if issue.code not in known:
                    known.add(issue.code)
                    exchange.problems.append(issue._replace(details={"direction": direction}))
        return body, is_sound(problems, missing)

    def dissect(self, exchange: Exchange, message: Message, direction: Direction) -> tuple[list[Problem], Body | None]:
        """The problems of a message dissected for its tree, and its body if the tree has all of it."""
        assert message.frame is not None
        dissection = dissect_shown(
            schema.message(exchange.api_key, message.version, direction),
            message.frame,
            message.body_offset,
            opened=(exchange.api_key, direction) in OPENERS,
            topic_name=self._topics.name,
            missing=message.size_bytes - len(message.frame),
            details={"direction": direction},
        )
        message.dissection = dissection
        return dissection.problems, plain(dissection.root) if dissection.is_whole else None

    def report_guess(self, exchange: Exchange, direction: Direction, version: int, fits: bool) -> None:
        """Reports that an unknown version was read as another, which ``fits`` to the last byte or not."""
        details = {"direction": direction}
        known = f"{exchange.api} v{exchange.api_version} is unknown"
        if fits:
            text = f"{known}; its {direction} fits v{version} exactly and is read as that"
            exchange.problems.append(Problem("guessed_version", text, 2, details=details))
        else:
            low, high = schema.version_range(exchange.api_key)
            text = f"{known} (known: {low} to {high}) and its {direction} does not fit v{version}"
            exchange.problems.append(Problem("unknown_version", text, 2, details=details))

    def _bytes(self, exchange: Exchange, message: Message, direction: Direction) -> MessageBytes:
        """The arguments for the dissection of a message."""
        assert message.frame is not None
        definition = schema.message(exchange.api_key, message.version, direction)
        missing, details = message.size_bytes - len(message.frame), {"direction": direction}
        return MessageBytes(definition, message.frame, message.body_offset, self._opens, None, missing, details)
