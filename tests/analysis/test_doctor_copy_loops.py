"""Programs that write what they read to where it is read again."""

from __future__ import annotations

from itertools import chain
from types import ModuleType

import pytest

from kwiresniff.analysis.doctor.troubles import copy_loops
from kwiresniff.model import Event
from tests.support.exchanges import START_NS, connection, fetched, produced
from tests.support.incidents import codes, findings

MILLISECOND = 1_000_000
LOOP = [("copy_loop", "error")]


def batch(records: int, offset: int = 0) -> list[dict[str, int]]:
    return [{"magic": 2, "base_offset": offset, "last_offset_delta": records - 1, "records_count": records}]


def reads(
    at_ms: float, topic: str = "events", *, records: int = 3, client_id: str = "copier", client: str = "5"
) -> Event:
    on = connection(client=f"10.0.0.{client}:50000")
    return fetched(
        batch(records, round(at_ms) * 100),
        topic=topic,
        client_id=client_id,
        on=on,
        start_ns=START_NS + round(at_ms * MILLISECOND),
    )


def writes(
    at_ms: float,
    topic: str = "events",
    *,
    records: int = 3,
    client_id: str = "copier",
    client: str = "5",
    from_beginning: bool = True,
) -> Event:
    on, start_ns = connection(client=f"10.0.0.{client}:50000"), START_NS + round(at_ms * MILLISECOND)
    on.client_iss = 1 if from_beginning else -1
    return produced(batch(records), topic=topic, client_id=client_id, on=on, start_ns=start_ns, offset=0)


def rounds(every_ms: float = 20, count: int = 50, *, records: int = 3, writer: str = "copier") -> list[Event]:
    """What is read from events is written to it two milliseconds later, round after round."""
    times = [number * every_ms for number in range(count)]
    return list(chain.from_iterable((reads(at), writes(at + 2, records=records, client_id=writer)) for at in times))


def test_a_program_that_writes_back_what_it_reads_is_a_loop() -> None:
    """Three records go round 50 times."""
    (found,) = findings(*rounds())
    assert (found.code, found.severity, found.subject) == ("copy_loop", "error", "copier 10.0.0.5")
    assert (found.numbers["records"], found.numbers["at_a_time"]) == (150, 3)


def test_what_a_probe_writes_and_reads_again_is_none_from_the_middle() -> None:
    """Whether its first record was written or read is not seen; of two topics it does not matter."""
    times = range(0, 1_000, 20)
    assert codes(*chain.from_iterable((reads(at), writes(at + 2, from_beginning=False)) for at in times)) == []
    there = chain.from_iterable((reads(at), writes(at + 2, "copies", from_beginning=False)) for at in times)
    back = chain.from_iterable(
        (reads(at + 3, "copies"), writes(at + 5, "events", from_beginning=False)) for at in times
    )
    assert codes(*there, *back) == LOOP


def test_consumer_and_producer_of_a_program_may_have_ids_of_their_own() -> None:
    """They are one program by their host."""
    assert codes(*rounds(writer="producer-1")) == LOOP


def test_two_programs_that_copy_to_and_fro_are_one_loop() -> None:
    """By both, once."""
    events = chain.from_iterable(
        (
            reads(at, "a", client_id="there"), writes(at + 2, "b", client_id="there"),
            reads(at + 4, "b", client_id="back", client="6"), writes(at + 6, "a", client_id="back", client="6"),
        )
        for at in range(0, 1000, 20)
    )  # fmt: skip
    (found,) = findings(*events)
    assert found.code == "copy_loop"
    assert found.numbers["copied"] == ["there 10.0.0.5 copies a to b", "back 10.0.0.6 copies b to a"]


@pytest.mark.parametrize(
    "events",
    [
        pytest.param([writes(0), *rounds()], id="writes before it reads, as one that reads its own records"),
        pytest.param(rounds(every_ms=1000), id="a few records in a second"),
        pytest.param(rounds(count=30), id="too few records"),
        pytest.param([reads(0, records=40), *rounds()], id="has read more than it writes"),
        pytest.param(rounds(records=2), id="writes some of what it reads"),
        pytest.param([reads(0, records=300), *[writes(10 + at, records=3) for at in range(100)]], id="one round"),
        pytest.param(
            [*chain.from_iterable((reads(at), writes(at + 2, "copies")) for at in range(0, 1000, 20))], id="a copy"
        ),
    ],
)
def test_what_looks_like_a_loop_and_is_none(events: list[Event]) -> None:
    """Nothing is said of those."""
    assert codes(*events) == []


@pytest.mark.parametrize("limit", ["MAX_COPYING", "MAX_SOURCES"])
def test_programs_and_topics_that_are_remembered_are_bounded(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a limit a program is not looked at."""
    module: ModuleType = copy_loops
    monkeypatch.setattr(module, limit, 0)
    assert codes(*rounds()) == []
