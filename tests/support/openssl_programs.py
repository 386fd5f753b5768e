"""TLS between the programs ``openssl s_client`` and ``openssl s_server``, for what Python's ssl cannot: early data."""

from __future__ import annotations

import select
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.support.tls_conversation import DATA, Flight

PATIENCE_SECONDS = 60.0
CERTIFICATE = str(DATA / "broker.pem")


def early_talk(folder: Path, answer: str, question: bytes, reply: bytes) -> tuple[list[Flight], Path]:
    """What goes over the wire when a client resumes a session and sends ``question`` as early data, which the server
    ``answer``: ``takes``, ``refuses`` (it does not know the session) or ``asks again`` (for a key of its curve). What
    is not taken is sent once more; then comes ``reply``. Returns the client's key log, too.
    """
    session, early, keylog = (str(folder / name) for name in ("session.pem", "early", "keys.log"))
    Path(early).write_bytes(question)
    with _server("-max_early_data", "16384", "-early_data", "-no_anti_replay") as (server, port):
        with _client(port, "-sess_out", session) as client:
            _say(client.stdin, b"x", server.stdout)
            _until(lambda: Path(session).exists() and Path(session).stat().st_size > 0)
        if answer == "takes":
            return _resumed(server, port, (session, early, keylog), b"", reply), Path(keylog)
    curves = ("-groups", "P-384") if answer == "asks again" else ()
    with _server("-max_early_data", "16384", "-early_data", "-no_anti_replay", *curves) as (server, port):
        return _resumed(server, port, (session, early, keylog), question, reply), Path(keylog)


def _resumed(
    server: subprocess.Popen[bytes], port: int, files: tuple[str, str, str], again: bytes, reply: bytes
) -> list[Flight]:
    flights: list[Flight] = []
    session, early, keylog = files
    with _tap(port, flights) as tapped:
        options = ("-sess_in", session, "-early_data", early, "-keylogfile", keylog)
        with _client(tapped, *options) as client:
            if again:
                _say(client.stdin, again, server.stdout)
            _until(lambda: any(side for side, _ in flights))
            _say(server.stdin, reply, client.stdout)
    return flights


@contextmanager
def _server(*options: str) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with _program(
        "s_server", "-accept", f"127.0.0.1:{port}", "-cert", CERTIFICATE, "-key", CERTIFICATE, *options
    ) as one:
        _until(lambda: _listens(port))
        yield one, port


@contextmanager
def _client(port: int, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    with _program("s_client", "-connect", f"127.0.0.1:{port}", *options) as one:
        yield one


@contextmanager
def _program(name: str, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["openssl", name, "-tls1_3", "-quiet", *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def _tap(port: int, flights: list[Flight]) -> Iterator[int]:
    """A port that leads to another one; what passes is noted."""

    def carry(listener: socket.socket) -> None:
        with listener.accept()[0] as client, socket.create_connection(("127.0.0.1", port)) as server:
            ends = [client, server]
            while True:
                for end in select.select(ends, [], [])[0]:
                    side = ends.index(end)
                    data = end.recv(65_536)
                    if not data:
                        return
                    flights.append((side, data))
                    ends[1 - side].sendall(data)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=carry, args=(listener,))
        thread.start()
        yield listener.getsockname()[1]
        thread.join(PATIENCE_SECONDS)


def _say(pipe: IO[bytes] | None, data: bytes, heard: IO[bytes] | None) -> None:
    """Writes to one program until the other has it."""
    assert pipe is not None
    pipe.write(data)
    _read(heard, len(data))


def _read(pipe: IO[bytes] | None, size: int) -> None:
    assert pipe is not None
    while size > 0:
        assert select.select([pipe], [], [], PATIENCE_SECONDS)[0], "nothing came"
        size -= len(pipe.read(size))


def _listens(port: int) -> bool:
    """Whether a port is listened on, by the kernel's list: a server would serve who asks it."""
    return f"0100007F:{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
