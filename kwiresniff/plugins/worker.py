"""The process of an isolated decoder (see ``kwiresniff.plugins.isolated``): its main loop."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import Any

from kwiresniff.errors import PluginError
from kwiresniff.export.encode import json_text
from kwiresniff.plugins.answers import Decoded, DoesNotFit, TooMuch, checked_copy, described
from kwiresniff.plugins.hooks import PluginOptions
from kwiresniff.plugins.isolated import LENGTH_BYTES
from kwiresniff.plugins.loading import load_again


def main() -> None:
    """Loads the plugin that the arguments name and answers until standard input ends."""
    kind, where, number, *limits = sys.argv[1:]
    first_ms, later_ms = map(int, limits)
    signal.setitimer(signal.ITIMER_PROF, first_ms / 1000)  # SIGPROF ends a process that does not handle it
    pipes = _Pipes()
    options = PluginOptions(*pipes.received())
    try:
        function = load_again((kind, where), options).hooks[int(number)].function
    except BaseException as error:
        pipes.send(["raised", str(error) if isinstance(error, PluginError) else described(error)])
        return
    pipes.send(["nothing"])
    asked = _Asked(function, pipes)
    while question := pipes.received():
        answer = asked.answer(*question)
        signal.setitimer(signal.ITIMER_PROF, later_ms / 1000)
        pipes.send(answer)


class _Pipes:
    """Messages from and to the process that asks; what the plugin prints goes to standard error."""

    def __init__(self) -> None:
        self._questions = sys.stdin.buffer
        self._answers = os.fdopen(os.dup(1), "wb", buffering=0)
        os.dup2(2, 1)

    def received(self) -> Any:
        """The next message, None at the end."""
        length = self._questions.read(LENGTH_BYTES)
        return pickle.loads(self._questions.read(int.from_bytes(length, "big"))) if length else None

    def send(self, message: list[Any]) -> None:
        """Writes an answer, or what is asked before it."""
        text = json_text(message)
        left = memoryview(len(text).to_bytes(LENGTH_BYTES, "big") + text)
        while left:
            left = left[self._answers.write(left) :]


class _Asked:
    """The decoder, which is told the node of the clusters where that is another than before."""

    def __init__(self, function: Any, pipes: _Pipes) -> None:
        self._function = function
        self._pipes = pipes
        self._enter = getattr(function, "enter", None)
        self._node: int | None = None

    def answer(self, kind: str, node: int, *arguments: Any) -> list[Any]:
        """Its answer, or what it raised."""
        try:
            if node != self._node and self._enter is not None:
                self._enter(node, self._scope)
            self._node = node
            found = self._function.learn(*arguments) if kind == "learn" else self._function(*arguments)
            if kind == "learn" or found is None:
                return ["nothing"]
            found = checked_copy(found, None)
        except DoesNotFit as error:
            return ["does not fit", error.schema, error.why]
        except TooMuch as error:
            return ["too much", str(error)]
        except BaseException as error:
            return ["raised", described(error)]
        if isinstance(found, Decoded):
            return ["decoded", *found]
        return ["found", found]

    def _scope(self, node: int) -> int:
        """Asks, while a question is being answered, for the scope of a node by now."""
        self._pipes.send(["scope", node])
        scope: int = self._pipes.received()
        return scope
