"""Records that are sent without acknowledgement (acks=0): what a refusal of them looks like."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.doctor.troubles import unacknowledged
from kwiresniff.model import Connection, Event, Exchange
from tests.support.exchanges import START_NS, connection, exchange
from tests.support.incidents import SECOND, closed, codes, findings, produce


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
        pytest.param(2, "broker", SECOND // 10, SECOND, [("acks_0", "warning")], id="twice"),
        pytest.param(1, "broker", SECOND // 10, SECOND, [("acks_0", "info")], id="at the end"),
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


def told(at_ns: int, high_watermark: int) -> Exchange:
    """A consumer is told the end of orders-0."""
    part = {"partition_index": 0, "error_code": 0, "high_watermark": high_watermark, "records": []}
    response = {"responses": [{"topic": "orders", "partitions": [part]}]}
    return exchange(client_id="reader", request={}, response=response, start_ns=START_NS + at_ns)


def lossy(lost_at: int, *, closed_by: str = "broker") -> list[Event]:
    """Thirty times ten records, of which one request goes to a broker that has gone; a consumer looks each time."""
    on = closed(3, closed_by, lost_at * SECOND, exchanges={"unanswered": 1})
    events: list[Event] = [told(0, 0)]
    for number in range(30):
        if number == lost_at:
            events += [unasked(number * SECOND, on), on]
        else:
            events.append(unasked(number * SECOND, connection(2)))
        stored = number + 1 - (number >= lost_at)
        events.append(told(number * SECOND + SECOND // 2, 10 * stored))
    return events


def test_records_that_no_log_has_are_counted_by_what_it_grew() -> None:
    """Seen must be that a broker closed the connection, and that the log lacks them at each of the last looks."""
    (found,) = findings(*lossy(5))
    assert (found.code, found.severity, found.numbers["lost"]) == ("acks_0", "error", 10)
    assert "at least 10 records of orders-0 are lost" in found.title
    assert codes(*lossy(27)) == [("acks_0", "warning")]  # too few looks since: it is on its way, maybe
    assert codes(*lossy(5, closed_by="client")) == [("acks_0", "info")]
    assert codes(*lossy(99)) == [("acks_0", "info")]


def test_partitions_of_records_without_acknowledgement_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of those beyond the limit nobody knows what is lost."""
    monkeypatch.setattr(unacknowledged, "MAX_PARTITIONS", 0)
    assert codes(*lossy(5)) == [("acks_0", "warning")]
