"""What a process does that works in the background, and what it sends while it goes on.

All such processes are ours (``forks``), so that what passes between them may be pickled.
"""

from __future__ import annotations

import os
import pickle
import traceback
from collections.abc import Callable
from pkgutil import resolve_name
from typing import IO, Any, TypeAlias

from kwiresniff.errors import KwiresniffError

#: Gives a message to whoever started the work.
Send: TypeAlias = Callable[[object], None]
#: The name of a function ``work(send, ...)``, as ``module:function``: only who does the work imports what it needs.
Work: TypeAlias = str


class Failed:
    """The last message of work that failed: why, in a line."""

    def __init__(self, reason: str) -> None:
        self.reason = reason


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
