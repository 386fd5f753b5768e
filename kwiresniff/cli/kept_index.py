"""``--keep-index`` of ``browse``: the index of captures in a file beside the first of them."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from typing import IO, Final

from kwiresniff.cli.event_source import EventSource
from kwiresniff.cli.options import ReadOptions
from kwiresniff.index import Indexed
from kwiresniff.index.background import Send
from kwiresniff.index.kept_index import MAGIC, IndexWriter, UnfitIndex, fingerprint, read_index
from kwiresniff.render.escape import escape

#: What the name of the capture is followed by.
ENDING: Final = ".kwi"
#: Options whose meaning lies in other files, or that show what may not lie in one.
NOT_WITH: Final = ("keylog", "plugin", "topics", "show_secrets", "strict")
#: Options that change nothing of an index.
_ANY: Final = {
    "filter", "tls_engine", "hosts", "schemas", "value_format", "redact_key", "redact_key_file", "quiet", "verbose",
    "no_progress", "color",
}  # fmt: skip


def unfit_options(options: ReadOptions) -> list[str]:
    """Those of the options with which no index is kept, and none that was kept is used."""
    return [f"--{name.replace('_', '-')}" for name in NOT_WITH if getattr(options, name)]


class KeptIndex:
    """The kept index of what ``source`` reads. Where none fits, and with ``keeps``, it is written from the parts that
    are added.
    """

    def __init__(self, source: EventSource, *, keeps: bool) -> None:
        self.path = source.files[0] + ENDING
        self._folder = os.path.dirname(self.path) or "."
        self.told: list[str] = []  # why there is none, in lines
        self._source = source
        self._keeps = keeps
        self._fingerprint = b""
        self._file: IO[bytes] | None = None
        self._writer: IndexWriter | None = None

    def send(self, send: Send) -> bool:
        """Sends the kept index, if there is one that fits; otherwise the parts of a new one can be added."""
        if not (self._keeps or os.path.lexists(self.path)) or unfit_options(self._source.options):
            return False
        if self._source.captures.total_bytes is None or self._source.plugins.others:
            self._tell("captures that can be read once, and what plugins say, are not kept" if self._keeps else "")
            return False
        try:
            if os.path.lexists(self.path) and self._sent(send):
                return True
            if self._keeps:
                self._fingerprint = self._fingerprint or self._found()
                self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  goes with us
                self._writer = IndexWriter(self._file, self._fingerprint)
        except (OSError, UnfitIndex) as error:
            self._tell(error)
        return False

    def _sent(self, send: Send) -> bool:
        """Whether the file fits and was sent, which it is when all of it was checked."""
        with _own_file(self.path) as file:
            self._fingerprint = self._found()
            try:
                for _ in read_index(file, self._fingerprint, self._source.files):
                    pass
            except UnfitIndex as error:
                if not self._keeps:
                    self._tell(error)
                return False
            file.seek(0)
            for message in read_index(file, self._fingerprint, self._source.files):
                send(message)
        return True

    def add(self, message: Indexed) -> None:
        """A part of the new index; the last one is ``done``."""
        if self._file is None or self._writer is None:
            return
        try:
            self._writer.add(message)
            if message.done:
                self._keep(self._file, self._writer)
                self._file.close()
        except (OSError, UnfitIndex) as error:
            self.give_up(error)

    def give_up(self, reason: object) -> None:
        """No index is written, for a reason that is told."""
        if self._file is not None and self._writer is not None:
            self._file.close()
            self._writer = None
            self._tell(reason)

    def _keep(self, file: IO[bytes], writer: IndexWriter) -> None:
        if self._source.captures.tls_secrets.changes:
            raise UnfitIndex("what was decrypted is not kept")
        if self._found() != self._fingerprint:
            raise UnfitIndex("the captures have changed meanwhile")
        writer.close()
        file.seek(0)
        number, temporary = tempfile.mkstemp(prefix=".kwiresniff-", suffix=".part", dir=self._folder)
        try:
            with open(number, "wb") as out:
                shutil.copyfileobj(file, out)
            os.replace(temporary, self.path)
        except BaseException:
            os.unlink(temporary)
            raise

    def _found(self) -> bytes:
        options = self._source.options._asdict()
        return fingerprint(self._source.files, sorted((name, options[name]) for name in options.keys() - _ANY))

    def _tell(self, reason: object) -> None:
        if reason:
            why = (reason.strerror or str(reason)).lower() if isinstance(reason, OSError) else reason
            self.told.append(f"{escape(self.path)}: no index is {'kept' if self._keeps else 'read'} here: {why}")


def _own_file(path: str) -> IO[bytes]:
    """An index that nobody else could have written. Raises UnfitIndex for another file, which stays as it is."""
    number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(number, "rb")
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        reason = "others may have written it"
    elif file.read(len(MAGIC)) != MAGIC:
        reason = "it is another file"
    else:
        file.seek(0)
        return file
    file.close()
    raise UnfitIndex(reason)
