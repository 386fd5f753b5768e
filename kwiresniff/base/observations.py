"""What was observed beside exchanges: problems, segments without an acknowledgement, connections that never were.

Named tuples, in a module that is never compiled: a compiled one would make them with ``typing``.
"""

from __future__ import annotations

from typing import Any, NamedTuple


class Problem(NamedTuple):
    """Something wrong with the input. ``offset`` counts from the start of the frame (without its length) inside one,
    else from the start of the file; ``details`` are further JSON members.
    """

    code: str
    message: str
    offset: int | None = None
    path: str = ""
    packet: int | None = None
    timestamp_ns: int | None = None
    details: dict[str, Any] | None = None


class Unacknowledged(NamedTuple):
    """A segment never acknowledged: ``side`` (0 for client to broker), ``size_bytes`` of data, ``retransmits``, and the
    ``packet`` and ``first_ns`` of the first of these.
    """

    side: int
    size_bytes: int
    retransmits: int
    packet: int
    first_ns: int


class ConnectionAttempt(NamedTuple):
    """A TCP connection that was refused with a RST, or not answered. ``client`` and ``server`` are ``ip:port`` texts;
    ``syns`` counts the SYNs, the first in ``packet`` with the sequence number ``seq`` (-1 if unknown); ``last_ns`` is
    the time of the last packet.
    """

    client: str
    server: str
    packet: int
    first_ns: int
    last_ns: int
    syns: int
    refused: bool
    seq: int = -1
