"""When a lag grows and when it does not: looks at a partition over time, made by hand."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.doctor.troubles.lag import Look, grows
from kwiresniff.model import Event, Exchange
from tests.support import exchanges
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import codes, findings

SECOND = 1_000_000_000


def looks(*lags: int, every_ns: int = 2 * SECOND) -> list[Look]:
    """A partition that was looked at so often; what was read stays, what was written grows by the lag."""
    return [Look(1, number * every_ns, 1_000 + lag, 1_000) for number, lag in enumerate(lags)]


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        pytest.param(looks(0, 50, 100, 150, 200, 250, 300), True, id="grows"),
        pytest.param(looks(300, 250, 200, 150, 100, 50, 0), False, id="a consumer that catches up"),
        pytest.param(looks(200, 200, 200, 200, 200, 200), False, id="stays"),
        pytest.param(looks(0, 500, 0, 500, 0, 500, 0), False, id="bursts that are read"),
        pytest.param(looks(0, 10, 20, 30, 40, 50, 60), False, id="few records"),
        pytest.param(looks(0, 50, 100, 150, 200, 250, every_ns=SECOND), False, id="too short a time"),
        pytest.param(looks(0, 500, every_ns=20 * SECOND), False, id="too few looks"),
    ],
)
def test_a_lag_grows_when_its_end_is_above_all_of_its_beginning(seen: list[Look], expected: bool) -> None:
    """The last third of the time against the first, over ten seconds and a hundred records at least."""
    assert grows(seen) is expected


def committed(at_s: float, offset: int) -> Exchange:
    return exchanges.committed(offset, member={"group_id": "reports"}, start_ns=START_NS + round(at_s * SECOND))


def fetched(at_s: float, offset: int, behind: int) -> Exchange:
    """A fetch that brings the records before ``offset``, with so many behind it."""
    batch = {"base_offset": offset - 10, "last_offset_delta": 9, "records_count": 10, "magic": 2}
    start_ns = START_NS + round(at_s * SECOND)
    return exchanges.fetched([batch], high_watermark=offset + behind, request=None, start_ns=start_ns)


@pytest.mark.parametrize("commits_every_s", [1, 5, 30])
def test_what_was_written_since_the_last_commit_is_no_lag(commits_every_s: int) -> None:
    """A hundred records a second are written, and fetched at once; before the first commit nothing is committed."""
    events: list[Event] = []
    for second in range(1, 40):
        events.append(fetched(second, 100 * second, 0))
        if second % commits_every_s == 0:
            events.append(committed(second + 0.5, 100 * second))
    assert codes(*events) == []


def test_a_group_that_commits_ever_further_behind_lags() -> None:
    """Its consumer has fetched all there is; what counts is what it has done."""
    events: list[Event] = []
    for second in range(1, 40):
        events += [fetched(second, 100 * second, 0), committed(second + 0.5, 40 * second)]
    (found,) = findings(*events)
    assert found.code == "consumer_lag" and "it commits 40" in found.title


def test_a_group_that_stops_committing_lags_whatever_it_fetches() -> None:
    """Its client fetches ahead of an application that does not come back."""
    events: list[Event] = []
    for second in range(1, 40):
        events.append(fetched(second, 100 * second, 0))
        if second < 8:
            events.append(committed(second + 0.5, 100 * second))
    (found,) = findings(*events)
    assert found.code == "consumer_lag" and "to 3,200 records" in found.title


def test_a_consumer_whose_group_commits_seldom_lags_by_what_it_fetches() -> None:
    events: list[Event] = []
    for second in range(1, 40):
        events.append(fetched(second, 100 * second, 20 * second))
        if second % 15 == 0:
            events.append(committed(second + 0.5, 100 * second))
    (found,) = findings(*events)
    assert found.code == "consumer_lag" and "it fetches 100" in found.title


def test_a_group_that_commits_seldom_has_not_stopped_to() -> None:
    """Two commits are twelve seconds apart, and twice as long there is none: that may be its way."""
    events: list[Event] = [fetched(second, 100 * second, 0) for second in range(1, 40)]
    events[15:15] = [committed(15.5, 1500)]
    events[3:3] = [committed(3.5, 300)]
    assert codes(*events) == []


def single(
    at_s: float, *, more: int = 100, records: int = 1, size: int = 400, isolation_level: int = 0, stable: int = 0
) -> Exchange:
    """A fetch of so many records, with so many behind them, of which so many are committed."""
    base = 1_000 + round(at_s * 10)
    batch = {
        "base_offset": base,
        "last_offset_delta": records - 1,
        "records_count": records,
        "magic": 2,
        "size_bytes": size,
    }
    part = {"partition_index": 0, "error_code": 0, "high_watermark": base + records + more, "records": [batch]}
    part["last_stable_offset"] = base + records + stable
    return exchange(
        request={"max_bytes": 500, "isolation_level": isolation_level},
        response={"responses": [{"topic": "orders", "partitions": [part]}]},
        start_ns=START_NS + round(at_s * SECOND),
    )


@pytest.mark.parametrize(
    ("fetches", "told"),
    [
        pytest.param([single(at) for at in range(10)], True, id="one each time"),
        pytest.param([single(at) for at in range(5)], False, id="few"),
        pytest.param([single(at, more=0) for at in range(10)], False, id="all that there is"),
        pytest.param([single(at, records=2, size=200) for at in range(10)], False, id="two each time"),
        pytest.param([single(at, size=200) for at in range(10)], False, id="one, and it asks for more than two"),
        pytest.param([single(at, records=20, size=1_000_000) for at in range(10)], True, id="large batches"),
        pytest.param([single(at, isolation_level=1) for at in range(10)], False, id="what is behind is not committed"),
        pytest.param([single(at, isolation_level=1, stable=900) for at in range(10)], True, id="it is committed"),
        pytest.param([single(at, records=1 + at % 3, size=200) for at in range(30)], False, id="more now and then"),
    ],
)
def test_who_is_given_one_record_at_a_time_is_told(fetches: list[Exchange], told: bool) -> None:
    """The log has more, and what was asked for is no more than one record or batch."""
    found = [one for one in findings(*fetches) if one.code != "transaction_open"]
    assert [(one.code, one.severity) for one in found] == [("small_fetches", "warning")] * told
    assert all("500 bytes" in one.title and one.numbers["max_bytes"] == 500 for one in found)
