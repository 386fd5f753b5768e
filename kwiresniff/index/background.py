"""Work in a process of its own, which sends what it finds while it goes on: whoever waits for keys is never held up.

A new interpreter is started: a copy of this process would have the locks of its threads and no threads. Both processes
are ours, so that what passes between them may be pickled.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from typing import IO, Any, Final, TypeAlias

from kwiresniff.errors import KwiresniffError

#: Gives a message to whoever started the work.
Send: TypeAlias = Callable[[object], None]
#: ``work(send, ...)``, a function of a module, so that another process finds it.
Work: TypeAlias = Callable[..., None]

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
    """A process that does ``work(send, *arguments)``, begun at once."""

    def __init__(self, work: Work, *arguments: Any) -> None:
        command = [sys.executable, "-P", "-c", _BEGIN]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(command, **pipes)  # type: ignore[call-overload]
        self._pipe: IO[bytes] = self._process.stdout
        given = self._process.stdin
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
            self._process.wait()
            raise EOFError from None

    def stop(self) -> None:
        """Ends the process; what it has sent can be received."""
        self._process.kill()


def work_and_send() -> None:
    """Does what the process that started this one asks for; nothing else is printed, because the terminal is its."""
    work, arguments = pickle.load(sys.stdin.buffer)
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)

        def send(message: object) -> None:
            pickle.dump(message, out, pickle.HIGHEST_PROTOCOL)
            out.flush()

        try:
            work(send, *arguments)
        except BrokenPipeError:
            os._exit(0)  # nobody waits for it any more
        except KwiresniffError as error:
            send(Failed(str(error)))  # says itself what went wrong and what to do
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{os.path.basename(where.filename)}:{where.lineno}"
            send(Failed(f"{error} ({type(error).__name__}, {place})"))
