"""What is given up, in words: bytes missing or unreadable, messages cut off, and what gave way to a limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kwiresniff.model import Direction, Problem
from kwiresniff.stream.half import Half

if TYPE_CHECKING:
    from kwiresniff.session.link import Link


def _where(link: Link) -> dict[str, object]:
    connection = link.connection
    return {"connection": connection.id, "client": connection.client, "broker": connection.broker}


def lost_message(direction: Direction, packet: int, ns: int, size: int, lost: int, link: Link) -> Problem:
    """A frame of which so much is missing that it belongs to no exchange."""
    return Problem(
        f"lost_{direction}",
        f"a {direction} of {size} bytes is missing from the capture",
        packet=packet,
        timestamp_ns=ns,
        details={**_where(link), "size_bytes": size, "present_bytes": size - lost},
    )


def incomplete(code: str, what: str, link: Link, half: Half, size: int, present: int) -> Problem:
    """A frame that had begun when its connection or the capture ended."""
    of = f"{present} of {size} bytes" if size else f"{present} bytes of its length"
    return Problem(
        code,
        f"{what} is cut off by the end: {of} are there",
        packet=half.first_packet,
        timestamp_ns=half.first_ns,
        details={**_where(link), "size_bytes": size, "present_bytes": present},
    )


def lost_bytes(link: Link, half: Half, packet: int, ns: int, missing: int, skipped: int, code: str) -> Problem:
    """Bytes that were not in the capture (``missing``) or could not be read (``skipped``)."""
    way = "client to broker" if half is link.client else "broker to client"
    parts = ["a length that no message has"] if code == "bad_length" else []
    if missing:
        parts.append(f"{missing} bytes are missing from the capture")
    if skipped:
        parts.append(f"{skipped} bytes skipped until a message was recognised")
    return Problem(
        code,
        f"{way}: {', '.join(parts) or 'lost count of the messages'}",
        packet=packet or None,
        timestamp_ns=ns,
        details={
            **_where(link),
            "direction": "request" if half is link.client else "response",
            "missing_bytes": missing,
            "skipped_bytes": skipped,
        },
    )


def too_many_connections(limit: int, given_up: int, ns: int) -> Problem:
    """Connections that were ended to make room."""
    what = f"more than {limit} connections: the {given_up} that were idle longest are given up"
    return Problem("too_many_connections", what, timestamp_ns=ns, details={"connections": given_up})


def too_many_topic_names(limit: int, forgotten: int) -> Problem:
    """Names of topics that were forgotten."""
    what = f"more than {limit} topic names, or too long ones: the {forgotten} learned first were forgotten"
    return Problem("too_many_topic_names", what, details={"names": forgotten})


def too_much_held(link: Link, half: Half | None, size: int, limit: int) -> Problem:
    """Somebody gave way because all connections together held too much: a half, or a link's requests."""
    what = "requests without an answer"
    if half is not None:
        what = f"what the {'client' if half is link.client else 'broker'} sent"
    return Problem(
        "too_much_held",
        f"more than {limit >> 20} MB held for all connections: {size} bytes of {what} are given up",
        timestamp_ns=max(link.client.last_ns, link.broker.last_ns),
        details={**_where(link), "bytes": size},
    )
