"""A process without threads that forks others for work: whoever waits for keys is never held up.

The program itself has threads when it needs a process: a copy of it would have their locks and not them. Nor could
``sniff`` start another interpreter once it gave up root, because Python may lie where only root may read.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import IO, Any, Final

from kwiresniff.index.background import Work, work_into

_HEAD: Final = struct.Struct("!cQ")
_NUMBER: Final = struct.Struct("!Q")
_START, _KILL = b"s", b"k"


class Background:
    """Work that a process does."""

    def __init__(self, stop: Callable[[], None], pipe: IO[bytes]) -> None:
        self.stop = stop  # ends the process; what it has sent can be received
        self._pipe = pipe

    def receive(self) -> object:
        """The next message, waited for; raises EOFError when the work is over or was stopped, and is called no more
        then.
        """
        try:
            return pickle.load(self._pipe)
        except (EOFError, pickle.UnpicklingError):  # killed in the middle of one
            self.close()
            raise EOFError from None

    def close(self) -> None:
        """Receives no more; the process ends when it sends the next message."""
        self._pipe.close()


class Forks:
    """The process is forked at once, and must be before there are threads; it ends with this one. What it forks has no
    terminal.
    """

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = os.fork()
        if self._process == 0:
            try:
                # None of the files that are open here: the end of some is told by their last owner's.
                os.closerange(3, theirs.fileno())
                os.closerange(theirs.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
                _serve(theirs)
            finally:
                os._exit(0)
        theirs.close()

    def close(self) -> None:
        """Ends the process, and those that it has forked."""
        self._socket.close()
        os.waitpid(self._process, 0)

    def start(self, work: Work, *arguments: Any) -> Background:
        """Has a process do ``work``."""
        order = pickle.dumps((work, arguments))
        ours, theirs = os.pipe()
        socket.send_fds(self._socket, [_HEAD.pack(_START, len(order))], [theirs])
        os.close(theirs)
        self._socket.sendall(order)
        (number,) = _NUMBER.unpack(_received(self._socket, _NUMBER.size))
        return Background(partial(self._kill, number), os.fdopen(ours, "rb"))

    def _kill(self, number: int) -> None:
        """Ends a process, if it has not ended."""
        with suppress(OSError):
            self._socket.sendall(_HEAD.pack(_KILL, number))


def _serve(orders: socket.socket) -> None:
    """Forks what is ordered, until nobody can order any more."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    running: set[int] = set()
    try:
        while True:
            head, received, _, _ = socket.recv_fds(orders, _HEAD.size, 1)
            running -= {number for number in running if os.waitpid(number, os.WNOHANG)[0]}
            if len(head) < _HEAD.size:
                return
            what, number = _HEAD.unpack(head)
            if what == _KILL:
                if number in running:
                    os.kill(number, signal.SIGKILL)
                continue
            order = _received(orders, number)
            child = os.fork()
            if child == 0:
                orders.close()
                try:
                    with os.fdopen(received[0], "wb") as out:
                        work, arguments = pickle.loads(order)
                        work_into(work, arguments, out)
                finally:
                    os._exit(0)
            os.close(received[0])
            running.add(child)
            orders.sendall(_NUMBER.pack(child))
    finally:
        for number in running:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)


def _received(stream: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        piece = stream.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise EOFError
        data += piece
    return bytes(data)
