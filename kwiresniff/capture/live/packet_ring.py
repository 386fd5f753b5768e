"""Packets from the Linux kernel through a ring of memory blocks that it shares with us.

Source: the kernel's Documentation/networking/packet_mmap.rst, TPACKET_V3. The kernel fills a block with packets and
hands it over when it is full or old; we take it whole and hand it back. That costs no system call and no object per
packet, and whatever the kernel finds no room for is counted.

A block starts with version, offset of private data, status, number of packets, offset of the first packet, length
(32 bits each); a packet with offset of the next one, seconds, nanoseconds, captured length, length on the wire,
status (32 bits each), offsets of its link and network layer (16 bits each), hash, VLAN tag (32 bits each), VLAN
ethertype (16 bits), padding, and then, at 48, the address: family, protocol in network order (16 bits each),
interface (32), hardware type (16), packet type, length of the hardware address (8 each), and that address. All but
the protocol are in the machine's byte order.
"""

from __future__ import annotations

import errno
import logging
import mmap
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence

from kwiresniff.capture.link_layer import ETHERNET, LINUX_SLL2
from kwiresniff.capture.live import bpf
from kwiresniff.capture.live.interfaces import ANY
from kwiresniff.capture.live.scapy_cache import forgo_cache
from kwiresniff.capture.live.source import WAIT_MS, Batch, LiveOptions, Packet
from kwiresniff.errors import CaptureError
from kwiresniff.model import Problem

#: The size of a block: a packet of 64 KiB from offloading and a snap length; small, so that there are many.
BLOCK_BYTES = 512 * 1024
#: How often interfaces are looked for: the kernel does not report one that is removed while down.
LOOK_SECONDS = 1.0

_SOL_PACKET = 263
_RX_RING = 5
_STATISTICS = 6
_VERSION = 10
_TPACKET_V3 = 2

_OURS = 1  # TP_STATUS_USER
_VLAN_VALID = 1 << 4
_VLAN_ETHERTYPE_VALID = 1 << 6

_ETHERNET_TYPES = frozenset((1, 772))  # ARPHRD_ETHER and ARPHRD_LOOPBACK
_ALL_PROTOCOLS = 3  # linux/if_ether.h, ETH_P_ALL
_DLT_RAW = 12  # what packets look like to a filter when the link layer is taken off

_block = struct.Struct("=8xIIII")
_packet = struct.Struct("=6IHH4xIH")
_address = struct.Struct("=2x2siHBB8s")
_PACKET_HEADER_BYTES = 48
_sll2 = struct.Struct(">2sHIHBB8s")


class PacketRing:
    """A packet socket with its ring: raw packets of one Ethernet or loopback interface, "cooked" ones
    (LINKTYPE_LINUX_SLL2, without VLAN tags) of several or others.
    """

    def __init__(self, options: LiveOptions) -> None:
        """Raises PermissionError without the right to capture, OSError and CaptureError for what the kernel refuses."""
        self.problems: list[Problem] = []
        self.waiting = 0
        self.link_type = LINUX_SLL2
        #: Interfaces and their indexes, None for all; a socket does not follow one that returns with another index.
        self._there = None if ANY in options.interfaces else _indexes(options.interfaces)
        self._look_at = 0.0
        self._last_block_ms = WAIT_MS + 2 * options.delay_ms
        self._dropped = 0
        self._map: mmap.mmap | None = None
        self._socket = self._open(options)
        try:
            self._attach(options)
            self._map_blocks(options.buffer_bytes, options.delay_ms)
        except BaseException:
            self._socket.close()
            raise

    def batches(
        self, go_on: Callable[[], bool], keep: Callable[[list[Packet]], bool], *, keep_all: bool
    ) -> Iterator[Batch]:
        """The packets of each block, none at a pause, until ``go_on`` says no.

        A block stays with the kernel, which drops packets without room. With ``keep_all`` each is taken and kept at
        once; as much as the kernel has room for waits here, more is passed over.
        """
        ring = self._map
        assert ring is not None
        backlog: deque[tuple[Batch, int]] = deque()
        room = self.backlog_bytes if keep_all else 1
        held = passed_over = until_ns = at = 0
        ended = False
        while True:
            if not until_ns and not go_on():
                until_ns = time.time_ns()
            for _ in range(len(ring) // BLOCK_BYTES):
                if ended or not _block.unpack_from(ring, at)[0] & _OURS or (held >= room and not keep_all):
                    break
                packets, length, whole = self._take(ring, at, until_ns)
                at = (at + BLOCK_BYTES) % len(ring)
                ended = not keep(packets) or not whole
                if held >= room:
                    passed_over += len(packets)
                    continue
                backlog.append(((passed_over, packets), length))
                held += length
                self.waiting += passed_over + len(packets)
                passed_over = 0
            if backlog:
                batch, length = backlog.popleft()
                held -= length
                self.waiting -= batch[0] + len(batch[1])
                yield batch
            elif ended or not self._wait() or (until_ns and not _block.unpack_from(ring, at)[0] & _OURS):
                # What came before the end was asked for may have lain in a block that was not old enough to be ours.
                yield passed_over, []
                return
            else:
                yield 0, []

    def _take(self, ring: mmap.mmap, at: int, until_ns: int) -> tuple[list[Packet], int, bool]:
        """The packets of a block, up to a time if one is given; its length; whether these are all. The kernel gets the
        block back."""
        _, count, offset, length = _block.unpack_from(ring, at)
        block = ring[at : at + length]
        ring[at + 8 : at + 12] = bytes(4)
        cooked, header = self.link_type == LINUX_SLL2, _packet.unpack_from
        packets: list[Packet] = []
        for _ in range(count):
            following, seconds, fraction, captured, wire, status, link, _, tag, ethertype = header(block, offset)
            start, buffer = offset + link, block
            if cooked:
                buffer = _cooked(block, offset) + block[start : start + captured]
                start, captured, wire = 0, captured + _sll2.size, wire + _sll2.size
            elif status & _VLAN_VALID and captured > 12:
                # The hardware took the tag out; a capture has it where it was on the wire.
                kind = ethertype if status & _VLAN_ETHERTYPE_VALID else 0x8100
                tagged = struct.pack(">HH", kind, tag & 0xFFFF)
                buffer = block[start : start + 12] + tagged + block[start + 12 : start + captured]
                start, captured, wire = 0, captured + 4, wire + 4
            timestamp_ns = seconds * 1_000_000_000 + fraction
            if 0 < until_ns < timestamp_ns:
                return packets, length, False
            packets.append((timestamp_ns, buffer, start, start + captured, wire))
            offset += following
        return packets, length, True

    def dropped(self) -> int:
        """Packets that the kernel found no room for, so far."""
        if self._socket.fileno() >= 0:
            self._dropped += self._statistics()
        return self._dropped

    def close(self) -> None:
        """Closes the socket and unmaps the ring."""
        self._socket.close()
        if self._map is not None:
            self._map.close()

    def _open(self, options: LiveOptions) -> socket.socket:
        if options.interfaces != (ANY,) and len(options.interfaces) == 1:
            sock = _scapy_socket(options.interfaces[0], options.promiscuous)
            if sock.getsockname()[3] in _ETHERNET_TYPES:
                self.link_type = ETHERNET
                return sock
            sock.close()
        return socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(_ALL_PROTOCOLS))

    def _attach(self, options: LiveOptions) -> None:
        cooked = self.link_type == LINUX_SLL2
        wanted = bpf.compiled(options.expression, _DLT_RAW if cooked else ETHERNET)
        there = self._there if cooked and self._there else {}
        bpf.attach(self._socket, bpf.live_program(wanted, options.snap_bytes, list(there.values())))
        if cooked and options.promiscuous:
            forgo_cache()
            from scapy.arch.linux import set_promisc

            for name in there:
                set_promisc(self._socket, name)

    def _map_blocks(self, buffer_bytes: int, delay_ms: int) -> None:
        blocks = max(buffer_bytes // BLOCK_BYTES, 2)
        self.backlog_bytes = blocks * BLOCK_BYTES
        self._socket.setsockopt(_SOL_PACKET, _VERSION, _TPACKET_V3)
        # Block size and number, frame size and number (only checked), age, private bytes per block, features.
        request = struct.pack("=7I", BLOCK_BYTES, blocks, BLOCK_BYTES, blocks, delay_ms, 0, 0)
        try:
            self._socket.setsockopt(_SOL_PACKET, _RX_RING, request)
            self._map = mmap.mmap(self._socket.fileno(), blocks * BLOCK_BYTES)
            self._map.madvise(mmap.MADV_DONTFORK)  # it would keep the capture going in other processes
        except OSError as error:
            if error.errno == errno.ENOMEM:
                size = blocks * BLOCK_BYTES // 1024
                raise CaptureError(
                    f"the kernel has no memory for a buffer of {size} KiB; ask for less with -B"
                ) from None
            raise
        # With the ring the kernel throws away what came before the filter was attached; so do its counts go.
        self._statistics()

    def _statistics(self) -> int:
        """Packets dropped since the last call."""
        dropped: int = struct.unpack_from("=4xI", self._socket.getsockopt(_SOL_PACKET, _STATISTICS, 12))[0]
        return dropped

    def _wait(self) -> bool:
        """Waits for a block, not for long; False when no interface is left and what they gave has come."""
        if self._there == {}:
            self._take_error()  # which would end the wait
            return bool(self._poll(self._last_block_ms) & select.POLLIN)
        failed = self._poll(WAIT_MS) & select.POLLERR
        down = bool(failed) and self._take_error() == errno.ENETDOWN and len(self._there or ()) == 1
        if down or time.monotonic() >= self._look_at:
            self._check_interfaces()
        for name in self._there or () if down else ():
            self._report_gone(name, "is down, waiting for it to come back")
        return True

    def _poll(self, wait_ms: int) -> int:
        """The socket's poll flags within ``wait_ms`` milliseconds."""
        waiting = select.poll()
        waiting.register(self._socket, select.POLLIN)
        return next((event for _, event in waiting.poll(wait_ms)), 0)

    def _take_error(self) -> int:
        """The socket's error, which it has no longer then; 0 for none."""
        return self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)

    def _check_interfaces(self) -> None:
        """Reports interfaces that are gone; to be called again after a while."""
        self._look_at = time.monotonic() + LOOK_SECONDS
        known = {index for index, _ in socket.if_nameindex()}
        for name in [name for name, index in (self._there or {}).items() if index not in known]:
            assert self._there is not None
            del self._there[name]
            self._report_gone(name, "is gone")

    def _report_gone(self, name: str, what: str) -> None:
        self.problems.append(Problem("interface_down", f"interface {name} {what}", details={"interface": name}))


def _indexes(names: Sequence[str]) -> dict[str, int]:
    return {name: socket.if_nametoindex(name) for name in names}


def _scapy_socket(name: str, promiscuous: bool) -> socket.socket:
    logging.getLogger("scapy").setLevel(logging.ERROR)  # that it cannot dissect a link layer is nothing to us
    forgo_cache()
    from scapy.arch.linux import L2ListenSocket

    # Its filter is attached by us, because scapy's would neither cut packets nor know about the loopback interface.
    listener = L2ListenSocket(iface=name, promisc=promiscuous, nofilter=1)
    return socket.socket(fileno=listener.ins.detach())


def _cooked(block: bytes, offset: int) -> bytes:
    """The LINUX_SLL2 header of a packet: protocol, reserved, interface, hardware type, packet type, address."""
    protocol, interface, hardware, kind, length, address = _address.unpack_from(block, offset + _PACKET_HEADER_BYTES)
    return _sll2.pack(protocol, 0, interface, hardware, kind, length, address)
