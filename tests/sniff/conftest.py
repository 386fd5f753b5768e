"""The real command, in a process of its own, on the loopback interface."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.sniffing import Sniffer


def _may_capture() -> bool:
    return sys.platform == "linux" and os.geteuid() == 0


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if not _may_capture():
        reason = "capturing needs Linux and root"
    elif shutil.which("tcpdump") is None and "CI" not in os.environ:
        reason = "capturing is held against tcpdump, and its filters need the libpcap that comes with it"
    else:
        return
    for item in items:
        if item.get_closest_marker("capturing"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def loopback_lock(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """A file that all processes of this test run know."""
    folder = tmp_path_factory.getbasetemp()
    return (folder if worker_id == "master" else folder.parent) / "loopback.lock"


@pytest.fixture(autouse=True)
def alone_on_the_loopback_interface(request: pytest.FixtureRequest, loopback_lock: Path) -> Iterator[None]:
    """Two tests at a time would capture each other's packets."""
    if request.node.get_closest_marker("capturing") is None:
        yield
        return
    with loopback_lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture
def start() -> Iterator[Callable[..., Sniffer]]:
    """Starts the command; what still runs at the end of the test is killed."""
    running: list[Sniffer] = []

    def run(*arguments: str, prelude: str = "", stdin: int | None = None) -> Sniffer:
        program = (
            ["-c", f"{prelude}\nfrom kwiresniff.cli.main import main; main()"] if prelude else ["-m", "kwiresniff"]
        )
        running.append(Sniffer(*program, *arguments, stdin=stdin))
        return running[-1]

    yield run
    for one in running:
        if one.process.poll() is None:
            one.process.kill()
        one.end()
        for stream in (one.process.stdout, one.process.stderr):
            assert stream is not None
            stream.close()
