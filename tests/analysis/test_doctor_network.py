"""Packets that a bad network repeats."""

from __future__ import annotations

import pytest

from kwiresniff.analysis.doctor.troubles import patience
from kwiresniff.model import Connection, Event, Problem, Unacknowledged
from tests.support.exchanges import START_NS, exchange
from tests.support.incidents import BROKER, CLIENT, SECOND, closed, codes, findings, lost


def test_syns_sent_again_are_told_by_broker() -> None:
    """When they are more than one in twenty."""
    late = [closed(number, "client", bytes=[9, 9], syn_retransmits=1) for number in range(3)]
    (found,) = findings(*late)
    assert (found.code, found.severity, found.subject) == ("syn_retransmits", "warning", BROKER)
    others = [closed(100 + number, "client", number * SECOND, bytes=[9, 9]) for number in range(100)]
    for one in others:
        one.first_ns = one.closed_ns * 1
        one.client_id = f"c{one.id}"
    assert [code for code, _ in codes(*late, *others)] == []


def test_few_packets_sent_twice_may_be_probes() -> None:
    """Of 2,000 packets 1.4 % are good to know, 3 % are a bad network, 2 % if some are sent again in each direction."""
    for again, severity in (([28, 0], "info"), ([60, 0], "warning"), ([50, 0], "info"), ([25, 25], "warning")):
        on = closed(1, "client", bytes=[9, 9], packets=[1000, 1000], retransmits=again)
        (found,) = findings(on)
        assert (found.code, found.severity, found.count) == ("retransmits", severity, sum(again))


def test_what_the_network_doubles_is_not_lost() -> None:
    """All that came again are copies, or nearly all."""
    doubled = closed(1, "client", bytes=[9, 9], packets=[1000, 1000], retransmits=[60, 60], copies=(60, 60))
    assert findings(doubled) == []
    doubled.copies = (50, 50)
    doubled.retransmits = [80, 80]
    assert findings(doubled)[0].title.startswith("3.0% of the packets are sent twice (30 to the broker, 30 to the")


def test_a_long_way_is_no_time_of_the_broker() -> None:
    """The shortest handshake counts; what remains of an answer is judged."""
    far = [closed(number, "client", path_ns=ns * 1_000_000, bytes=[9, 9]) for number, ns in ((1, 700), (2, 650))]
    late = [exchange("ListOffsets", 2, 7, latency_ns=1_200_000_000, response={}, on=far[0]) for _ in range(25)]
    (found,) = findings(*late, *far)
    assert (found.code, found.severity, found.subject) == ("long_path", "warning", f"10.0.0.5 to {BROKER}")
    assert found.numbers["round_trip_ns"] == 650_000_000 and "650 ms" in found.title
    far[0].path_ns = 100_000_000
    assert {one.code for one in findings(*late, far[0])} == {"long_path", "slow"}
    assert codes(closed(1, "client", path_ns=20_000_000, bytes=[9, 9])) == [("long_path", "info")]
    near = closed(3, "client", path_ns=400_000, bytes=[9, 9])
    assert codes(far[1], near) == [], "the machine was busy"


def test_a_capture_that_has_packets_twice_shows_no_bad_network() -> None:
    """All came again at once, as where two interfaces are captured; one that was sent again came late."""
    copies = closed(1, "client", bytes=[9, 9], packets=[100, 100], retransmits=[30, 30], captured_twice=60)
    (found,) = findings(copies)
    assert (found.code, found.severity, found.numbers) == ("captured_twice", "info", {"connections": 1, "of": 1})
    late = closed(1, "client", bytes=[9, 9], packets=[100, 100], retransmits=[30, 30], captured_twice=6)
    assert codes(late) == [("retransmits", "warning")]


def test_segments_lost_before_the_capture_point_count_by_direction() -> None:
    """Beside the client nothing is seen twice of what was lost on its way there."""
    on = closed(1, "client", packets=[200, 200], retransmits=[3, 0], recovered=[0, 20])
    (found,) = findings(on)
    assert (found.code, found.severity, found.subject) == ("retransmits", "warning", f"10.0.0.5 to {BROKER}")
    assert (found.numbers["per_thousand"], found.numbers["to_broker"], found.numbers["to_client"]) == (57, 3, 20)
    assert "3 to the broker, 20 to the client" in found.title


def path(number: int, host: int, broker: int, again: int) -> Connection:
    """A connection of 2,000 packets, of which so many were sent again."""
    made = closed(number, "client", broker=f"10.0.0.{broker}:9092", packets=[1000, 1000], bytes=[9, 9])
    made.client = f"10.0.1.{host}:{5000 + number}"
    made.retransmits = [again - again // 3, again // 3]
    return made


@pytest.mark.parametrize(
    ("lost", "subjects", "where"),
    [
        pytest.param(
            {(1, 1): 60, (1, 2): 2, (2, 1): 70, (2, 2): 3}, ["10.0.1.1, 10.0.1.2 to 10.0.0.1:9092"], "only", id="broker"
        ),
        pytest.param(
            {(1, 1): 60, (1, 2): 50, (2, 1): 1, (2, 2): 0},
            ["10.0.1.1 to 10.0.0.1:9092, 10.0.0.2:9092"], "side of the client's host 10.0.1.1", id="host",
        ),
        pytest.param(
            {(1, 1): 15, (1, 2): 14, (2, 1): 1, (2, 2): 0},
            ["10.0.1.1 to 10.0.0.1:9092, 10.0.0.2:9092"], "side of the client's host 10.0.1.1", id="few of each",
        ),
        pytest.param({(1, 1): 60, (1, 2): 50}, ["10.0.1.1 to 10.0.0.1:9092, 10.0.0.2:9092"], "alike", id="one host"),
        pytest.param({(1, 1): 60}, ["10.0.1.1 to 10.0.0.1:9092"], "", id="nothing to compare with"),
        pytest.param({(1, 1): 9, (1, 2): 0, (2, 1): 0, (2, 2): 0}, [], "", id="chance"),
    ],
)  # fmt: skip
def test_paths_that_lose_packets_are_compared(
    lost: dict[tuple[int, int], int], subjects: list[str], where: str
) -> None:
    """Paths to one broker, or from one host, that lose several times as much as the others are told as that."""
    events = [path(number, *ends, again) for number, (ends, again) in enumerate(lost.items(), 1)]
    found = findings(*events)
    assert [one.subject for one in found] == subjects
    assert all(one.code == "retransmits" and where in one.title for one in found)


def slow(number: int, host: str, broker: str, bytes_per_second: int) -> list[Event]:
    """An answer that took 6 s from its first byte to its last, and the end of its connection."""
    on = closed(number, "client", 60 * SECOND, broker=broker, packets=[200, 400], bytes=[9, 9])
    on.client = f"{host}:{5000 + number}"
    one = exchange(request={}, response={}, response_bytes=6 * bytes_per_second, on=on, client_id="warehouse")
    assert one.response is not None
    one.response.last_ns = one.response.first_ns + 6 * SECOND
    return [one, on]


def test_several_brokers_that_are_slow_to_one_client_are_one_finding() -> None:
    """With what came together, and whether others are slow with the same brokers."""
    brokers = [f"10.0.0.{number}:9092" for number in (1, 2, 3)]
    events = [event for number, broker in enumerate(brokers, 1) for event in slow(number, CLIENT, broker, 100_000)]
    (found,) = findings(*events)
    assert (found.code, found.severity, found.subject, found.count) == (
        "slow_transfer", "warning", f"warehouse {CLIENT}", 3,
    )  # fmt: skip
    assert found.numbers["together_bytes_per_second"] == 300_000 and "not slow" not in found.title
    events[1].recovered = [0, 20]  # type: ignore[union-attr]
    (found,) = findings(*events)
    assert found.title.endswith("20 segments were lost on the way to it") and "takes no more" in found.remedy


@pytest.mark.parametrize(("path_ms", "is_told"), [(None, False), (2, False), (60, True), (900, False)])
def test_what_passes_in_a_round_trip_may_be_the_window_of_the_client(path_ms: int | None, is_told: bool) -> None:
    """At 100,000 bytes a second 6,000 pass in 60 ms; 90,000 are more than a window without scaling, 200 than any."""
    events = [event for number in (1, 2, 3) for event in slow(number, CLIENT, BROKER, 100_000)]
    for one in events[1::2]:
        one.path_ns = path_ms * 1_000_000 if path_ms is not None else None  # type: ignore[union-attr]
    (found,) = [one for one in findings(*events) if one.code == "slow_transfer"]
    assert ("receive.buffer.bytes" in found.remedy) == is_told
    assert ("which is 6,000 bytes in the 60 ms there and back" in found.title) == is_told


def test_requests_that_take_long_to_be_sent_are_told_by_their_direction() -> None:
    """A producer whose link is narrow towards two brokers: 6 s for each request."""
    events: list[Event] = []
    for number in range(4):
        on = closed(number + 1, "client", 60 * SECOND, broker=f"10.0.0.{number % 2 + 1}:9092", bytes=[9, 9])
        one = exchange("Produce", 0, 9, request={}, response={}, request_bytes=300_000, on=on, client_id="uploader")
        assert one.request is not None and one.response is not None
        one.request.last_ns += 6 * SECOND
        one.response.first_ns, one.response.last_ns = (
            ns + 6 * SECOND for ns in (one.response.first_ns, one.response.last_ns)
        )
        events += [one, on]
    (found,) = findings(*events)
    assert (found.code, found.severity, found.subject) == ("slow_transfer", "warning", f"uploader {CLIENT}")
    assert found.numbers["direction"] == "request" and "send a request to" in found.title
    assert f"from {CLIENT} takes no more" in found.remedy


@pytest.mark.parametrize(("free_s", "expected"), [(0, ["slow_transfer"]), (5.5, [])])
def test_a_request_that_waits_in_the_sockets_behind_another_has_no_narrow_path(
    free_s: float, expected: list[str]
) -> None:
    """It begins to be sent at once, and the broker reads it when it has answered the one before: after 0 or 5.5 s."""
    on = closed(1, "client", 60 * SECOND, bytes=[9, 9])
    events: list[Event] = []
    for number in range(3):
        start_ns = START_NS + number * 10 * SECOND
        before = exchange("Produce", 0, 9, request={}, response={}, on=on, start_ns=start_ns - SECOND)
        behind = exchange("Produce", 0, 9, request={}, response={}, request_bytes=300_000, on=on, start_ns=start_ns)
        assert before.response is not None and behind.request is not None and behind.response is not None
        before.response.first_ns = before.response.last_ns = start_ns + int(free_s * SECOND)
        behind.request.last_ns += 6 * SECOND
        behind.response.first_ns = behind.response.last_ns = behind.request.last_ns + SECOND // 100
        events += [before, behind]
    assert [one.code for one in findings(*events, on) if one.code == "slow_transfer"] == expected


def test_an_answer_that_was_still_coming_is_not_unanswered() -> None:
    """A client that leaves in the middle of a slow answer did not wait for its beginning; of one that had stopped
    coming long before it did."""
    on = closed(1, "client", 20 * SECOND, bytes=[200, 900_000], packets=[200, 700])
    details = {"connection": 1, "size_bytes": 2_000_000, "present_bytes": 500_000}
    begun_ns = START_NS + 10 * SECOND
    problem = Problem("incomplete_response", "cut off", packet=9, timestamp_ns=begun_ns, details=details)
    asked = lost(on, "Fetch", 1, 13, start_ns=begun_ns - SECOND)
    assert codes(problem, asked, on) == [("slow_transfer", "info")]
    details["present_bytes"] = 20_000
    assert "slow_transfer" not in {code for code, _ in codes(problem, asked, on)}


def stuck(number: int, opened_s: int, *, size: int = 1448, again: int = 5, back: int = 90) -> Connection:
    """A connection whose last segment did not arrive, from a second after it was opened on."""
    lost = Unacknowledged(0, size, again, 10 * number, START_NS + (opened_s + 1) * SECOND)
    return closed(
        number, "client", 9 * SECOND, first_ns=START_NS + opened_s * SECOND, bytes=[99, back], unacknowledged=lost
    )


def test_full_segments_that_never_arrive_are_a_narrow_path() -> None:
    """Where another connection was opened after one had got stuck, and was answered."""
    (found,) = findings(stuck(1, 0), stuck(2, 3))
    assert (found.code, found.severity, found.subject) == ("path_mtu", "error", f"10.0.0.5 to {BROKER}")
    assert (found.numbers["size_bytes"], found.numbers["retransmits"], found.count) == (1448, 10, 2)
    assert codes(stuck(1, 0)) == [("data_lost", "warning")]
    gone = [("data_lost", "error")]
    assert codes(stuck(1, 0), stuck(2, 3, back=0)) == gone, "a host that is down answers nothing"
    assert codes(stuck(1, 0), stuck(2, 0)) == gone, "both were open when the first segment was lost"
    assert codes(stuck(1, 0, size=600), stuck(2, 3, size=600)) == gone
    assert codes(stuck(1, 0, again=2), stuck(2, 3, again=2)) == []


def forgotten(number: int, opened_s: int, idle_s: int) -> list[Event]:
    """A connection that is answered once, and whose next request, so much later, never arrives."""
    lost_ns = START_NS + (opened_s + idle_s) * SECOND
    on = stuck(number, opened_s, size=200)
    on.unacknowledged = Unacknowledged(0, 200, 5, 10 * number, lost_ns)
    on.closed_ns = lost_ns + 8 * SECOND
    answered = exchange("Produce", 0, 9, request={}, response={}, start_ns=START_NS + opened_s * SECOND, on=on)
    return [answered, lost(on, "Produce", 0, 9, start_ns=lost_ns), on]


def test_what_is_lost_after_silence_was_forgotten_on_the_way() -> None:
    """Of two connections, the later of which had worked when the first was lost already; never of one in use."""
    (found,) = findings(*forgotten(1, 0, 6), *forgotten(2, 20, 7))
    assert (found.code, found.severity, found.subject) == ("idle_forgotten", "error", f"10.0.0.5 to {BROKER}")
    assert "after 5 s or more without traffic is lost" in found.title and "twice" in found.title
    assert ("idle_forgotten", "error") not in codes(*forgotten(1, 0, 6))
    busy = codes(*forgotten(1, 0, 6), *forgotten(2, 20, 7), *forgotten(3, 40, 0))
    assert ("data_lost", "error") in busy and ("idle_forgotten", "error") not in busy
    at_once = codes(*forgotten(1, 0, 20), *forgotten(2, 1, 19))
    assert ("idle_forgotten", "error") not in at_once, "all were open when the path broke"


def unfinished(number: int, opened_s: int, *, largest: int = 880, present: int = 71) -> tuple[Problem, Connection]:
    """A connection on which an answer of 65,610 bytes began a second after it was opened on, and its client left 9 s
    after that."""
    since_ns = START_NS + (opened_s + 1) * SECOND
    where = {"connection": number, "size_bytes": 65_610, "present_bytes": present, "unacknowledged": True}
    problem = Problem("incomplete_response", "cut off", packet=10 * number, timestamp_ns=since_ns, details=where)
    on = closed(
        number,
        "client",
        (opened_s + 10) * SECOND,
        first_ns=START_NS + opened_s * SECOND,
        bytes=[99, 900],
        packets=[8, 8],
        largest_segments=[99, largest],
    )
    return problem, on


def test_answers_that_begin_and_never_end_are_a_narrow_path() -> None:
    """Where none of the later connections had a segment of full size; the client, not the capture, lacks the rest."""
    first, second = unfinished(1, 0, largest=1448), unfinished(2, 12)
    (found,) = findings(*first, *second)
    assert (found.code, found.severity, found.subject) == ("path_mtu", "error", f"{BROKER} to 10.0.0.5")
    assert (found.numbers["largest_bytes"], found.count, found.evidence[0]) == (880, 2, (10, START_NS + SECOND))
    assert codes(*first, *unfinished(2, 12, largest=1448)) == [("data_lost", "error")], "large segments arrive later"
    assert codes(*first) == [("data_lost", "warning")]
    second[1].closed_by = "broker"
    assert codes(*second) == [], "a broker that goes ends no answer"
    second[1].closed_by, second[1].closed_ns = "client", START_NS + 13 * SECOND + SECOND // 2
    assert codes(*second) == [], "who leaves at once was not waiting"
    assert first[0].details is not None
    del first[0].details["unacknowledged"]
    assert codes(*first) == [], "the capture may have lost the rest"


@pytest.mark.parametrize(
    ("packets", "again", "back", "expected"),
    [
        pytest.param(300, 10, 2, [("retransmits", "warning")], id="one in thirty"),
        pytest.param(300, 10, 1, [], id="one way"),
        pytest.param(300, 9, 2, [], id="too few to tell"),
        pytest.param(400, 11, 2, [], id="less than that"),
    ],
)
def test_packets_lost_all_the_time_show_on_short_connections(
    packets: int, again: int, back: int, expected: list[tuple[str, str]]
) -> None:
    """Three in a hundred, and ten at least."""
    assert codes(closed(1, "client", packets=[packets - 50, 50], retransmits=[again - back, back])) == expected


def broken_off(number: int, size: int = 3_000_000, waited_ns: int = 20_000_000, by: str = "client") -> list[Event]:
    """An answer that has begun half a second after the connection was opened, which ends a while later."""
    begun_ns = START_NS + number * SECOND
    details = {"connection": number, "size_bytes": size, "present_bytes": 15_000}
    problem = Problem("incomplete_response", "cut off", packet=10 * number, timestamp_ns=begun_ns, details=details)
    return [problem, closed(number, by, number * SECOND + waited_ns)]


@pytest.mark.parametrize(
    ("endings", "is_told"),
    [
        pytest.param([broken_off(one) for one in (1, 2, 3)], True, id="three times"),
        pytest.param([broken_off(one) for one in (1, 2)], False, id="twice"),
        pytest.param([broken_off(one, one * 1_000_000) for one in (1, 2, 3)], False, id="of several sizes"),
        pytest.param([broken_off(one, 5_000) for one in (1, 2, 3)], False, id="small"),
        pytest.param([broken_off(one, waited_ns=2 * SECOND) for one in (1, 2, 3)], False, id="it waited for the rest"),
        pytest.param([broken_off(one, by="broker") for one in (1, 2, 3)], False, id="closed by the broker"),
    ],
)
def test_a_client_that_takes_no_answer_as_large_is_told(endings: list[list[Event]], is_told: bool) -> None:
    """It closes the connection as soon as the answer has begun, again and again."""
    found = findings(*[event for ending in endings for event in ending])
    assert [(one.code, one.severity) for one in found] == [("answer_too_large", "error")] * is_told
    for one in found:
        assert (one.subject, one.numbers["size_bytes"], one.count) == ("billing-1 10.0.0.5", 3_000_000, 3)


def test_clients_that_close_early_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the limit no answer is remembered."""
    monkeypatch.setattr(patience, "MAX_CONNECTIONS", 0)
    assert findings(*[event for one in (1, 2, 3) for event in broken_off(one)]) == []
