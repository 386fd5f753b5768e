"""A process without threads that forks others for work, for a program that could not start another interpreter: it gave
up root, and Python may lie where only root may read.

Such a program has threads when it needs a process: a copy of it would have their locks and not them.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any, Final

_HEAD: Final = struct.Struct("!cQ")
_NUMBER: Final = struct.Struct("!Q")
_START, _KILL = b"s", b"k"

#: ``run(work, arguments, out)``: does the work in the new process, which has ``out`` to send what it finds.
Run = Callable[[Any, "tuple[Any, ...]", IO[bytes]], None]


class Forks:
    """The process is forked at once, and must be before there are threads; it ends with this one. What it forks calls
    ``run``, without a terminal.
    """

    def __init__(self, run: Run) -> None:
        self._socket, theirs = socket.socketpair()
        self._process = os.fork()
        if self._process == 0:
            try:
                self._socket.close()
                _serve(theirs, run)
            finally:
                os._exit(0)
        theirs.close()

    def close(self) -> None:
        """Ends the process, and those that it has forked."""
        self._socket.close()
        os.waitpid(self._process, 0)

    def start(self, work: Any, arguments: tuple[Any, ...]) -> tuple[int, IO[bytes]]:
        """Has a process do ``work``: its number, and what it sends."""
        order = pickle.dumps((work, arguments))
        ours, theirs = os.pipe()
        socket.send_fds(self._socket, [_HEAD.pack(_START, len(order))], [theirs])
        os.close(theirs)
        self._socket.sendall(order)
        (number,) = _NUMBER.unpack(_received(self._socket, _NUMBER.size))
        return number, os.fdopen(ours, "rb")

    def kill(self, number: int) -> None:
        """Ends a process, if it has not ended."""
        with suppress(OSError):
            self._socket.sendall(_HEAD.pack(_KILL, number))


def _serve(orders: socket.socket, run: Run) -> None:
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
                        run(work, arguments, out)
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
