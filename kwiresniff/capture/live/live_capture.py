"""A live capture as a sequence of TCP segments."""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from kwiresniff.base.address_names import AddressNames
from kwiresniff.base.fastint import u16, u32
from kwiresniff.base.tls_secrets import TlsSecrets
from kwiresniff.capture.decode_as import tables_of
from kwiresniff.capture.file_problems import SnapReporter
from kwiresniff.capture.keylog import KeyLog
from kwiresniff.capture.link_layer import ETHERNET
from kwiresniff.capture.live import bpf
from kwiresniff.capture.live.capture_process import PROGRAMS, CaptureProcess, CaptureProcessError
from kwiresniff.capture.live.drops import Drops
from kwiresniff.capture.live.interfaces import check_names
from kwiresniff.capture.live.savefiles import Rotation, SavefileWriter
from kwiresniff.capture.live.source import LiveOptions, Packet, PacketSource
from kwiresniff.capture.live.spool_writer import SpoolWriter
from kwiresniff.capture.packet_decoder import LayerDecoder
from kwiresniff.errors import CaptureError
from kwiresniff.model import Problem, Segment


class LiveCapture:
    """Iterates over the segments that pass, once, until it is stopped; has what ``CaptureSet`` has besides.

    ``packets`` and ``position`` are up to a batch behind while it goes on. ``on_pause`` is called whenever there is
    nothing to do for a moment, every tenth of a second at the least, ``on_secrets`` when TLS keys have come by then.
    ``dropped`` counts the packets lost, as far as it
    is known, and includes those ``passed_over``: written into the file, but not decoded for lack of time. Both are
    final when the iteration ends.
    """

    def __init__(self, source: PacketSource, options: LiveOptions, names: AddressNames | None = None) -> None:
        """``names`` go into comments on packets that are written."""
        self._names = names
        self.files = [", ".join(options.interfaces)]  # one stream of packets, however many they come from
        self.problems: list[Problem] = source.problems
        self.other_packets: dict[str, int] = {}
        self.total_bytes: int | None = None
        self.packets = 0
        self.tls_secrets = TlsSecrets()
        self.on_secrets: Callable[[], None] | None = None
        self._key_log: KeyLog | None = None
        self.on_pause: Callable[[], None] | None = None
        self._kept = 0
        self._bytes = 0
        self._source = source
        self._drops = Drops(source, source.problems)
        self._options = options
        self._writers: list[SavefileWriter | SpoolWriter] = []
        self._stopped = False
        self._closed = False
        self._end_seconds: float | None = None

    @property
    def dropped(self) -> int:
        """Packets lost, whether before they could be read or for lack of time."""
        return self._drops.total

    @property
    def passed_over(self) -> int:
        """Packets that were written, but not decoded for lack of time."""
        return self._drops.passed_over

    @property
    def writes(self) -> bool:
        """Whether the packets are written into files, too."""
        return bool(self._writers)

    def write_to(self, name: str, rotation: Rotation, mode: int, owner: tuple[int, int] | None = None) -> None:
        """Writes the packets into files called ``name`` besides, of this mode and owner when they are new. To be called
        before the iteration. Raises CaptureError when they cannot be written."""
        link_type, snap_bytes = self._source.link_type, self._options.snap_bytes
        self._writers.append(
            SavefileWriter(name, link_type, snap_bytes, rotation, time.time_ns(), mode, owner, self._names)
        )

    def spool_to(self, folder: str) -> SpoolWriter:
        """Writes the packets into an empty folder, too, for others to read meanwhile. Raises CaptureError."""
        names = self._names or AddressNames()
        writer = SpoolWriter(folder, self._source.link_type, self._options.snap_bytes, names)
        self._writers.append(writer)
        return writer

    def follow_key_log(self, path: str) -> bool:
        """Reads TLS keys from a growing key log; returns whether it exists. Raises CaptureError for another file."""
        self._key_log = KeyLog(path, self.tls_secrets, growing=True)
        return self._key_log.is_there

    def __iter__(self) -> Iterator[Segment]:
        options = self._options
        decoder = LayerDecoder(self.other_packets, tables_of(options.decode_as))
        snap = SnapReporter(", ".join(options.interfaces), self.problems.append)
        now = time.monotonic()
        if options.duration_ns is not None:
            self._end_seconds = now + options.duration_ns / 1e9
        link_type, decode = self._source.link_type, decoder.segment
        front_bytes, ip, place, mask, word = decoder.front(link_type, "<")
        number = size = due = 0

        def go_on() -> bool:
            self.packets, self._bytes = number - self.passed_over, size
            return self._go_on()

        try:
            for passed_over, batch in self._source.batches(go_on, self._keep, keep_all=self.writes):
                number += passed_over  # packets are numbered as in the file
                self._drops.passed_over += passed_over
                due = number + len(batch)
                for timestamp_ns, buffer, start, end, wire in batch:
                    number += 1
                    size += end - start
                    # The common case here, as the readers of files have it: a third of what a packet costs.
                    if end - start >= front_bytes:
                        network = start + ip
                        common = u32(buffer, start + place) & mask == word and buffer[network] == 0x45
                        if common and buffer[network + 9] == 6 and not u16(buffer, network + 6) & 0x3FFF:
                            flow = buffer[network + 12 : network + 24]
                            seq, ack = u32(buffer, network + 24), u32(buffer, network + 28)
                            words, flags = buffer[network + 32], buffer[network + 33]
                            payload, stop = network + 20 + (words >> 4) * 4, network + u16(buffer, network + 2)
                            if payload <= stop <= end and words >= 0x50:
                                yield number, timestamp_ns, flow, seq, ack, flags, buffer, payload, stop, 0
                                continue
                    found = decode(number, timestamp_ns, link_type, buffer, start, end, wire - end + start)
                    if found is not None:
                        if found[9]:
                            snap.cut(number, end - start)
                        yield found
            decoder.close()
            if self._key_log is not None:
                self._key_log.finish()
        finally:
            self.packets, self._bytes = number - self.passed_over, size
            if self._stopped:  # and not waited for
                self._drops.passed_over += due - number + self._source.waiting
            self.close()

    def _keep(self, batch: list[Packet]) -> bool:
        """Writes the packets as far as they are wanted, cuts the batch where that ends, says whether it goes on."""
        count, more = self._options.count, True
        if count is not None:
            room = count - self._kept
            more = len(batch) < room
            del batch[room:]
            self._kept += len(batch)
        for files in self._writers:
            for at, packet in enumerate(batch):
                files.write(*packet)
                if files.full:
                    del batch[at:]
                    more = False
                    break
            files.flush()
        return more

    def stop(self) -> None:
        """Ends the iteration at the next pause, in a tenth of a second at the most."""
        self._stopped = True

    def position(self) -> int:
        """Bytes captured so far."""
        return self._bytes

    def close(self) -> None:
        """Ends the capture; ``dropped`` is final. Does nothing the second time."""
        if self._closed:
            return
        self._closed = True
        self._drops.report()
        self._source.close()
        self._drops.report()
        with ExitStack() as stack:
            for files in self._writers:
                stack.callback(files.close)

    def _go_on(self) -> bool:
        now = time.monotonic()
        self._drops.poll(now)
        if self._key_log is not None:
            self._key_log.poll()
            if self.on_secrets is not None:
                self.on_secrets()
        if self.on_pause is not None:
            self.on_pause()
        return not self._stopped and (self._end_seconds is None or now < self._end_seconds)


def open_live(options: LiveOptions, user: str | None = None, names: AddressNames | None = None) -> LiveCapture:
    """Starts to capture, as ``user`` where another program does it; ``names`` go into comments of packets. Raises
    CaptureError for an interface, a right or a filter that is missing or wrong.
    """
    check_names(options.interfaces)
    return LiveCapture(_open_source(options, user), options, names)


def _open_source(options: LiveOptions, user: str | None) -> PacketSource:
    denied = ""
    if sys.platform == "linux":
        from kwiresniff.capture.live.packet_ring import PacketRing

        try:
            return PacketRing(options)
        except PermissionError:
            denied = "may not"
        except OSError as error:
            if error.errno == errno.ENETDOWN:
                name = options.interfaces[0]
                raise CaptureError(f"interface {name} is down; bring it up with: ip link set {name} up") from None
            # A kernel without packet sockets or rings; the programs may know another way.
            denied = f"cannot ({error.strerror})"
    reasons = []
    if len(options.interfaces) == 1:
        for program in PROGRAMS:
            try:
                return CaptureProcess(program, options, user)
            except CaptureProcessError as error:
                reasons.append(f"{program}: {error}")
    # A mistake in the filter may be what they ended with, and whoever gets the permission would meet it next.
    bpf.compiled(options.expression, ETHERNET)
    raise CaptureError(_refusal(options, denied, reasons))


def _refusal(options: LiveOptions, denied: str, reasons: list[str]) -> str:
    names = ", ".join(options.interfaces)
    if denied == "may not" or (not denied and os.geteuid() != 0):
        python = os.path.realpath(sys.executable)
        return (
            f"no permission to capture on {names}: run as root, or grant it once with: sudo setcap cap_net_raw+ep "
            f"{python}, or pipe: sudo tcpdump -U -w - -i {options.interfaces[0]} | kwiresniff read -"
        )
    return f"this system {denied or 'cannot'} capture on {names}: {'; '.join(reasons)}"
