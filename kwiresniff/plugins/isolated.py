"""A value decoder in a process of its own, for libraries that hostile bytes can crash or hang (C extensions).

The process loads the plugin again and answers one question after the other through pipes: a length of 4 bytes,
big-endian, and that much of JSON, or of pickle in the direction to the process, which is trusted less than this one.
The first message to it has the options of plugins; the others begin with the node of the clusters that they are about,
of which the process may ask the scope before it answers. One that does not answer in time, or ends, is killed and
started again for the next value. A timer of the system ends it when it uses too much processor time, whatever code it
is in.
"""

from __future__ import annotations

import json
import os
import pickle
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from kwiresniff.errors import PluginError
from kwiresniff.model import Body
from kwiresniff.plugins.answers import Decoded, DoesNotFit, NotStarted, TooMuch, out_of_reach
from kwiresniff.plugins.hooks import Plugin
from kwiresniff.plugins.timing import CALL_MS, FIRST_CALL_MS, WAIT_MS, TookTooLong

#: Bytes of an answer: a hundred thousand values and their names.
MAX_ANSWER_BYTES = 64 << 20
#: Bytes of records with schemas that are told again to a process that is started again; later ones are told once.
MAX_LEARNED_BYTES = 16 << 20
#: Bytes that are read of a pipe at once.
_PIECE: Final = 1 << 16
LENGTH_BYTES: Final = 4

_START: Final = "import sys; sys.path.append({folder!r}); from kwiresniff.plugins.worker import main; main()"
_FOLDER: Final = str(Path(__file__).parents[2])


class FailedThere(PluginError):
    """An exception of a function in its process, with the name of its class."""


class IsolatedDecoder:
    """Asks a decoder in another process, which is started with the first value."""

    def __init__(self, plugin: Plugin, number: int) -> None:
        """``plugin`` is loaded again, by its ``source``; ``number`` says which of its hooks the decoder is."""
        self._plugin = plugin
        self._number = number
        self._process: subprocess.Popen[bytes] | None = None
        self._learned: list[tuple[int, str, bytes | None, bytes | None]] = []
        self._node = 0
        self._scope: Callable[[int], int] = lambda node: 0

    def __call__(self, topic: str | None, part: str, data: bytes, headers: Sequence[Body]) -> Any:
        """The answer. Raises DoesNotFit, TooMuch, TookTooLong, FailedThere, NotStarted, and PluginError where its
        process ended.
        """
        kind, *found = self._ask(("decode", self._node, topic, part, data, list(headers)))
        if kind == "decoded":
            return Decoded(*found)
        if kind == "does not fit":
            raise DoesNotFit(*found)
        if kind == "too much":
            raise TooMuch(*found)
        if kind == "raised":
            raise FailedThere(*found)
        return found[0] if found else None

    def close(self) -> None:
        """Ends the process, if there is one."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _ask(self, question: tuple[Any, ...]) -> list[Any]:
        try:
            if self._process is None:
                self._process = self._started()
                # By the pipe, because others see arguments: URLs have passwords.
                try:
                    kind, *found = self._answer(tuple(self._plugin.options))
                except PluginError as error:
                    raise NotStarted(str(error)) from None
                if kind == "raised":
                    raise NotStarted(f"its process says: {found[0]}")
                for one in self._learned:
                    self._answer(("learn", *one))
            return self._answer(question)
        except BaseException:
            self.close()
            raise

    def _started(self) -> subprocess.Popen[bytes]:
        # -P and its own folder: nothing of the user's is imported. Its own session: Ctrl-C is this process's.
        assert self._plugin.source is not None
        arguments = [sys.executable, "-P", "-c", _START.format(folder=_FOLDER), *self._plugin.source]
        arguments += [str(self._number), str(FIRST_CALL_MS), str(CALL_MS)]
        for path in (sys.executable, _FOLDER):
            if refused := out_of_reach(path):
                raise NotStarted(refused)
        process = subprocess.Popen(
            arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", bufsize=0, start_new_session=True
        )
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            os.set_blocking(pipe.fileno(), False)
        return process

    def _answer(self, question: tuple[Any, ...]) -> list[Any]:
        """What the process answers in time; what it asks meanwhile is answered."""
        end = time.monotonic() + WAIT_MS / 1000
        self._send(question, end)
        while True:
            size = int.from_bytes(self._read(LENGTH_BYTES, end), "big")
            if size > MAX_ANSWER_BYTES:
                raise TooMuch(f"of {size} bytes")
            answer = json.loads(self._read(size, end))
            if not isinstance(answer, list) or not answer:
                raise PluginError("its process answers with something else than was asked for")
            if answer[0] != "scope":
                return answer
            self._send(self._scope(answer[1]), end)

    def _send(self, message: Any, end: float) -> None:
        assert self._process is not None and self._process.stdin is not None
        pipe = self._process.stdin.fileno()
        data = pickle.dumps(message)
        left = memoryview(len(data).to_bytes(LENGTH_BYTES, "big") + data)
        while left:
            _wait(pipe, select.POLLOUT, end)
            try:
                left = left[os.write(pipe, left) :]
            except BrokenPipeError:
                raise self._ended() from None

    def _read(self, size: int, end: float) -> bytes:
        assert self._process is not None and self._process.stdout is not None
        pipe = self._process.stdout.fileno()
        found = bytearray()
        while len(found) < size:
            _wait(pipe, select.POLLIN, end)
            piece = os.read(pipe, min(size - len(found), _PIECE))
            if not piece:
                raise self._ended()
            found += piece
        return bytes(found)

    def _ended(self) -> PluginError:
        """The error for a process that has ended. Raises TookTooLong for one that its timer ended."""
        assert self._process is not None
        code = self._process.wait()
        if code == -signal.SIGPROF:
            raise TookTooLong
        return PluginError(f"its process ended {f'by signal {-code}' if code < 0 else f'with code {code}'}")


class LearningDecoder(IsolatedDecoder):
    """An isolated decoder that learns schemas, again when its process had to be restarted."""

    _learned_bytes = 0

    def learn(self, topic: str, key: bytes | None, value: bytes | None) -> None:
        """Passes a record on. Raises FailedThere, TookTooLong or PluginError."""
        self._learned_bytes += len(key or b"") + len(value or b"")
        if self._learned_bytes <= MAX_LEARNED_BYTES:
            self._learned.append((self._node, topic, key, value))
            if self._process is None:
                return  # it is told when it starts
        kind, *found = self._ask(("learn", self._node, topic, key, value))
        if kind == "raised":
            raise FailedThere(*found)

    def enter(self, node: int, scope: Callable[[int], int]) -> None:
        """Keeps the node of the clusters that what follows is about; the process is told with it."""
        self._node, self._scope = node, scope


def _wait(pipe: int, events: int, end: float) -> None:
    poller = select.poll()
    poller.register(pipe, events)
    left = end - time.monotonic()
    if left <= 0 or not poller.poll(left * 1000):
        raise TookTooLong
