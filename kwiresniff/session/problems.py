"""The texts of problems: bytes missing or unreadable, messages cut off, and what was dropped because of a limit."""

from __future__ import annotations

from kwiresniff.model import Connection, Direction, Problem
from kwiresniff.stream.frame_handler import LOST_CUT, LOST_GAP


def _where(connection: Connection) -> dict[str, object]:
    return {"connection": connection.id, "client": connection.client, "broker": connection.broker}


def not_decrypted(connection: Connection, reason: str, ns: int) -> Problem:
    """The problem of a TLS connection that is not decrypted, or not all of it, though there are secrets."""
    what = f"TLS of {connection.client} to {connection.broker} is not decrypted: {reason}"
    return Problem("not_decrypted", what, timestamp_ns=ns, details=_where(connection))


def lost_message(
    connection: Connection, direction: Direction, packet: int, ns: int, size: int, lost: int, code: str
) -> Problem:
    """The problem of a frame that has ``lost`` so many bytes that it belongs to no exchange."""
    details: dict[str, object] = {**_where(connection), "size_bytes": size, "present_bytes": size - lost}
    if code == LOST_CUT:
        details["cut"] = True
    what = f"a {direction} of {size} bytes is missing from the capture"
    return Problem(f"lost_{direction}", what, packet=packet, timestamp_ns=ns, details=details)


def incomplete(
    connection: Connection, direction: Direction, what: str, packet: int, ns: int, size: int, present: int, waits: bool
) -> Problem:
    """The problem of a frame of ``size`` bytes that had begun, in ``packet``, when its connection or the capture ended;
    ``present`` bytes of it came. ``waits`` says that the receiver acknowledged those and nothing behind them.
    """
    of = f"{present} of {size} bytes" if size else f"{present} bytes of its length"
    return Problem(
        f"incomplete_{direction}",
        f"{what} is cut off by the end: {of} are there",
        packet=packet,
        timestamp_ns=ns,
        details={
            **_where(connection), "size_bytes": size, "present_bytes": present,
            **({"unacknowledged": True} if waits else {}),
        },
    )  # fmt: skip


def lost_bytes(
    connection: Connection,
    direction: Direction,
    packet: int,
    ns: int,
    missing: int,
    skipped: int,
    code: str,
    unacknowledged: bool,
) -> Problem:
    """The problem of bytes that were not in the capture (``missing``) or could not be read (``skipped``);
    ``unacknowledged`` says that the receiver never acknowledged those that are missing."""
    way = "client to broker" if direction == "request" else "broker to client"
    text = "a length that no message has" if code == "bad_length" else ""
    if missing:
        text = f"{text}, {missing} bytes" if text else f"{missing} bytes"
        text += " are cut off (snap length)" if code == LOST_CUT else " are missing from the capture"
    if unacknowledged:
        text += " and were never acknowledged"
    if skipped:
        text = f"{text}, {skipped} bytes" if text else f"{skipped} bytes"
        text += " skipped in search of the next message"
    # The keys of _where, put down once more: a damaged capture has a problem for each packet, and two dicts show there.
    details: dict[str, object] = {
        "connection": connection.id, "client": connection.client, "broker": connection.broker, "direction": direction,
        "missing_bytes": missing, "skipped_bytes": skipped,
    }  # fmt: skip
    if code == LOST_CUT:
        code = LOST_GAP
        details["cut"] = True
    if unacknowledged:
        details["unacknowledged"] = True
    what = f"{way}: {text or 'lost count of the messages'}"
    return Problem(code, what, None, "", packet or None, ns, details)


def early_response(ahead_ns: int) -> Problem:
    """The problem of an exchange whose response has a time ``ahead_ns`` nanoseconds before its request."""
    what = f"the response has a time {ahead_ns / 1e6:g} ms before its request, so its latency is not known"
    return Problem("response_before_request", what, None, "", None, None, {"ahead_ns": ahead_ns})


def early_responses(by_time: bool, count: int, packet: int, ns: int, most_ns: int) -> Problem:
    """The problem of responses before their requests: in packet order, or ``by_time`` up to ``most_ns``."""
    responses = f"{count} responses" if count > 1 else "a response"
    verb = "come" if count > 1 else "comes"
    if by_time:
        what = (
            f"{responses} {verb} before the request by time, up to {most_ns / 1e6:g} ms, so these latencies are not "
            "known: clocks of two interfaces or queues differ; capture on one interface, or sort a merged capture "
            "with reordercap"
        )
    else:
        what = f"{responses} {verb} before the request in the order of packets, not by time: sort them with reordercap"
    details: dict[str, object] = {"responses": count, "by_time": by_time, "ahead_ns": most_ns if by_time else None}
    return Problem("response_before_request", what, None, "", packet, ns, details)


def stray_token(connection: Connection, mechanism: str, wanted: str, packet: int, ns: int) -> Problem:
    """The problem of a SASL token of ``mechanism`` without a header, where a ``wanted`` request has to come."""
    return Problem(
        "stray_sasl_token",
        f"client to broker: a token of {mechanism} where a {wanted} request has to come",
        packet=packet,
        timestamp_ns=ns,
        details={**_where(connection), "mechanism": mechanism, "wanted": wanted},
    )


def too_many_connections(limit: int, evicted: int, ns: int) -> Problem:
    """The problem of ``evicted`` connections, ended because of the ``limit``."""
    what = f"more than {limit} connections: the {evicted} that were idle longest are given up"
    return Problem("too_many_connections", what, timestamp_ns=ns, details={"connections": evicted})


def too_many_topic_names(limit: int, forgotten: int) -> Problem:
    """The problem that ``forgotten`` topic names made room for others, because there may be no more than ``limit``."""
    what = f"more than {limit} topic names, or too long ones: the {forgotten} learned first were forgotten"
    return Problem("too_many_topic_names", what, details={"names": forgotten})


def too_much_held(connection: Connection, what: str, size: int, limit: int, ns: int) -> Problem:
    """The problem of ``size`` bytes that a connection released because of the ``limit``."""
    return Problem(
        "too_much_held",
        f"more than {limit >> 20} MB held for all connections: {size} bytes of {what} are given up",
        timestamp_ns=ns,
        details={**_where(connection), "bytes": size},
    )
