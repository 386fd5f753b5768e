"""The HTTP server of ``--metrics``: peers can neither exhaust it nor make it complain."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kwiresniff.export import metrics_http
from kwiresniff.export.metrics_http import HttpServer


def hello(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    if environ["QUERY_STRING"] == "broken":
        raise ValueError("a detail of ours")
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"hello"]


@pytest.fixture
def server() -> Iterator[HttpServer]:
    made = HttpServer("127.0.0.1", 0, hello)
    yield made
    made.close()


def ask(server: HttpServer, data: bytes = b"GET /metrics HTTP/1.0\r\n\r\n") -> bytes:
    """What comes back until the server hangs up."""
    with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as peer:
        found = b""
        try:
            peer.sendall(data)
            peer.shutdown(socket.SHUT_WR)
            while part := peer.recv(65_536):
                found += part
        except OSError:  # it did not wait for the rest
            pass
        return found


def waited(condition: Callable[[], bool]) -> bool:
    """Whether it comes true within some seconds."""
    end = time.monotonic() + 5
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def test_a_request_is_answered(server: HttpServer) -> None:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/metrics") as answer:
        assert answer.read() == b"hello"


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /metrics", 200),
        ("GET /metrics?name[]=up", 200),
        ("HEAD /metrics", 200),
        ("GET /", 404),
        ("GET /metrics/", 404),
        ("GET /favicon.ico", 404),
        ("POST /metrics", 405),
        ("OPTIONS /metrics", 405),
        ("DELETE /metrics", 405),
    ],
)
def test_there_is_one_page_to_read(server: HttpServer, line: str, status: int) -> None:
    """RFC 9110: other paths are not found, other methods are not allowed, HEAD has no body."""
    found = ask(server, f"{line} HTTP/1.0\r\n\r\n".encode())
    assert found.split()[1] == b"%d" % status
    assert found.endswith(b"hello") == (status == 200 and line.startswith("GET"))
    assert (b"\r\nAllow: GET, HEAD\r\n" in found) == (status == 405)
    if line.startswith("HEAD"):
        assert found.endswith(b"\r\nContent-Length: 5\r\n\r\n")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9308", 200),
        ("localhost", 200),
        ("LocalHost.:9308", 200),
        ("[::1]:9308", 200),
        ("192.0.2.7", 200),
        ("node-3.example.org:9308", 200),
        ("attacker.example", 421),
        ("127.0.0.1.attacker.example:9308", 421),
        ("localhost.attacker.example", 421),
        ("localhost:9308@attacker.example", 421),
        ("2130706433.example:1", 421),
        ("", 421),
        ("[::1", 200),
        ("[attacker.example]", 421),
    ],
)
def test_only_a_name_of_ours_is_answered(host: str, status: int) -> None:
    """A foreign name that leads to this address (DNS rebinding) would let a web page read the metrics."""
    server = HttpServer("", 0, hello, ["Node-3.example.org"])
    try:
        found = ask(server, f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        assert found.split()[1] == b"%d" % status
        assert found.endswith(b"hello") == (status == 200)
    finally:
        server.close()


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\xff" * 500,
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9.9\r\n\r\n",
        b"GET /%ff%00?name[]=%zz HTTP/1.0\r\nAccept: \xff;;version=x\r\n\r\n",
        b"GET / HTTP/1.0\r\n" + b"a" * 70_000,
        b"GET / HTTP/1.0\r\n" + b"X: y\r\n" * 10_000,
        b"\0" * 100_000,
        b"GET /metrics?broken HTTP/1.0\r\n\r\n",
        b"",
    ],
)
def test_a_bad_request_ends_its_connection_and_is_not_worth_a_word(
    server: HttpServer, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing on standard error, no inner details in the answer, and the next one is served."""
    found = ask(server, data or b"\r\n")
    assert b"Traceback" not in found
    assert b"a detail of ours" not in found
    assert ask(server).endswith(b"hello")
    assert capsys.readouterr() == ("", "")


def test_a_peer_that_hangs_up_is_not_worth_a_word(server: HttpServer, capsys: pytest.CaptureFixture[str]) -> None:
    """With a reset, in the middle of its request."""
    for _ in range(3):
        peer = socket.create_connection(("127.0.0.1", server.server_port))
        peer.sendall(b"GET / HT")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        peer.close()
    assert ask(server).endswith(b"hello")
    assert capsys.readouterr() == ("", "")


@pytest.mark.slow
def test_there_are_no_more_connections_than_may_be(server: HttpServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would have a thread; who comes then is hung up on, and served when others have gone."""
    monkeypatch.setattr(metrics_http, "MAX_CONNECTIONS", 4)
    before = threading.active_count()
    with ExitStack() as idle:
        for _ in range(20):
            peer = idle.enter_context(socket.create_connection(("127.0.0.1", server.server_port), timeout=5))
            peer.sendall(b"GET ")
        assert waited(lambda: threading.active_count() == before + 4)
        assert ask(server) == b""
        assert threading.active_count() == before + 4
    assert waited(lambda: ask(server).endswith(b"hello"))


def test_a_slow_peer_is_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that sends a byte now and then, so that it is never idle for long."""
    monkeypatch.setattr(metrics_http, "MAX_SECONDS", 0.3)
    server = HttpServer("127.0.0.1", 0, hello)
    try:
        with socket.create_connection(("127.0.0.1", server.server_port), timeout=5) as peer:
            peer.settimeout(0.05)

            def ended() -> bool:
                try:
                    peer.sendall(b"x")
                    return peer.recv(100) == b""
                except TimeoutError:
                    return False
                except ConnectionError:
                    return True

            assert waited(ended)
        assert ask(server).endswith(b"hello")
    finally:
        server.close()


def test_it_listens_on_all_addresses_when_none_is_named() -> None:
    server = HttpServer("", 0, hello)
    try:
        assert ask(server).endswith(b"hello")
    finally:
        server.close()
