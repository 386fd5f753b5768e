"""Captures on any file system that Spark's Hadoop client has: listed and copied by it, then read like others.

What reads captures is Python beside the JVM and knows files alone, so the driver copies what a run is going to read to
a folder under its output, which all workers see, and removes it afterwards. What is done already is not copied again:
files are told apart by the size and time that their own file system says.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from kwiresniff.errors import CaptureError
from kwiresniff.pipeline.failures import spark_errors
from kwiresniff.pipeline.plan import File

_URI = re.compile(r"^[a-zA-Z][a-zA-Z0-9+.-]+:/")
#: Bytes that stay free for the output on the disk with the copies.
_SPARE_BYTES = 1 << 30


def is_remote(path: str) -> bool:
    """Whether a path is a URI of another file system than this machine's."""
    return bool(_URI.match(path)) and not path.lower().startswith("file:")


def local_path(path: str) -> str:
    """``/a b`` for ``file:///a%20b``; other paths as they are."""
    return unquote(urlsplit(path).path) if path.lower().startswith("file:/") else path


class HadoopInputs:
    """Files on other file systems, and their copies in ``folder``."""

    def __init__(self, spark: Any, folder: str) -> None:
        self._folder = folder
        try:
            self._jvm = spark.sparkContext._jvm
            self._conf = spark.sparkContext._jsc.hadoopConfiguration()
        except Exception:  # each release of Spark Connect has an error of its own for that
            raise CaptureError(
                "a Spark Connect server does not list other file systems: name a path that its workers see"
            ) from None

    def files(self, uris: Sequence[str]) -> list[File]:
        """The files that URIs of files, folders and patterns name; each with the place of its copy as ``path``."""
        found = {}
        for uri in uris:
            with spark_errors(uri):
                for file in self._find(uri):
                    found[file.origin] = file
        return list(found.values())

    @contextmanager
    def fetched(self, files: Iterable[File]) -> Iterator[None]:
        """Copies these files for as long as the context lasts."""
        remote = {file.path: file for file in files if file.origin}
        os.makedirs(self._folder, exist_ok=True)
        size = sum(file.size_bytes for file in remote.values())
        if size + _SPARE_BYTES > shutil.disk_usage(self._folder).free:
            raise CaptureError(
                f"{self._folder}: not enough room for copies of {size} bytes; name fewer inputs at a time"
            )
        try:
            for file in remote.values():
                with spark_errors(file.origin):
                    self._copy(file)
            yield
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _find(self, uri: str) -> Iterator[File]:
        path = self._jvm.org.apache.hadoop.fs.Path(uri)
        system = path.getFileSystem(self._conf)
        tops = [system.getFileStatus(path)] if system.exists(path) else system.globStatus(path)
        if not tops:
            raise CaptureError(f"{uri}: no such file or folder, and no file matches it")
        for top in tops:
            if top.isFile():
                yield self._file(top, named=True)
                continue
            inside = system.listFiles(top.getPath(), True)
            while inside.hasNext():
                yield self._file(inside.next(), named=False)

    def _file(self, status: Any, *, named: bool) -> File:
        origin = status.getPath().toString()
        parts = urlsplit(origin)
        copy = os.path.join(self._folder, quote(f"{parts.scheme}_{parts.netloc}", safe=""), parts.path.lstrip("/"))
        modified_ns = status.getModificationTime() * 1_000_000
        return File(copy, status.getLen(), modified_ns, named, origin)

    def _copy(self, file: File) -> None:
        os.makedirs(os.path.dirname(file.path), exist_ok=True)
        source = self._jvm.org.apache.hadoop.fs.Path(file.origin)
        target = self._jvm.org.apache.hadoop.fs.Path("file", None, file.path)
        source.getFileSystem(self._conf).copyToLocalFile(False, source, target, True)
