"""Names of live connections: processes, containers and pods of this machine."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest

from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture.live import processes
from kwiresniff.capture.live.processes import Processes

ID, OTHER = "ab" * 32, "cd" * 32
#: As proc(5) has it, on a little-endian machine: 10.0.0.5:50000, a listener, and ::ffff:10.0.0.5:50001, fd00::7:9092.
TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0500000A:C350 0100000A:2384 01 00000000:00000000 00:00000000 00000000  1000        0 101 1 0000000000000000
   1: 00000000:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 102 1 0000000000000000
"""
TCP6 = """\
  sl  local_address                         remote_address                        st
   0: 0000000000000000FFFF00000500000A:C351 0000000000000000FFFF00000100000A:2384 01 0:0 00:0 0 1000 0 103 1
   1: 000000FD000000000000000007000000:2384 000000FD000000000000000008000000:C350 01 0:0 00:0 0 1000 0 104 1
"""
pytestmark = pytest.mark.skipif(sys.byteorder != "little", reason="the tables are those of a little-endian machine")


class Machine:
    """A /proc made up, and what lies beside it."""

    def __init__(self, root: Path) -> None:
        self.proc, self.logs, self.containers = root / "proc", root / "logs", root / "containers"
        for folder in (self.proc, self.logs, self.containers):
            folder.mkdir()
        self.process("self", "kwiresniff", [], "net:[1]")

    def process(
        self, pid: str, comm: str, inodes: list[int], namespace: str, cgroup: str = "0::/init.scope\n",
        tcp: str = TCP, tcp6: str = TCP6,
    ) -> None:  # fmt: skip
        folder = self.proc / pid
        for name in ("fd", "ns", "net"):
            (folder / name).mkdir(parents=True)
        (folder / "comm").write_text(f"{comm}\n")
        (folder / "cgroup").write_text(cgroup)
        (folder / "net" / "tcp").write_text(tcp)
        (folder / "net" / "tcp6").write_text(tcp6)
        (folder / "ns" / "net").symlink_to(namespace)
        (folder / "fd" / "0").symlink_to("/dev/null")
        for inode in inodes:
            (folder / "fd" / str(inode)).symlink_to(f"socket:[{inode}]")

    def names(self) -> AddressNames:
        names = AddressNames()
        Processes(names, str(self.proc), str(self.logs), str(self.containers)).scan()
        return names


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def called(names: AddressNames, endpoint: str) -> list[str]:
    assert {one.source for one in names.of(endpoint)} <= {"process"}
    return [one.name for one in names.of(endpoint)]


def test_a_process_is_a_name_of_the_ends_that_it_has(machine: Machine) -> None:
    """By the inodes of its sockets; IPv4 inside IPv6 is IPv4, and what listens on all addresses is none."""
    machine.process("7", "java", [101, 102, 103], "net:[1]")
    machine.process("8", "kcat", [104], "net:[1]")
    names = machine.names()
    assert called(names, "10.0.0.5:50000") == called(names, "10.0.0.5:50001") == ["process/java"]
    assert called(names, "[fd00::7]:9092") == ["process/kcat"]
    assert called(names, "10.0.0.5:1") == called(names, "0.0.0.0:9092") == []


def test_a_container_of_kubernetes_has_its_pod(machine: Machine) -> None:
    """By its id in the cgroup and the kubelet's links; in a network of its own the address is the pod's."""
    cgroup = f"0::/kubepods.slice/kubepods-pod7f_1.slice/cri-containerd-{ID}.scope\n"
    machine.process("7", "java", [101], "net:[2]", cgroup)
    (machine.logs / f"shop-7f9c6d5b4-x2x4z_web_shop-{ID}.log").write_text("")
    (machine.logs / "something else.log").write_text("")
    names = machine.names()
    pod = ["pod/shop-7f9c6d5b4-x2x4z", "container/shop"]
    assert called(names, "10.0.0.5:50000") == [*pod, "process/java", *pod]
    assert called(names, "10.0.0.5:9") == pod


def test_a_container_of_docker_has_its_name_else_its_id(machine: Machine) -> None:
    """Whatever the cgroup is called; on the host's network its address is the host's."""
    machine.process("7", "java", [101], "net:[1]", f"12:memory:/docker/{ID}\n0::/docker/{ID}\n")
    machine.process("8", "java", [103], "net:[1]", f"0::/system.slice/docker-{OTHER}.scope\n")
    (machine.containers / ID).mkdir()
    (machine.containers / ID / "config.v2.json").write_text('{"ID":"x","Name":"/kafka-1","Args":[]}')
    names = machine.names()
    assert called(names, "10.0.0.5:50000") == ["container/kafka-1", "process/java"]
    assert called(names, "10.0.0.5:50001") == [f"container/{OTHER[:12]}", "process/java"]
    assert called(names, "10.0.0.5:9") == []


def test_what_may_not_be_read_or_is_nonsense_is_passed_over(machine: Machine) -> None:
    """A process that has just ended, a table that is none, a namespace that is not there."""
    machine.process(
        "7", "java", [101], "net:[1]", tcp="head\nx\n 0: zz:zz a b c d e f g 101\n 1: 05:1 a b c d e f g 101\n"
    )
    machine.process("8", "\x1b[31m", [104], "net:[3]")
    (machine.proc / "9").mkdir()
    (machine.proc / "10").write_text("")
    names = machine.names()
    assert called(names, "10.0.0.5:50000") == []
    assert called(names, "[fd00::7]:9092") == ["process/\x1b[31m"]


def test_new_connections_are_looked_for(machine: Machine) -> None:
    """And only when there are some."""
    names = AddressNames()
    found = Processes(names, str(machine.proc), str(machine.logs), str(machine.containers))
    machine.process("7", "java", [101], "net:[1]")
    found.scan()
    (machine.proc / "7" / "fd" / "103").symlink_to("socket:[103]")
    found.scan_new()
    assert called(names, "10.0.0.5:50001") == []  # the table says nothing new
    (machine.proc / "self" / "net" / "tcp").write_text(TCP + TCP.splitlines()[1].replace(" 101 ", " 105 ") + "\n")
    found.scan_new()
    assert called(names, "10.0.0.5:50001") == ["process/java"]


def test_what_is_looked_at_is_bounded(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes, files and sockets there are, and however long a file is."""
    machine.process("7", "j" * 1_000, [101, 103, 104], "net:[1]", "x" * 100 + f"/docker/{ID}\n")
    for name in ("MAX_PROCESSES", "MAX_FILES", "MAX_SOCKETS"):
        with monkeypatch.context() as patched:
            patched.setattr(processes, name, 0)
            assert called(machine.names(), "10.0.0.5:50000") == [], name
    assert called(machine.names(), "10.0.0.5:50000") == [f"container/{ID[:12]}"]  # the command's name is too long
    monkeypatch.setattr(processes, "MAX_TABLE_BYTES", 100)
    assert called(machine.names(), "10.0.0.5:50000") == []


@pytest.mark.skipif(not os.path.exists("/proc/self/net/tcp"), reason="there is no /proc")
def test_our_own_connection_is_ours() -> None:
    """On the real /proc of this machine."""
    names = AddressNames()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as client:
        Processes(names).scan()
        host, port = client.getsockname()
    comm = Path("/proc/self/comm").read_text().strip()
    assert f"process/{comm}" in [one.name for one in names.of(f"{host}:{port}")]
