"""Names for the ends of connections of this machine: their process, container and pod, from /proc and what lies beside.

Sources: proc(5) (``net/tcp``, ``fd``, ``ns/net``, ``comm``, ``cgroup``); the kubelet's links in /var/log/containers,
which are called ``POD_NAMESPACE_CONTAINER-ID.log``; Docker's ``config.v2.json``. The sockets of other users' processes
are told to root alone: they are read before root is given up, and later those of processes that the new user may see.

Everything is read as text of other programs: bounded, and what does not read as it should is passed over.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path
from sys import byteorder
from typing import Final

from kwiresniff.base.address_names import AddressNames, host_text

SOURCE: Final = "process"
#: Processes, open files of each and sockets that are looked at: a busy host has some thousand.
MAX_PROCESSES: Final = 20_000
MAX_FILES: Final = 20_000
MAX_SOCKETS: Final = 100_000
#: Bytes read of a file that has a few lines, and of one that has a line for each socket (some 150 bytes each).
MAX_TEXT_BYTES: Final = 64 << 10
MAX_TABLE_BYTES: Final = 16 << 20
#: How long new connections may go without a name.
_AGAIN_SECONDS: Final = 2.0

_SOCKET: Final = re.compile(r"socket:\[(\d{1,20})\]")
_CONTAINER_ID: Final = re.compile(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
_LOG: Final = re.compile(r"([^_]{1,253})_([^_]{1,63})_(.{1,253})-([0-9a-f]{64})\.log")
_DOCKER_NAME: Final = re.compile(r'"Name":"/([A-Za-z0-9_.-]{1,253})"')
_SHORT_ID: Final = 12


class Processes:
    """Adds this machine's processes to ``names``, from /proc, kubelet ``logs`` and Docker's ``containers``."""

    def __init__(
        self,
        names: AddressNames,
        proc: str = "/proc",
        logs: str = "/var/log/containers",
        containers: str = "/var/lib/docker/containers",
    ) -> None:
        self._names = names
        self._proc = Path(proc)
        self._logs = Path(logs)
        self._containers = Path(containers)
        self._seen: set[str] = set()  # inodes of sockets in our own network namespace that have been looked for
        self._named: dict[str, list[str]] = {}  # names by container id

    def scan(self) -> None:
        """Looks at all processes that may be looked at."""
        self._read_logs()
        tables: dict[str, dict[str, tuple[str, str]]] = {}  # sockets by network namespace
        own = _link(self._proc / "self" / "ns" / "net")
        for pid in self._pids():
            inodes = self._inodes(pid)
            namespace = _link(pid / "ns" / "net") if inodes else ""
            if not namespace:
                continue
            table = tables.get(namespace)
            if table is None:
                table = tables[namespace] = self._sockets(pid)
            ends = [table[inode] for inode in inodes if inode in table]
            if ends:
                self._name(pid, ends, is_own=namespace == own)
        self._seen = set(tables.get(own, ()))

    def scan_new(self) -> None:
        """Looks at all processes if this machine has connections that it did not have."""
        if not self._seen.issuperset(self._sockets(self._proc / "self")):
            self.scan()

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Looks for new connections every few seconds."""
        ended = threading.Event()

        def watch() -> None:
            while not ended.wait(_AGAIN_SECONDS):
                self.scan_new()

        thread = threading.Thread(target=watch, name="processes", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def _name(self, pid: Path, ends: list[tuple[str, str]], *, is_own: bool) -> None:
        """Names the ends of a process's connections; outside our own network its addresses are the container's, too."""
        container = self._container(pid)
        comm = _text(pid / "comm").strip()
        for host, endpoint in ends:
            for name in [*container, *([f"process/{comm}"] if comm else [])]:
                self._names.add(endpoint, name, SOURCE)
            for name in () if is_own or ip_address(host.strip("[]")).is_loopback else container:
                self._names.add(host, name, SOURCE)

    def _container(self, pid: Path) -> list[str]:
        found = _CONTAINER_ID.findall(_text(pid / "cgroup"))
        if not found:
            return []
        container_id = found[-1]
        named = self._named.get(container_id)
        if named is None:
            match = _DOCKER_NAME.search(_text(self._containers / container_id / "config.v2.json"))
            named = [f"container/{match[1] if match is not None else container_id[:_SHORT_ID]}"]
            if len(self._named) < MAX_PROCESSES:
                self._named[container_id] = named
        return named

    def _read_logs(self) -> None:
        with suppress(OSError), os.scandir(self._logs) as entries:
            for _, entry in zip(range(MAX_PROCESSES), entries, strict=False):
                match = _LOG.fullmatch(entry.name)
                if match is not None and len(self._named) < MAX_PROCESSES:
                    self._named[match[4]] = [f"pod/{match[1]}", f"container/{match[3]}"]

    def _pids(self) -> list[Path]:
        with suppress(OSError):
            return [self._proc / name for name in os.listdir(self._proc) if name.isdecimal()][:MAX_PROCESSES]
        return []

    def _inodes(self, pid: Path) -> list[str]:
        """The inodes of a process's sockets; none for a process that may not be looked at."""
        found = []
        with suppress(OSError), os.scandir(pid / "fd") as entries:
            for _, entry in zip(range(MAX_FILES), entries, strict=False):
                match = _SOCKET.fullmatch(_link(Path(entry.path)))
                if match is not None:
                    found.append(match[1])
        return found

    def _sockets(self, pid: Path) -> dict[str, tuple[str, str]]:
        """The local ends of TCP sockets by inode, as host and ``ip:port``, in the network of a process."""
        found: dict[str, tuple[str, str]] = {}
        for table in ("tcp", "tcp6"):
            for line in _text(pid / "net" / table, MAX_TABLE_BYTES).splitlines()[1:]:
                words = line.split()
                end = _end(words[1]) if len(words) > 9 else None
                if end is not None and len(found) < MAX_SOCKETS:
                    found[words[9]] = end
        return found


def _end(text: str) -> tuple[str, str] | None:
    """A host and ``ip:port`` of ``0100007F:1F90``: 32 bits each as a number of this machine, then the port."""
    raw, _, port = text.partition(":")
    try:
        data, number = bytes.fromhex(raw), int(port, 16)
    except ValueError:
        return None
    if len(data) not in (4, 16):
        return None
    words = [data[at : at + 4] for at in range(0, len(data), 4)]
    data = b"".join(word[::-1] for word in words) if byteorder == "little" else data
    address: IPv4Address | IPv6Address = IPv4Address(data) if len(data) == 4 else IPv6Address(data)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped  # Java's sockets are of IPv6, whatever they are connected to
    host = host_text(str(address))
    return None if address.is_unspecified or host is None else (host, f"{host}:{number}")


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _text(path: Path, most: int = MAX_TEXT_BYTES) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""
