"""Records that are sent without acknowledgement (acks=0): what a refusal of them looks like."""

from __future__ import annotations

import pytest

from kwiresniff.model import Connection, Event, Exchange
from tests.support.incidents import SECOND, closed, codes, produce


def unasked(at_ns: int, on: Connection) -> Exchange:
    """A record that nobody wants to be acknowledged."""
    sent = produce(at_ns, on=on)
    assert sent.request is not None and sent.request.body is not None
    sent.request.body["acks"] = 0
    return sent


@pytest.mark.parametrize(
    ("closings", "by", "after_ns", "apart_ns", "expected"),
    [
        pytest.param(3, "broker", SECOND // 10, SECOND, [("acks_0_refused", "error")], id="at once"),
        pytest.param(2, "broker", SECOND // 10, SECOND, [("acks_0", "info")], id="twice"),
        pytest.param(3, "client", SECOND // 10, SECOND, [("acks_0", "info")], id="by the client"),
        pytest.param(3, "broker", 60 * SECOND, SECOND, [("acks_0", "info")], id="when they were idle"),
        pytest.param(3, "broker", SECOND // 10, 0, [("acks_0", "info")], id="all at one moment"),
    ],
)
def test_connections_closed_after_records_that_nobody_asks_for(
    closings: int, by: str, after_ns: int, apart_ns: int, expected: list[tuple[str, str]]
) -> None:
    """A broker has no other way to refuse them; one that stops closes all it has."""
    events: list[Event] = []
    for number in range(1, closings + 1):
        asked_ns = number * apart_ns
        on = closed(number, by, asked_ns + after_ns, exchanges={"unanswered": 1})
        events += [unasked(asked_ns, on), on]
    assert codes(*events) == expected
