"""Kernel filters: a BPF expression compiled by libpcap, with what a live capture puts around it.

Source: the classic BPF of the Linux kernel (Documentation/networking/filter.rst). An instruction is code (16 bits),
jump if true, jump if false (8 bits each, relative), and k (32 bits). It returns how many bytes of the packet are
kept, 0 for a packet that the filter refuses.
"""

from __future__ import annotations

import ctypes
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from kwiresniff.capture.live.scapy_cache import forgo_cache
from kwiresniff.errors import CaptureError

Instruction: TypeAlias = tuple[int, int, int, int]
Program: TypeAlias = list[Instruction]

_LOAD_WORD = 0x20
_JUMP_EQUAL = 0x15
_RETURN = 0x06

#: Loads from these addresses read what the kernel knows about a packet (linux/filter.h, SKF_AD_*).
_PACKET_TYPE = 0xFFFFF004
_INTERFACE = 0xFFFFF008
_HARDWARE_TYPE = 0xFFFFF01C

_OUTGOING = 4  # linux/if_packet.h, PACKET_OUTGOING
_LOOPBACK = 772  # linux/if_arp.h, ARPHRD_LOOPBACK

_ATTACH_FILTER = 26  # asm/socket.h, SO_ATTACH_FILTER
#: The kernel's limit (BPF_MAXINSNS).
_MAX_INSTRUCTIONS = 4096


def expression(words: Sequence[str], ports: Iterable[int]) -> str:
    """One BPF expression of what the user typed and the ports they named, empty for all packets."""
    parts = [" ".join(words)] if words else []
    hints = " or ".join(f"tcp port {port}" for port in ports)
    if hints:
        parts.append(hints)
    return " and ".join(f"({part})" for part in parts) if len(parts) > 1 else "".join(parts)


def compiled(text: str, link_type: int) -> Program:
    """The instructions of a BPF expression for packets of a DLT_ number; none for an empty expression."""
    if not text:
        return []
    forgo_cache()
    from scapy.arch.common import compile_filter
    from scapy.error import Scapy_Exception

    try:
        code = compile_filter(text, linktype=link_type)
    except ImportError:
        raise CaptureError(
            "a capture filter needs libpcap, which is not installed: apt install libpcap0.8, or filter with -Y"
        ) from None
    except Scapy_Exception as error:
        detail = str(error).rpartition("(")[2].rstrip(")") if "(" in str(error) else str(error)
        raise CaptureError(f"the capture filter {text!r} is not understood: {detail}; see man pcap-filter") from None
    return [(one.code, one.jt, one.jf, one.k) for one in code.bf_insns[: code.bf_len]]


def live_program(user_filter: Program, snap_bytes: int, interfaces: Sequence[int]) -> Program:
    """``user_filter`` for a live socket: its packets cut to ``snap_bytes``, of these interfaces only (all when none is
    named), and those on a loopback interface once: they pass it twice, outgoing and incoming."""
    program: Program = [
        (_LOAD_WORD, 0, 0, _HARDWARE_TYPE),
        (_JUMP_EQUAL, 0, 3, _LOOPBACK),
        (_LOAD_WORD, 0, 0, _PACKET_TYPE),
        (_JUMP_EQUAL, 0, 1, _OUTGOING),
        (_RETURN, 0, 0, 0),
    ]
    if interfaces:
        program.append((_LOAD_WORD, 0, 0, _INTERFACE))
        left = len(interfaces)
        for index in interfaces:
            program.append((_JUMP_EQUAL, left, 0, index))
            left -= 1
        program.append((_RETURN, 0, 0, 0))
    for code, if_true, if_false, k in user_filter or [(_RETURN, 0, 0, snap_bytes)]:
        # The compiler's own length for what it accepts is less than a packet of 64 KB with its link layer.
        program.append((code, if_true, if_false, snap_bytes if code == _RETURN and k else k))
    if len(program) > _MAX_INSTRUCTIONS:
        raise CaptureError(f"the capture filter is too long: {len(program)} of {_MAX_INSTRUCTIONS} instructions")
    return program


def attach(sock: socket.socket, program: Program) -> None:
    """Makes the kernel run the program on every packet that comes to the socket."""
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, struct.pack("@HP", len(program), ctypes.addressof(code)))
