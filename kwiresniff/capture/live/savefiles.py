"""Captured packets into files that follow each other, named and bounded as tcpdump does it (-w, -C, -G, -W).

Source: tcpdump's manual page. The files are nanosecond pcap, or pcapng where their name ends so, with the names of
processes in comments (``packet_comments``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from dataclasses import dataclass
from typing import BinaryIO

from kwiresniff import __version__
from kwiresniff.base.address_names import AddressNames
from kwiresniff.capture.live.packet_comments import NONE, PacketComments
from kwiresniff.capture.packet_formats import PacketFormat, PcapFormat, PcapngFormat
from kwiresniff.capture.paths import reason
from kwiresniff.errors import CaptureError

_PCAPNG = ".pcapng"
#: Packets hold what others say to each other, passwords too.
PRIVATE = 0o600
#: The user id of root.
_ROOT = 0
_A_LINK = "it is a link, which is not followed; name the file itself"
_NOT_OURS = "it is another user's, or has a second name, and could lead packets to them; name a new file"
#: Packets gathered before they are written.
MAX_PARTS = 2048


@dataclass(frozen=True, slots=True)
class Rotation:
    """When a file ends and the next begins.

    ``size_bytes``: once a file is larger than that, the next packet goes into one with a number after its name.
    ``seconds``: after that time, into one named anew by its strftime pattern. ``files`` bounds their number: with
    sizes the first is then written again, with times alone the capture ends.
    """

    size_bytes: int | None = None
    seconds: int | None = None
    files: int | None = None

    @property
    def rotates(self) -> bool:
        """Whether more than one file may be written."""
        return bool(self.seconds or self.size_bytes)

    def first_name(self, pattern: str) -> str:
        """The name of the first file if it began now."""
        return time.strftime(pattern) if self.seconds else pattern


class SavefileWriter:
    """Writes packets. ``full`` says that no further file is allowed, and that nothing more will be written."""

    def __init__(
        self,
        name: str,
        link_type: int,
        snap_bytes: int,
        rotation: Rotation,
        start_ns: int,
        mode: int = PRIVATE,
        owner: tuple[int, int] | None = None,
        names: AddressNames | None = None,
    ) -> None:
        """``name`` is a strftime pattern when files rotate by time. ``mode`` and ``owner`` (None is the current user)
        are those of new files, whatever the umask.
        """
        self.full = False
        self._owner = owner
        self._mode = mode
        self._pattern = name
        is_pcapng = name.endswith(_PCAPNG)
        self._format: PacketFormat = PcapngFormat(f"kwiresniff {__version__}") if is_pcapng else PcapFormat()
        self._header = self._format.begin() + self._format.interface(link_type, snap_bytes)
        self._comments = PacketComments(names, link_type) if is_pcapng and names is not None else None
        self._rotation = rotation
        self._rotates = rotation.rotates
        self._parts: list[bytes] = []
        self._period_start_ns = start_ns
        self._periods = 0
        self._number = 0
        self._digits = len(str(rotation.files - 1)) if rotation.files and rotation.size_bytes else 0
        self._file, self._name = self._open()
        self._size = len(self._header)

    def write(self, timestamp_ns: int, buffer: bytes, start: int, end: int, wire: int) -> None:
        """Writes a packet of ``wire`` bytes; it is in the file after the next ``flush``. Raises CaptureError."""
        if self._rotates:
            self._take_turns(timestamp_ns)
            if self.full:
                return
        comments, flags = NONE if self._comments is None else self._comments.of(buffer, start, end)
        packet = self._format.packet(0, timestamp_ns, buffer[start:end], wire, comments, flags)
        # One write for many packets: one for each would cost more than all the rest.
        self._parts.append(packet)
        self._size += len(packet)
        if len(self._parts) >= MAX_PARTS:
            self._write_out()

    def flush(self) -> None:
        """Hands what was written to the operating system. Raises CaptureError."""
        if self._parts:
            self._write_out()

    def _write_out(self) -> None:
        parts, self._parts = self._parts, []
        try:
            self._file.write(b"".join(parts))
            self._file.flush()
        except OSError as error:
            raise self._failed(error) from None

    def _take_turns(self, timestamp_ns: int) -> None:
        rotation = self._rotation
        if rotation.seconds and timestamp_ns - self._period_start_ns >= rotation.seconds * 1_000_000_000:
            self._next_period(timestamp_ns)
        if rotation.size_bytes and self._size > rotation.size_bytes:
            self._number += 1
            if rotation.files and self._number >= rotation.files:
                self._number = 0
            self._next_file()

    def close(self) -> None:
        """Writes what is buffered and closes the file. Raises CaptureError."""
        try:
            self.flush()
        finally:
            self._close_file()

    def _close_file(self) -> None:
        try:
            self._file.close()
        except OSError as error:
            raise self._failed(error) from None

    def _next_period(self, timestamp_ns: int) -> None:
        rotation = self._rotation
        self._periods += 1
        if rotation.files and not rotation.size_bytes and self._periods >= rotation.files:
            self.full = True
            return
        self._period_start_ns = timestamp_ns
        self._number = 0
        self._next_file()

    def _next_file(self) -> None:
        self.close()
        if self._comments is not None:
            self._comments.begin()
        self._file, self._name = self._open()
        self._size = len(self._header)

    def _open(self) -> tuple[BinaryIO, str]:
        name = self._pattern
        if self._rotation.seconds:
            name = time.strftime(name, time.localtime(self._period_start_ns // 1_000_000_000))
        if self._number or self._digits:
            name += str(self._number).zfill(self._digits)
        try:
            file = open(name, "wb", opener=self._create)  # noqa: SIM115  closed by close()
            try:
                file.write(self._header)
                file.flush()
            except OSError:
                with contextlib.suppress(OSError):
                    file.close()
                raise
        except (OSError, ValueError) as error:
            raise CaptureError(f"{name}: {reason(error)}") from None
        return file, name

    def _create(self, name: str, flags: int) -> int:
        """Creates a file that others cannot read, not even for a moment; an existing one keeps its mode.

        Names in the folder may be hostile: neither links nor files of users other than root and ``owner`` are opened as
        root, and no link of others is followed as another user.
        """
        # What is there is not emptied before it is known whose it is, and a pipe without a reader is not waited for.
        flags = (flags | os.O_NOFOLLOW | os.O_NONBLOCK) & ~os.O_TRUNC
        try:
            return self._made(name, flags)
        except FileExistsError:
            descriptor = self._there(name, flags)
        try:
            state = os.fstat(descriptor)
            if state.st_uid not in self._trusted and (os.geteuid() == 0 or _is_open_to_all(name)):
                raise PermissionError(errno.EPERM, _NOT_OURS, name)
            if stat.S_ISREG(state.st_mode):
                if os.geteuid() == 0 and state.st_nlink > 1:
                    raise PermissionError(errno.EPERM, _NOT_OURS, name)
                os.ftruncate(descriptor, 0)
            os.set_blocking(descriptor, True)
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    @property
    def _trusted(self) -> set[int]:
        """Users whose files are written: root, who we are, and who gets them."""
        users = {_ROOT, os.geteuid()}
        if self._owner is not None:
            users.add(self._owner[0])
        return users

    def _there(self, name: str, flags: int) -> int:
        """Opens what is there: no link, but one of our own or root's when we are not root."""
        flags &= ~os.O_CREAT
        try:
            return os.open(name, flags)
        except OSError as error:
            there = os.lstat(name)
            trusted = there.st_uid in self._trusted
            if stat.S_ISLNK(there.st_mode):
                if trusted and os.geteuid() != 0:
                    return os.open(name, flags & ~os.O_NOFOLLOW)
                raise OSError(errno.ELOOP, _A_LINK, name) from None
            if trusted and error.errno == errno.ENXIO and stat.S_ISFIFO(there.st_mode):
                return os.open(name, flags & ~os.O_NONBLOCK)  # its reader is waited for
            raise

    def _made(self, name: str, flags: int) -> int:
        descriptor = os.open(name, flags | os.O_EXCL, PRIVATE)
        if self._owner is not None:
            os.fchown(descriptor, *self._owner)
        if self._mode != PRIVATE:
            os.fchmod(descriptor, self._mode)
        return descriptor

    def _failed(self, error: OSError) -> CaptureError:
        return CaptureError(f"{self._name}: {reason(error)}; the packets up to there are in it")


def _is_open_to_all(name: str) -> bool:
    """Whether everybody may put a file into the folder, as into /tmp (the kernel's ``protected_regular``)."""
    return bool(os.stat(os.path.dirname(os.path.abspath(name))).st_mode & stat.S_IWOTH)
