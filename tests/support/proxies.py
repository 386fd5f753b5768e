"""What real proxies and their clients say before the connection: recorded, and how.

``python -m tests.support.proxies`` records ``tests/session/data/proxy_preambles.json`` anew; it needs haproxy, dante
(danted), microsocks, tinyproxy, curl and OpenBSD's nc. Each client goes through its proxy to a server that answers the
first bytes behind the preamble; what both sides of the proxied connection sent is kept as hexadecimal text, in turns,
without what was sent behind the preamble.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support.paths import TESTS

PREAMBLES = TESTS / "session" / "data" / "proxy_preambles.json"
#: Stand for the first request behind the preamble, and for its answer.
ASKED, ANSWERED = b"GET /telltale HTTP/1.0\r\n", b"HTTP/1.0 204 No Content\r\n\r\n"
USER, PASSWORD = "kwire", "sn1ff-secret"
#: (side, bytes): 0 is whoever connects.
Said = list[tuple[int, bytes]]


def recorded() -> dict[str, Said]:
    """What was recorded, by the names of client and proxy."""
    known: dict[str, list[list[Any]]] = json.loads(PREAMBLES.read_text())
    return {name: [(side, bytes.fromhex(data)) for side, data in said] for name, said in known.items()}


class Relay:
    """A server that hands on to another and keeps what both sides say."""

    def __init__(self, port: int) -> None:
        self.said: Said = []
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        near, _ = self._listening.accept()
        far = socket.create_connection(("127.0.0.1", self._target))
        threads = [threading.Thread(target=self._pass, args=(0, near, far), daemon=True)]
        threads.append(threading.Thread(target=self._pass, args=(1, far, near), daemon=True))
        for one in threads:
            one.start()

    def _pass(self, side: int, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):  # the other side may be gone
            while data := source.recv(65536):
                self.said.append((side, data))
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)


@contextmanager
def server() -> Iterator[int]:
    """The server behind the proxies; gives its port."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            one, _ = listening.accept()
            if one.recv(65536):
                one.sendall(ANSWERED)
            one.close()

    threading.Thread(target=serve, daemon=True).start()
    yield listening.getsockname()[1]


@contextmanager
def running(port: int, *command: str) -> Iterator[int]:
    """A proxy; gives its ``port`` when it listens there, if not HAProxy's."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        # A connection to HAProxy would make it dial its server.
        for _ in range(0 if command[0] == "haproxy" else 100):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as one:
        port: int = one.getsockname()[1]
        return port


def before(said: Said) -> Said:
    """What was said before the first bytes behind the preamble."""
    kept: Said = []
    for side, data in said:
        front = data.partition((ASKED, ANSWERED)[side])[0]
        if front:
            kept.append((side, front))
        if front != data:
            break
    return kept


def through(proxy: int, ask: Callable[[int], None]) -> Said:
    """What is said when ``ask`` connects to the port it is given, behind which is the ``proxy``."""
    relay = Relay(proxy)
    ask(relay.port)
    time.sleep(0.2)
    return before(relay.said)


def curl(proxy: str, target: str) -> Callable[[int], None]:
    def ask(port: int) -> None:
        url = proxy.replace("PORT", str(port))
        command = ["curl", "-s", "-0", "-m", "3", "-p", "-x", url, f"http://{target}/telltale"]
        subprocess.run(command, check=False, capture_output=True)

    return ask


def nc(version: str, port_of_server: int) -> Callable[[int], None]:
    def ask(port: int) -> None:
        command = ["nc", "-w", "1", "-X", version, "-x", f"127.0.0.1:{port}", "127.0.0.1", str(port_of_server)]
        subprocess.run(command, input=ASKED + b"\r\n", check=False, capture_output=True)

    return ask


def haproxy(folder: Path, option: str, *, check: bool = False) -> Said:
    """What haproxy sends to its server in front of a client's bytes."""
    with server() as end:
        relay, port = Relay(end), free_port()
        health = "check check-send-proxy inter 200ms" if check else ""
        config = folder / "haproxy.cfg"
        config.write_text(
            "defaults\n mode tcp\n timeout connect 2s\n timeout client 2s\n timeout server 2s\n"
            f"listen kafka\n bind 127.0.0.1:{port}\n unique-id-format %{{+X}}o%ci\n"
            f" server b1 127.0.0.1:{relay.port} {option} {health}\n"
        )
        with running(port, "haproxy", "-f", str(config)):
            if not check:
                with socket.create_connection(("127.0.0.1", port)) as one:
                    one.sendall(ASKED)
                    one.recv(100)
            time.sleep(0.5)
        return before(relay.said)


def record() -> dict[str, Said]:
    """Records all of them."""
    found: dict[str, Said] = {}
    with tempfile.TemporaryDirectory() as name, server() as end:
        folder = Path(name)
        for text in ("send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"):
            found[f"haproxy {text}"] = haproxy(folder, text)
        found["haproxy check of send-proxy-v2"] = haproxy(folder, "send-proxy-v2", check=True)
        with running(port := free_port(), "microsocks", "-p", str(port)):
            found["curl socks5h microsocks"] = through(port, curl("socks5h://127.0.0.1:PORT", f"localhost:{end}"))
            found["nc socks5 microsocks"] = through(port, nc("5", end))
            refused = curl("socks5h://127.0.0.1:PORT", f"localhost:{free_port()}")
            found["curl socks5h microsocks, refused"] = through(port, refused)
        with running(port := free_port(), "microsocks", "-p", str(port), "-u", USER, "-P", PASSWORD):
            url = f"socks5h://{USER}:{PASSWORD}@127.0.0.1:PORT"
            found["curl socks5h microsocks, password"] = through(port, curl(url, f"localhost:{end}"))
            wrong = curl(f"socks5h://{USER}:wrong@127.0.0.1:PORT", f"localhost:{end}")
            found["curl socks5h microsocks, wrong password"] = through(port, wrong)
        port = free_port()
        (folder / "danted.conf").write_text(
            f"internal: 127.0.0.1 port = {port}\nexternal: lo\nsocksmethod: none\nclientmethod: none\n"
            "user.unprivileged: nobody\nclient pass {\n from: 0/0 to: 0/0\n}\n"
            "socks pass {\n from: 0/0 to: 0/0\n protocol: tcp\n}\n"
        )
        with running(port, "danted", "-f", str(folder / "danted.conf")):
            for kind in ("socks4", "socks5h"):
                found[f"curl {kind} dante"] = through(port, curl(f"{kind}://127.0.0.1:PORT", f"127.0.0.1:{end}"))
            found["nc socks4 dante"] = through(port, nc("4", end))
            refused = curl("socks4a://127.0.0.1:PORT", f"localhost:{free_port()}")
            found["curl socks4a dante, refused"] = through(port, refused)
        port = free_port()
        config = f"Port {port}\nListen 127.0.0.1\nTimeout 5\n"
        (folder / "tinyproxy.conf").write_text(config)
        with running(port, "tinyproxy", "-d", "-c", str(folder / "tinyproxy.conf")):
            found["curl connect tinyproxy"] = through(port, curl("http://127.0.0.1:PORT", f"localhost:{end}"))
            refused = curl("http://127.0.0.1:PORT", f"localhost:{free_port()}")
            found["curl connect tinyproxy, refused"] = through(port, refused)
        (folder / "tinyproxy.conf").write_text(f"{config}BasicAuth {USER} {PASSWORD}\n")
        with running(port, "tinyproxy", "-d", "-c", str(folder / "tinyproxy.conf")):
            url = f"http://{USER}:{PASSWORD}@127.0.0.1:PORT"
            found["curl connect tinyproxy, password"] = through(port, curl(url, f"localhost:{end}"))
            found["curl connect tinyproxy, no password"] = through(
                port, curl("http://127.0.0.1:PORT", f"localhost:{end}")
            )
    return found


if __name__ == "__main__":
    for program in ("haproxy", "microsocks", "danted", "tinyproxy", "curl", "nc"):
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is needed")
    preambles = {name: [[side, data.hex()] for side, data in said] for name, said in record().items()}
    PREAMBLES.write_text(json.dumps(preambles, indent=1) + "\n")
