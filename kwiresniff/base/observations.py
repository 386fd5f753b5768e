"""What was observed beside exchanges: problems, segments without an acknowledgement, connections that never were.

Named tuples, in a module that is never compiled: a compiled one would make them with ``typing``.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Problem(NamedTuple):
    """Something wrong with the input, reported beside what could be understood in spite of it.

    ``offset`` counts bytes from the start of the frame for a problem inside a frame (the 4-byte length not
    included), from the start of the file for a problem of the capture. ``details`` are further JSON members.
    """

    code: str
    message: str
    offset: int | None = None
    path: str = ""
    packet: int | None = None
    timestamp_ns: int | None = None
    details: dict[str, Any] | None = None


class Unacknowledged(NamedTuple):
    """A segment that was sent again and again, and never acknowledged.

    ``side`` is 0 for client to broker, 1 for broker to client, ``size_bytes`` its data, ``retransmits`` how often it
    was sent again, ``packet`` and ``first_ns`` where and when that was first done.
    """

    side: int
    size_bytes: int
    retransmits: int
    packet: int
    first_ns: int


class ConnectionAttempt(NamedTuple):
    """A TCP connection that was never established: its SYN was refused with a RST, or not answered.

    ``client`` and ``server`` are ``ip:port`` texts; whether the server is a broker, nobody has said. ``syns`` counts
    the SYNs, of which the first is ``packet`` and has the sequence number ``seq``, -1 where that is not known;
    ``last_ns`` is the time of the last packet.
    """

    client: str
    server: str
    packet: int
    first_ns: int
    last_ns: int
    syns: int
    refused: bool
    seq: int = -1
