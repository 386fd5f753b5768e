"""Root is given up once the sockets are open. What the kernel says of the process and of its files is what counts."""

from __future__ import annotations

import os
import pwd
import re
import shutil
import ssl
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import kwiresniff
from kwiresniff.capture.live.privileges import successor
from kwiresniff.errors import CaptureError
from tests.support.paths import CAPTURES
from tests.support.raw_packets import packets
from tests.support.replay import conversations, listener, say_in_tls
from tests.support.sniffing import FIRST_LOOK, Sniffer, capturing, content, objects, read, replay

pytestmark = pytest.mark.slow
PACKAGE = Path(kwiresniff.__file__).parent
Start = Callable[..., Sniffer]


def user_of(sniffer: Sniffer) -> tuple[set[int], set[int], set[int], int]:
    """All user ids of the process, all group ids, its other groups, and its capabilities."""
    lines = Path(f"/proc/{sniffer.process.pid}/status").read_text().splitlines()
    said = dict(line.split(":", 1) for line in lines)
    ids = [set(map(int, said[name].split())) for name in ("Uid", "Gid", "Groups")]
    return ids[0], ids[1], ids[2], int(said["CapPrm"], 16) | int(said["CapEff"], 16)


def is_not_root(sniffer: Sniffer) -> bool:
    return 0 not in user_of(sniffer)[0]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that everybody may write to; those that pytest makes are in one that is closed to others."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o777)
        yield Path(name)


@pytest.fixture
def sudo(monkeypatch: pytest.MonkeyPatch) -> pwd.struct_passwd:
    """Sudo was called by daemon, an account of every system."""
    caller = pwd.getpwnam("daemon")
    monkeypatch.setenv("SUDO_UID", str(caller.pw_uid))
    monkeypatch.setenv("SUDO_GID", str(caller.pw_gid))
    return caller


@pytest.fixture(autouse=True)
def no_sudo(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SUDO_UID", "SUDO_GID"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.capturing
@pytest.mark.parametrize("form", ["tree", "jsonl", "stats"])
def test_nobody_reads_what_root_has_opened(start: Start, form: str) -> None:
    """All of what is told is there, though Python and its modules may lie where only root can look."""
    with listener() as server:
        sniffer = start("sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-o", form)
        capturing(sniffer)
        sniffer.wait_for(lambda: is_not_root(sniffer))
        nobody = pwd.getpwnam("nobody")
        assert user_of(sniffer) == ({nobody.pw_uid}, {nobody.pw_gid}, {nobody.pw_gid}, 0)
        replay(server, FIRST_LOOK)
        time.sleep(1)
        sniffer.interrupt()
    assert not [line for line in sniffer.err if "Error" in line or "error" in line]
    if form == "jsonl":
        assert sorted(map(content, objects(sniffer.out))) == sorted(map(content, objects(read(FIRST_LOOK))))
    assert sniffer.out


@pytest.mark.capturing
@pytest.mark.parametrize("form", ["tree", "summary", "jsonl", "stats", "doctor"])
def test_nobody_needs_what_is_installed_where_only_root_may_look(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """The package may lie in an environment below /root, and the current folder, too."""
    shutil.copytree(PACKAGE, tmp_path / "kwiresniff", ignore=shutil.ignore_patterns("__pycache__"))
    tmp_path.chmod(0o700)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with listener() as server:
        sniffer = start("sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-o", form, "-Z", "nobody")
        capturing(sniffer)
        sniffer.wait_for(lambda: is_not_root(sniffer))
        replay(server, FIRST_LOOK)
        time.sleep(1)
        sniffer.interrupt()
    assert not [line for line in sniffer.err if "rror" in line]
    assert sniffer.out


@pytest.mark.capturing
def test_the_caller_of_sudo_owns_every_file_of_a_rotation(start: Start, folder: Path, sudo: pwd.struct_passwd) -> None:
    """Files are opened as the caller of sudo, and nobody else can read them."""
    with listener() as server:
        arguments = ["--port", str(server.getsockname()[1]), "-w", str(folder / "ring.pcap"), "-C", "4k", "-W", "3"]
        sniffer = start("sniff", "-i", "lo", "-o", "summary", *arguments)
        capturing(sniffer)
        sniffer.wait_for(lambda: user_of(sniffer)[0] == {sudo.pw_uid})
        for _ in range(4):
            replay(server, str(CAPTURES / "java-produce.pcap"))
        sniffer.wait_for(lambda: len(list(folder.iterdir())) == 3)
        assert sniffer.interrupt() == 130
    files = [each.stat() for each in folder.iterdir()]
    assert {(each.st_uid, each.st_gid, stat.S_IMODE(each.st_mode)) for each in files} == {
        (sudo.pw_uid, sudo.pw_gid, 0o600)
    }
    assert not [line for line in sniffer.err if "root" in line]


@pytest.mark.capturing
def test_a_key_of_hashes_that_only_root_can_read_is_read_before_root_is_given_up(start: Start, tmp_path: Path) -> None:
    """The hashes are those of read with the same key."""
    key = tmp_path / "key"
    key.write_text("between us\n")
    key.chmod(0o600)
    with listener() as server:
        port = str(server.getsockname()[1])
        sniffer = start(
            "sniff", "-i", "lo", "--port", port, "--redact-key-file", str(key), "-Z", "nobody", "-o", "jsonl"
        )
        capturing(sniffer)
        sniffer.wait_for(lambda: is_not_root(sniffer))
        replay(server, FIRST_LOOK)
        sniffer.wait_for(lambda: len(objects(list(sniffer.out))) == 25)
        sniffer.interrupt()
    found, wanted = (
        sorted(re.findall(r'"hash":"(\w+)"', "\n".join(lines)))
        for lines in (sniffer.out, read("--redact-key", "between us", FIRST_LOOK))
    )
    assert found == wanted != []


@pytest.mark.capturing
def test_tls_is_decrypted_as_somebody_else(start: Start, folder: Path) -> None:
    """The key log is read by the one who takes over."""
    keylog = folder / "keys.log"
    (said, *_) = conversations(FIRST_LOOK)
    with listener() as server:
        arguments = ["--port", str(server.getsockname()[1]), "--keylog", str(keylog), "-Z", "daemon", "-o", "jsonl"]
        sniffer = start("sniff", "-i", "lo", *arguments)
        capturing(sniffer)
        sniffer.wait_for(lambda: is_not_root(sniffer))
        say_in_tls(server, said, ssl.TLSVersion.TLSv1_3, str(keylog))
        sniffer.wait_for(lambda: bool(objects(list(sniffer.out))))
        assert sniffer.interrupt() == 130
    assert [one["tls"]["decrypted"] for one in objects(sniffer.out, "connection") if one["tls"]] == [True]


@pytest.mark.capturing
def test_a_file_out_of_reach_is_opened_by_root_for_the_caller(
    start: Start, tmp_path: Path, sudo: pwd.struct_passwd
) -> None:
    """Only a rotation needs more than the one file, so root is given up all the same."""
    kept = tmp_path / "kept.pcap"
    tmp_path.chmod(0o700)
    with listener() as server:
        sniffer = start("sniff", "-i", "lo", "--port", str(server.getsockname()[1]), "-w", str(kept), "--mode", "640")
        capturing(sniffer)
        sniffer.wait_for(lambda: user_of(sniffer)[0] == {sudo.pw_uid})
        replay(server, FIRST_LOOK)
        time.sleep(1)
        sniffer.interrupt()
    state = kept.stat()
    assert (state.st_uid, state.st_gid, stat.S_IMODE(state.st_mode)) == (sudo.pw_uid, sudo.pw_gid, 0o640)
    assert packets(kept)


@pytest.mark.capturing
def test_it_stays_root_when_the_next_files_would_be_out_of_reach_and_says_so(start: Start, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    kept = tmp_path / "part.pcap"
    sniffer = start("sniff", "-i", "lo", "--duration", "1", "-w", str(kept), "-C", "1")
    assert sniffer.end() == 0
    assert sniffer.err[0] == (f"kwiresniff: goes on as root: nobody may not write {kept}; -Z USER names another user")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


@pytest.mark.capturing
def test_names_of_topics_out_of_reach_are_read_as_root_like_keys(start: Start, tmp_path: Path) -> None:
    """The file is opened after the sockets, when somebody else would be told that there is no permission."""
    tmp_path.chmod(0o700)
    names = tmp_path / "topics.txt"
    names.write_text("Topic: orders\tTopicId: ABEiM0RVZneImaq7zN3u_w\n")
    sniffer = start("sniff", "-i", "lo", "--duration", "1", "--topics", str(names))
    assert sniffer.end() == 0
    assert sniffer.err[0] == f"kwiresniff: goes on as root: nobody may not read {names}; -Z USER names another user"


@pytest.mark.capturing
def test_schemas_out_of_reach_are_read_as_root_too(start: Start, folder: Path) -> None:
    """A folder that may be listed and not entered is out of reach."""
    schemas = folder / "schemas"
    schemas.mkdir()
    schemas.chmod(0o744)
    sniffer = start("sniff", "-i", "lo", "--duration", "1", "--schemas", str(schemas))
    assert sniffer.end() == 0
    assert sniffer.err[0] == f"kwiresniff: goes on as root: nobody may not read {schemas}; -Z USER names another user"


@pytest.mark.capturing
def test_somebody_chosen_by_name_has_to_reach_the_files(start: Start, tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    kept = tmp_path / "kept.pcap"
    sniffer = start("sniff", "-i", "lo", "-Z", "daemon", "-w", str(kept))
    assert sniffer.end() == 1
    assert sniffer.err == [f"kwiresniff: -Z daemon: daemon may not write {kept}; choose another user or place"]
    assert not kept.exists()


@pytest.mark.capturing
def test_root_that_is_asked_for_is_kept(start: Start) -> None:
    sniffer = start("sniff", "-i", "lo", "-Z", "root", "--duration", "2")
    capturing(sniffer)
    assert 0 in user_of(sniffer)[0]
    assert sniffer.end() == 0


def test_a_name_that_nobody_has_is_one_line() -> None:
    with pytest.raises(CaptureError, match="-Z no such user: no user has this name"):
        successor("no such user")


def test_who_is_not_root_can_only_stay_who_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    daemon = pwd.getpwnam("daemon")
    monkeypatch.setattr(os, "geteuid", lambda: daemon.pw_uid)
    assert successor(None) is None
    assert successor("daemon") is None
    with pytest.raises(CaptureError, match="only root can become another user"):
        successor("nobody")


@pytest.mark.parametrize("said", ["0", "-1", "x", "4294967296"])
def test_what_sudo_cannot_have_said_is_not_believed(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """Root that called sudo is nobody's caller."""
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setenv("SUDO_UID", said)
    monkeypatch.setenv("SUDO_GID", "1")
    found = successor(None)
    assert found is not None and found.name == "nobody"
