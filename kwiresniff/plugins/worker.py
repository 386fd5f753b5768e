"""The process of an isolated decoder (see ``kwiresniff.plugins.isolated``): its main loop."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from typing import IO, Any

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
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what the plugin prints is no answer
    options = PluginOptions(*_question(sys.stdin.buffer))
    function = load_again((kind, where), options).hooks[int(number)].function
    while question := _question(sys.stdin.buffer):
        answer = json_text(_answer(function, question))
        signal.setitimer(signal.ITIMER_PROF, later_ms / 1000)
        answers.write(len(answer).to_bytes(LENGTH_BYTES, "big"))
        _write(answers, answer)


def _question(pipe: IO[bytes]) -> Any:
    length = pipe.read(LENGTH_BYTES)
    return pickle.loads(pipe.read(int.from_bytes(length, "big"))) if length else None


def _write(pipe: IO[bytes], data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) :]


def _answer(function: Any, question: tuple[Any, ...]) -> list[Any]:
    kind, *arguments = question
    try:
        found = function.learn(*arguments) if kind == "learn" else function(*arguments)
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
