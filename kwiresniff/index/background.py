"""Work in a process of its own, which sends what it finds while it goes on: whoever waits for keys is never held up.

A new interpreter is started: a copy of this process would have the locks of its threads and no threads. Where that may
not be read, a process without threads forks others (``forks``). All processes are ours, so that what passes between
them may be pickled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pkgutil import resolve_name
from typing import IO, Any, Final, TypeAlias

from kwiresniff.errors import KwiresniffError
from kwiresniff.index.forks import Forks

#: Gives a message to whoever started the work.
Send: TypeAlias = Callable[[object], None]
#: The name of a function ``work(send, ...)``, as ``module:function``: only who does the work imports what it needs.
Work: TypeAlias = str

#: What the new interpreter does. It imports from where this one does, and never from the current folder.
_BEGIN: Final = (
    "import pickle, sys; sys.path[:] = pickle.load(sys.stdin.buffer); "
    "from kwiresniff.index.background import work_and_send; work_and_send()"
)


class Failed:
    """The last message of work that failed: why, in a line."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


class Background:
    """A process that does ``work`` with ``arguments``, begun at once; with ``forks``, forked by them."""

    def __init__(self, work: Work, *arguments: Any, forks: Forks | None = None) -> None:
        self.stop: Callable[[], None]  # ends the process; what it has sent can be received
        self._wait: Callable[[], object] = int
        self._pipe: IO[bytes]
        if forks is not None:
            number, self._pipe = forks.start(work, arguments)
            self.stop = partial(forks.kill, number)
            return
        command = [sys.executable, "-P", "-c", _BEGIN]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]
        self.stop, self._wait = process.kill, process.wait
        self._pipe = process.stdout
        given = process.stdin
        pickle.dump(sys.path, given)
        pickle.dump((work, arguments), given)
        given.close()

    def receive(self) -> object:
        """The next message, waited for; raises EOFError when the work is over or was stopped, and is called no more
        then.
        """
        try:
            return pickle.load(self._pipe)
        except (EOFError, pickle.UnpicklingError):  # killed in the middle of one
            self._pipe.close()
            self._wait()
            raise EOFError from None


def work_and_send() -> None:
    """Does what the process that started this one asks for; nothing else is printed, because the terminal is its."""
    work, arguments = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        work_into(work, arguments, out)


def work_into(work: Work, arguments: tuple[Any, ...], out: IO[bytes]) -> None:
    """Does ``work``, which sends its messages to ``out``, and at the end why it failed, if it has."""

    def send(message: object) -> None:
        pickle.dump(message, out, pickle.HIGHEST_PROTOCOL)
        out.flush()

    try:
        resolve_name(work)(send, *arguments)
    except BrokenPipeError:
        os._exit(0)  # nobody waits for it any more
    except KwiresniffError as error:
        send(Failed(str(error)))  # says itself what went wrong and what to do
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{os.path.basename(where.filename)}:{where.lineno}"
        send(Failed(f"{error} ({type(error).__name__}, {place})"))
