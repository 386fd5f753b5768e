"""An HTTP server for one page that peers can neither exhaust nor make print errors.

It answers GET and HEAD of ``PATH`` and nothing else, to whoever names the server by an IP address, as localhost, or by
a name that it was told of. A browser that follows a foreign name to this address (DNS rebinding) sends that name in
``Host`` and is answered 421 (RFC 9110, 15.5.20).

Connections, the time of each, and the bytes of a request are bounded; requests are answered one at a time, since what
they ask for competes with the capture for the processor. What goes wrong on a connection ends that connection.
"""

from __future__ import annotations

import ipaddress
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

#: Connections at a time; who comes when there are so many is hung up on. A monitoring system has one or two.
MAX_CONNECTIONS = 32
#: Seconds that one may last: as long as Prometheus waits by default.
MAX_SECONDS = 10
#: Request line and headers. Browsers send 1 or 2 kB.
MAX_REQUEST_BYTES = 16_384

#: The one page.
PATH = "/metrics"

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


class HttpServer(socketserver.ThreadingMixIn, WSGIServer):
    """Answers with a WSGI application (PEP 3333) until closed, in threads of its own. Raises OSError."""

    daemon_threads = True

    def __init__(self, host: str, port: int, application: Application, names: Iterable[str] = ()) -> None:
        """``host`` is a name or an IP address, empty for all of them; port 0 is any that is free.

        ``names`` are those of this server, without a port, besides ``host`` and localhost.
        """
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self.address_family, _, _, _, address = found[0]
        self._ends: dict[Any, float] = {}  # open connections and when they must end
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._application = application
        self._names = {_bare(name) for name in (host, "localhost", *names)}
        super().__init__(address[:2], _Handler)  # type: ignore[arg-type]
        self.set_app(self._answer)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.2,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Ends the server and its threads."""
        self.shutdown()
        self.server_close()
        self._thread.join()

    def server_bind(self) -> None:
        """Without asking for the host's name, which may take a while and is of no use here."""
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            full = len(self._ends) >= MAX_CONNECTIONS
            if not full:
                self._ends[request] = time.monotonic() + MAX_SECONDS
        if full:
            self.shutdown_request(request)
        else:
            super().process_request(request, client_address)

    def service_actions(self) -> None:
        """Called several times a second."""
        now = time.monotonic()
        with self._lock:
            for request, end in self._ends.items():
                if now > end:
                    with suppress(OSError):
                        request.shutdown(socket.SHUT_RDWR)  # wakes the thread that reads or writes there

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._ends.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Nothing: a peer that hangs up, or sends no valid request, is not reported."""

    def _answer(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        refusal = self._refusal(environ)
        if refusal is not None:
            status, text, *headers = refusal
            start_response(status, [("Content-Type", "text/plain; charset=utf-8"), *headers])
            return [text.encode()]
        begun: list[Any] = []
        with self._turn:
            try:
                body = b"".join(self._application(environ, lambda *given: begun.append(given)))
                status, headers = begun[0][:2]
            except Exception as error:
                status, headers = "500 Internal Server Error", [("Content-Type", "text/plain; charset=utf-8")]
                body = f"{type(error).__name__}\n".encode()
        start_response(status, [*headers, ("Content-Length", str(len(body)))])
        return [body] if environ["REQUEST_METHOD"] == "GET" else []

    def _refusal(self, environ: dict[str, Any]) -> tuple[Any, ...] | None:
        """Status, text and headers of the answer to a request that is not for the page; None for one that is."""
        host = environ.get("HTTP_HOST")
        if host is not None and not self._is_ours(host):
            return "421 Misdirected Request", "this name is not served here; see --metrics-host\n"
        if environ["PATH_INFO"] != PATH:
            return "404 Not Found", f"there is {PATH}\n"
        if environ["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return "405 Method Not Allowed", "GET and HEAD\n", ("Allow", "GET, HEAD")
        return None

    def _is_ours(self, host: str) -> bool:
        """Whether a ``Host`` names this server. An IP address always does: no foreign name led to it."""
        name = host
        if host.startswith("["):
            name, _, port = host[1:].partition("]")
            port = port.removeprefix(":")
        else:
            name, _, port = host.partition(":")
        if port and not (port.isascii() and port.isdecimal()):
            return False
        if _bare(name) in self._names:
            return bool(name)
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _bare(name: str) -> str:
    """A host's name as they are compared: in small letters, without the root's dot."""
    return name.lower().removesuffix(".")


class _Handler(WSGIRequestHandler):
    """One connection, which is one request."""

    def setup(self) -> None:
        super().setup()
        self.rfile = _Limited(self.rfile)  # type: ignore[assignment]

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: standard error belongs to the capture."""


class _Limited:
    """The bytes of a request, of which there may be only so many; raises ConnectionError beyond that."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._left = MAX_REQUEST_BYTES

    def readline(self, size: int = -1) -> bytes:
        return self._counted(self._stream.readline(self._left + 1 if size < 0 else min(size, self._left + 1)))

    def read(self, size: int = -1) -> bytes:
        return self._counted(self._stream.read(self._left + 1 if size < 0 else min(size, self._left + 1)))

    def close(self) -> None:
        self._stream.close()

    @property
    def closed(self) -> bool:
        return bool(self._stream.closed)

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise ConnectionError(f"a request of more than {MAX_REQUEST_BYTES} bytes")
        return data
