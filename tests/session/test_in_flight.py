"""Requests in flight."""

from __future__ import annotations

import random

from kwiresniff.model import Connection, Exchange
from kwiresniff.session.in_flight import InFlightRequests


def in_flight(*correlation_ids: int) -> InFlightRequests:
    requests = InFlightRequests()
    connection = Connection(1, "10.0.0.1:5000", "10.0.0.2:9092")
    for correlation_id in correlation_ids:
        exchange = Exchange(connection, 3, 9, correlation_id, None, None, None)
        if correlation_id in requests.by_id:
            requests.add_reused(exchange)
        else:
            requests.by_id[correlation_id] = exchange
    return requests


def test_the_oldest_request_and_one_that_is_not_there_overtake_nothing() -> None:
    """Any other may, and an id that is reused."""
    assert [in_flight(1, 2, 3).may_overtake(one) for one in (1, 2, 3, 4)] == [False, True, True, False]
    assert in_flight(1, 1).may_overtake(1)
    assert not in_flight().may_overtake(1)


def test_where_nothing_may_be_overtaken_nothing_is() -> None:
    """Whatever the response could answer."""
    made = random.Random(3)
    for _ in range(200):
        ids = [made.randrange(4) for _ in range(made.randrange(5))]
        asked = made.randrange(5)
        if not in_flight(*ids).may_overtake(asked):
            assert list(in_flight(*ids).overtaken_by(asked, lambda exchange: True)) == []
