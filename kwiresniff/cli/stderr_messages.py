"""Messages on stderr: problems of a capture, and what it held when it held no Kafka."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from itertools import islice

from kwiresniff.capture.unread import MAX_SHOWN, in_words, is_worth_a_line
from kwiresniff.cli.event_source import EventSource
from kwiresniff.model import Problem
from kwiresniff.render.escape import escape
from kwiresniff.render.problems import problem_line

#: A folder may hold thousands; the line should still be read.
MAX_FILES_NAMED = 3

#: TLS connections with a message why they are not decrypted; the last line counts them all.
MAX_NOT_DECRYPTED = 5

#: Names of protocols in messages, where they differ from those of ``session.signatures``.
_PROTOCOLS = {
    "unknown": "an unknown protocol", "http": "HTTP", "ssh": "SSH", "zookeeper": "ZooKeeper", "amqp": "AMQP",
    "kafka responses": "what reads like Kafka's responses (one direction was captured)",
}  # fmt: skip

_HOW_TO_DECRYPT = "to decrypt TLS, name its key log with --keylog FILE"
_NOT_DECRYPTED = "the keys are not in the key log, or the handshake is not in the capture"


class Messages:
    """Prints problems as they come, one line each, and keeps what is not Kafka for the end: when there was no Kafka at
    all, that becomes one line saying what there was instead.

    ``elsewhere`` says that the output itself has the problems, so that only this last line is left to say.
    """

    def __init__(self, source: EventSource, *, elsewhere: bool = False) -> None:
        self._source = source
        self._elsewhere = elsewhere
        self._quiet = source.options.quiet
        self._line: Callable[[Problem], str] | None = None
        self._others: list[Problem] = []
        self._not_decrypted = 0

    def problem(self, problem: Problem) -> None:
        """One problem of the capture."""
        if problem.code == "not_kafka":
            self._others.append(problem)
        elif (problem.details or {}).get("cut"):
            return  # the snap length was reported
        elif not (self._elsewhere or self._quiet):
            self._not_decrypted += problem.code == "not_decrypted"
            if problem.code != "not_decrypted" or self._not_decrypted <= MAX_NOT_DECRYPTED:
                self._print_problem(problem)

    def end(self) -> None:
        """Prints what was kept for the end."""
        for line in self.last_lines():
            self._print(line)

    def last_lines(self) -> Iterator[str]:
        """The lines that were kept for the end, escaped; complete once everything was read."""
        for name in self._source.names_not_found:
            yield f"no address in the captures is called {escape(name)!r}; names can be given with --hosts FILE"
        if not self._source.exchanges:
            yield self._no_kafka()
            return
        for name, count in self._source.captures.other_packets.items():
            if is_worth_a_line(name):
                yield f"{_many(count, 'packet')} {in_words(name)}"
        if not self._elsewhere:
            yield from map(problem_line, self._others)
            if self._source.encrypted:
                yield f"{_many(self._source.encrypted, 'TLS connection')} not decrypted; {self._advice()}"

    def _print_problem(self, problem: Problem) -> None:
        if self._line is None:
            self._line = problem_line
        self._print(self._line(problem))

    def _print(self, line: str) -> None:
        if not self._quiet:
            sys.stdout.flush()
            sys.stderr.write(f"kwiresniff: {line}\n")

    def _advice(self) -> str:
        return _NOT_DECRYPTED if self._source.options.keylog is not None else _HOW_TO_DECRYPT

    def _no_kafka(self) -> str:
        counts: dict[str, int] = {}
        for problem in self._others:
            details = problem.details or {}
            protocol = str(details.get("protocol", "unknown"))
            name = _PROTOCOLS.get(protocol, protocol)
            counts[name] = counts.get(name, 0) + int(details.get("connections", 1))
        if self._source.encrypted:
            counts["TLS"] = self._source.encrypted
        found = [f"{_many(count, 'TCP connection')} with {name}" for name, count in counts.items()]
        others, limit = self._source.captures.other_packets, self._source.options.packets
        bare = self._source.captures.packets - sum(others.values())
        if not found and bare > 0 and limit is None:
            found.append(f"{_many(bare, 'packet')} of TCP without data")
        found += [f"{_many(count, 'packet')} {in_words(name)}" for name, count in islice(others.items(), MAX_SHOWN)]
        if len(others) > MAX_SHOWN:
            found.append("others")
        files = self._source.files
        where = ", ".join(files[:MAX_FILES_NAMED]) + (", ..." if len(files) > MAX_FILES_NAMED else "")
        there = "there was" if found and found[0].startswith("1 ") else "there were"
        lacking = "no request of Kafka" if _PROTOCOLS["kafka responses"] in counts else "no Kafka"
        first = "packet" if limit == 1 else f"{limit} packets"
        part = "it" if limit is None else f"the first {first} of TCP (-c)"
        seen = f"; {there} {', '.join(found) or 'no packets'}" if found or limit is None else ""
        what = escape(f"{where}: {lacking} in {part}{seen}")
        return f"{what}; {self._advice()}" if self._source.encrypted else what


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
