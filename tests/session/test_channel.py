"""Of each wait: queued, held back on purpose, or the broker's own time; on conversations made by hand."""

from __future__ import annotations

from struct import pack
from typing import Self

import pytest

from kwiresniff.model import ACK, SYN, Exchange, Message
from kwiresniff.session.apis import api_facts
from kwiresniff.session.delays import OWN_NS
from kwiresniff.session.throttle_time import throttle_time_ms
from tests.support.conversation import (
    Wire,
    api_versions_v0_response,
    events,
    exchanges,
    heartbeat,
    heartbeat_response,
    request,
    response,
    string,
)
from tests.support.encoding import encoder

MS = 1_000_000


def split(exchange: Exchange) -> tuple[int | None, int | None, int | None]:
    """Queued, held and the broker's own time in milliseconds, of whole ones."""
    parts = exchange.queued_ns, exchange.held_ns, exchange.broker_ns
    return tuple(None if part is None else part // MS for part in parts)  # type: ignore[return-value]


class Clocked(Wire):
    """A conversation whose segments come when the test says so."""

    def at(self, ms: float) -> Self:
        """The next segment comes at this time."""
        self.next_ns = round(ms * MS)
        return self

    def send(self, *args: object, **options: object) -> None:
        super().send(*args, **options)  # type: ignore[arg-type]
        if self.segments:
            last = self.segments[-1]
            self.segments[-1] = (last[0], getattr(self, "next_ns", 0), *last[2:])


def opened() -> Clocked:
    wire = Clocked().at(0)
    wire.open()
    return wire


def fetch(correlation_id: int, max_wait_ms: int = 500, min_bytes: int = 1, version: int = 4) -> bytes:
    """Fetch v4, and with v15 in a request whose header has tags, without topics."""
    wait = pack(">ii", max_wait_ms, min_bytes)
    if version == 4:
        return request(1, 4, correlation_id, pack(">i", -1) + wait + pack(">ibi", 1 << 20, 0, 0))
    assert version == 15
    tail = pack(">ib", 1 << 20, 0) + pack(">ii", 0, -1) + b"\x01\x01\x01\x00"
    return request(1, 15, correlation_id, wait + tail, tags=b"\x00")


def fetched(correlation_id: int, records: bytes = b"", throttle_time_ms: int = 0) -> bytes:
    """Its answer v4: one partition of a topic."""
    partition = pack(">ihqqi", 0, 0, 7, 7, -1) + pack(">i", len(records)) + records
    body = pack(">ii", throttle_time_ms, 1) + string("t") + pack(">i", 1) + partition
    return response(correlation_id, body)


def throttled_heartbeat(correlation_id: int, throttle_time_ms: int) -> bytes:
    return response(correlation_id, pack(">ih", throttle_time_ms, 0))


def heartbeat_of(version: int, correlation_id: int) -> bytes:
    return request(12, version, correlation_id, string("group") + pack(">i", 5) + string("member"))


def produced(correlation_id: int, throttle_time_ms: int) -> bytes:
    """The answer to a Produce v7 of nothing, whose throttle time comes last."""
    return response(correlation_id, pack(">ii", 0, throttle_time_ms))


def produce(correlation_id: int, acks: int = -1) -> bytes:
    return request(0, 7, correlation_id, string(None) + pack(">hii", acks, 1000, 0))


DEPTHS = ("errors", "bodies", "records")


@pytest.mark.parametrize("depth", DEPTHS)
def test_one_request_at_a_time_is_all_the_brokers(depth: str) -> None:
    """Nothing is queued where each request is sent after the answer before it."""
    wire = opened()
    for n in range(3):
        wire.at(10 * n).up(heartbeat(n))
        wire.at(10 * n + 4).down(heartbeat_response(n))
    assert [split(one) for one in exchanges(events(wire, depth=depth))] == [(0, 0, 4)] * 3


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_pipelined_request_queues_until_the_answer_before_has_gone(depth: str) -> None:
    """Three requests at once, answered 2, 5 and 9 ms later: the broker needed 2, 3 and 4 ms."""
    wire = opened()
    wire.at(0).up(*(heartbeat(n) for n in range(3)))
    for n, ms in enumerate((2, 5, 9)):
        wire.at(ms).down(heartbeat_response(n))
    assert [split(one) for one in exchanges(events(wire, depth=depth))] == [(0, 0, 2), (2, 0, 3), (5, 0, 4)]


def far(path_ms: float) -> Clocked:
    """A connection whose handshake takes so long to the broker and back."""
    wire = Clocked().at(0)
    wire.send(0, flags=SYN)
    wire.at(path_ms).send(1, flags=SYN | ACK)
    wire.send(0)
    return wire


@pytest.mark.parametrize("depth", DEPTHS)
def test_the_path_is_no_time_of_the_broker(depth: str) -> None:
    """With 80 ms there and back, three requests at 100, 105 and 110 ms are with the broker at 140, 145 and 150: it
    answers 2, 6 and 6 ms later, and the third has waited 1 ms of these for the second."""
    wire = far(80)
    for n, ms in enumerate((100, 105, 110)):
        wire.at(ms).up(heartbeat(n))
    for n, ms in enumerate((182, 191, 196)):
        wire.at(ms).down(heartbeat_response(n))
    found = exchanges(events(wire, depth=depth))
    assert [one.path // MS for one in found] == [80, 80, 80]
    assert [split(one) for one in found] == [(0, 0, 2), (0, 0, 6), (1, 0, 5)]


def test_a_response_that_comes_sooner_than_the_path_shortens_it() -> None:
    """The machine was busy at the handshake: 30 ms of the 80 are what the first response took."""
    wire = far(80)
    wire.at(100).up(heartbeat(1))
    wire.at(130).down(heartbeat_response(1))
    wire.at(200).up(heartbeat(2))
    wire.at(240).down(heartbeat_response(2))
    assert [(one.path // MS, *split(one)) for one in exchanges(events(wire))] == [(30, 0, 0, 0), (30, 0, 0, 10)]


def test_a_short_path_is_part_of_the_brokers_time() -> None:
    """Below 2 ms a handshake shows how busy the machine was, rather than the path."""
    for path_ms, expected in ((1.9, (0, 0, 0, 10)), (2, (2, 0, 0, 8))):
        wire = far(path_ms)
        wire.at(100).up(heartbeat(1))
        wire.at(110).down(heartbeat_response(1))
        (found,) = exchanges(events(wire))
        assert (found.path // MS, *split(found)) == expected


def test_the_answer_before_has_gone_with_its_last_byte() -> None:
    """An answer in two segments, 1 and 6 ms after the requests, keeps the next request waiting for 6."""
    wire = opened()
    wire.at(0).up(heartbeat(1), heartbeat(2))
    answer = heartbeat_response(1)
    wire.at(1).down(answer[:5])
    wire.at(6).down(answer[5:])
    wire.at(8).down(heartbeat_response(2))
    assert [split(one) for one in exchanges(events(wire))] == [(0, 0, 1), (6, 0, 2)]


def test_an_answer_without_its_request_keeps_the_next_waiting_all_the_same() -> None:
    """The capture began after the first request: what follows is queued until its answer has gone."""
    wire = opened()
    wire.at(0).up(heartbeat(1))
    wire.at(1).down(heartbeat_response(1))
    wire.at(2).up(heartbeat(2), drop=True)
    wire.at(3).up(heartbeat(3))
    wire.at(9).down(heartbeat_response(2))
    wire.at(10).down(heartbeat_response(3))
    by_id = {one.correlation_id: one for one in exchanges(events(wire))}
    assert by_id[2].broker_ns is None
    assert split(by_id[3]) == (6, 0, 1)


def test_who_answers_out_of_order_serves_several_at_a_time() -> None:
    """A request that a later one overtook was not queued behind that."""
    wire = opened()
    wire.at(0).up(heartbeat(1))
    wire.at(1).up(heartbeat(2))
    wire.at(3).down(heartbeat_response(2))
    wire.at(9).down(heartbeat_response(1))
    by_id = {one.correlation_id: one for one in exchanges(events(wire))}
    assert split(by_id[2]) == (0, 0, 2)
    assert split(by_id[1]) == (0, 0, 9)


def test_after_lost_answers_the_queue_is_not_known() -> None:
    """Requests 1 and 2 at once, the first answer lost: when it had gone nobody can say. The next is known again."""
    wire = opened()
    wire.at(0).up(heartbeat(0)).at(1).down(heartbeat_response(0))
    wire.at(2).up(heartbeat(1), heartbeat(2))
    wire.at(5).down(heartbeat_response(1), drop=True)
    wire.at(8).down(heartbeat_response(2))
    wire.at(20).up(heartbeat(3)).at(23).down(heartbeat_response(3))
    wire.at(30).up(heartbeat(4)).at(33).down(heartbeat_response(4))
    by_id = {one.correlation_id: one for one in exchanges(events(wire)) if one.response is not None}
    assert split(by_id[2]) == (None, None, None)
    assert split(by_id[4]) == (0, 0, 3)


def test_an_unanswered_request_has_no_parts() -> None:
    """Neither has a Produce with acks=0, which nobody answers."""
    wire = opened()
    wire.at(0).up(produce(1, acks=0), heartbeat(2))
    assert [split(one) for one in exchanges(events(wire))] == [(None, None, None)] * 2


def test_a_produce_without_an_answer_keeps_nobody_in_the_queue() -> None:
    """What comes behind acks=0 has no answer before it to wait for."""
    wire = opened()
    wire.at(0).up(produce(1, acks=0), heartbeat(2)).at(3).down(heartbeat_response(2))
    assert split(exchanges(events(wire))[1]) == (0, 0, 3)


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_muted_channel_is_a_queue(depth: str) -> None:
    """Throttled for 200 ms (KIP-219), the next request is read when they are over, and answered 3 ms later."""
    wire = opened()
    wire.at(0).up(heartbeat_of(2, 1), heartbeat_of(2, 2))
    wire.at(1).down(throttled_heartbeat(1, 200))
    wire.at(204).down(throttled_heartbeat(2, 0))
    first, second = exchanges(events(wire, depth=depth))
    assert split(first) == (0, 0, 1)
    assert split(second) == (201, 0, 3)
    assert (second.muted_ns // MS, second.waiting) == (200, "throttled")


def test_the_throttle_time_of_a_produce_comes_last() -> None:
    """Produce tells it behind its topics."""
    wire = opened()
    wire.at(0).up(produce(1), produce(2)).at(1).down(produced(1, 50)).at(53).down(produced(2, 0))
    assert split(exchanges(events(wire))[1]) == (51, 0, 2)


def test_a_mute_that_an_answer_disproves_is_none() -> None:
    """Some that speak Kafka tell of throttling and go on all the same."""
    wire = opened()
    wire.at(0).up(heartbeat_of(2, 1), heartbeat_of(2, 2))
    wire.at(1).down(throttled_heartbeat(1, 2_000_000_000)).at(4).down(throttled_heartbeat(2, 0))
    assert split(exchanges(events(wire))[1]) == (1, 0, 3)


def test_brokers_before_kip_219_hold_the_answer_itself() -> None:
    """Heartbeat v1 was there before 2.0: answered after the time it tells of, that time was the throttling."""
    wire = opened()
    wire.at(0).up(heartbeat_of(1, 1)).at(202).down(throttled_heartbeat(1, 200))
    wire.at(210).up(heartbeat_of(1, 2)).at(211).down(throttled_heartbeat(2, 0))
    first, second = exchanges(events(wire))
    assert (split(first), first.waiting) == ((0, 200, 2), "throttled")
    assert split(second) == (0, 0, 1)


def test_brokers_since_kip_219_never_do() -> None:
    """Heartbeat v2 came with it: an answer that took so long took the broker so long."""
    wire = opened()
    wire.at(0).up(heartbeat_of(2, 1)).at(202).down(throttled_heartbeat(1, 200))
    assert split(exchanges(events(wire))[0]) == (0, 0, 202)


@pytest.mark.parametrize("depth", DEPTHS)
def test_an_empty_fetch_was_held_for_its_own_max_wait(depth: str) -> None:
    """Nothing came for 500 ms; what is beyond them is the broker's, half a millisecond as well as seconds."""
    wire = opened()
    wire.at(0).up(fetch(1)).at(500.5).down(fetched(1))
    wire.at(600).up(fetch(2)).at(4600).down(fetched(2))
    first, second = exchanges(events(wire, depth=depth))
    assert (first.held_ns, first.broker_ns) == (500 * MS, MS // 2)
    assert split(second) == (0, 500, 3500)
    assert first.waiting == second.waiting == "long poll"


def test_a_fetch_that_a_snap_length_cuts_off_was_held_for_nobody_knows_how_long() -> None:
    """Its max_wait_ms is not in the capture; what is answered at once was not held at all."""
    for took_ms, expected in ((500, (0, None, None)), (1, (0, 0, 1))):
        wire = opened()
        asked = fetch(1)
        wire.at(0).up(asked, missing=len(asked) - 19).at(took_ms).down(fetched(1))
        assert split(exchanges(events(wire))[0]) == expected


def test_a_timer_that_strikes_late_holds_a_fetch_until_then() -> None:
    """3 and 9 ms late, of which the broker needs what it takes for a long poll; 12 ms are more than a timer's."""
    wire = opened()
    for n, took_ms in enumerate((503, 509, 512)):
        wire.at(1000 * n).up(fetch(n)).at(1000 * n + took_ms).down(fetched(n))
    late, later, slow = exchanges(events(wire))
    assert (late.broker_ns, late.held_ns) == (OWN_NS, 503 * MS - OWN_NS)
    assert (later.broker_ns, later.held_ns) == (OWN_NS, 509 * MS - OWN_NS)
    assert (slow.broker_ns, slow.held_ns) == (12 * MS, 500 * MS)


def test_data_that_came_when_the_time_was_over_was_waited_for() -> None:
    """A record 4 ms after max_wait_ms met an answer that was held back until then; half a second after, it did not."""
    for took_ms, expected in ((504, (0, 504, 0)), (1000, (0, 0, 1000))):
        wire = opened()
        wire.at(0).up(fetch(1)).at(took_ms).down(fetched(1, b"x"))
        assert split(exchanges(events(wire))[0]) == expected


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_fetch_that_has_enough_after_its_wait_was_not_held_for_it(depth: str) -> None:
    """With as many bytes as were asked for, the time beyond max_wait_ms is a slow broker's; with fewer it is not."""
    for size, expected in ((2000, (0, 0, 900)), (1999, (0, 500, 400))):
        wire = opened()
        wire.at(0).up(fetch(1, min_bytes=2000)).at(900).down(fetched(1, bytes(size)))
        assert split(exchanges(events(wire, depth=depth))[0]) == expected


def test_a_fetch_answered_early_was_held_until_its_data_came() -> None:
    """The broker held it back until there was something to say."""
    wire = opened()
    wire.at(0).up(fetch(1)).at(120).down(fetched(1, b"x"))
    (one,) = exchanges(events(wire))
    assert (split(one), one.waiting) == ((0, 120, 0), "long poll")


def test_with_its_data_a_fetch_took_the_broker_as_long_as_the_quickest() -> None:
    """Nothing is known at first; then 3 ms of an answer at once; what was reckoned so does not count itself."""
    wire = opened()
    for n, (at_ms, took_ms, records) in enumerate([(0, 60, b"x"), (100, 3, b"x"), (200, 60, b"x"), (300, 504, b"")]):
        wire.at(at_ms).up(fetch(n)).at(at_ms + took_ms).down(fetched(n, records))
    wire.at(900).up(fetch(9)).at(960).down(fetched(9, b"x"))
    assert [split(one) for one in exchanges(events(wire))] == [
        (0, 60, 0), (0, 0, 3), (0, 57, 3), (0, 501, 3), (0, 57, 3),
    ]  # fmt: skip


def test_a_large_answer_was_not_waited_for() -> None:
    """More than one batch and what was asked for cannot have come at once: the broker was slow."""
    for size, expected in (((1 << 20) - 100, (0, 60, 0)), ((1 << 20) + 5000, (0, 0, 60))):
        wire = opened()
        wire.at(0).up(fetch(1)).at(60).down(fetched(1, bytes(size)))
        assert split(exchanges(events(wire))[0]) == expected


def test_the_wait_of_a_fetch_begins_when_it_is_read() -> None:
    """Two long polls in a row: the second is queued behind the first, then held itself."""
    wire = opened()
    wire.at(0).up(fetch(1), fetch(2)).at(501).down(fetched(1)).at(1002).down(fetched(2))
    assert [split(one) for one in exchanges(events(wire))] == [(0, 500, 0), (501, 500, 0)]


def test_behind_a_rebalance_a_leave_is_queued() -> None:
    """LeaveGroup waits for the JoinGroup of the same connection, and takes no time itself."""
    wire = opened()
    join = string("g") + pack(">i", 10_000) + string("") + string("consumer") + pack(">i", 0)
    wire.at(0).up(request(11, 0, 1, join)).at(500).up(request(13, 0, 2, string("g") + string("m")))
    joined = pack(">hi", 0, 1) + string("range") + string("m") + string("m") + pack(">i", 0)
    wire.at(1900).down(response(1, joined)).at(1901).down(response(2, pack(">h", 0)))
    first, second = exchanges(events(wire))
    assert (split(first), first.waiting) == ((0, 1900, 0), "rebalance")
    assert (split(second), second.waiting) == ((1400, 0, 1), "")


def test_of_an_answer_before_its_request_no_part_of_the_wait_is_known() -> None:
    """Where the times have them the other way round; the problem says by how much."""
    wire = opened()
    wire.at(0).up(heartbeat(1)).at(1).down(heartbeat_response(1))
    wire.at(9).up(heartbeat(2)).at(8).down(heartbeat_response(2))
    one = exchanges(events(wire))[1]
    assert (one.latency_ns, split(one), one.outcome) == (None, (None, None, None), "ok")
    (problem,) = one.problems
    assert (problem.code, problem.details) == ("response_before_request", {"ahead_ns": MS})


@pytest.mark.parametrize("body", ["0000", "000000", "000001", "00007f", "000002", "00000800120000000400" + "00" * 20])
def test_an_answer_to_api_versions_with_a_wrong_count_tells_no_throttling(body: str) -> None:
    """An error code and the count of entries (one more than there are), which may lead beyond the frame."""
    message = Message(1, 0, 1, 0, 4 + len(body) // 2, bytes(4) + bytes.fromhex(body))
    message.body_offset = 4
    assert throttle_time_ms(api_facts(18, 4), message) == 0


def test_the_bytes_of_a_tagged_field_are_no_throttle_time() -> None:
    """ApiVersions v3 ends with the epoch of the features, here with a zero byte as an empty tag section would."""
    body = {"error_code": 0, "api_keys": [{"api_key": 0, "min_version": 0, "max_version": 9}], "throttle_time_ms": 0}
    raw = encoder(18, 3, "response")({**body, "finalized_features_epoch": 65543 << 8})
    assert raw.endswith(bytes.fromhex("00 010007 00"))
    message = Message(1, 0, 1, 0, 4 + len(raw), bytes(4) + raw)
    message.body_offset = 4
    assert throttle_time_ms(api_facts(18, 3), message) == 0


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_api_versions_refused_in_layout_0_throttles_nobody(version: int) -> None:
    """The last four bytes of layout 0 are a range of versions (KIP-511): neither throttled nor muted afterwards."""
    wire = opened()
    software = b"\x04app\x04one\x00" if version >= 3 else b""
    asked = request(18, version, 1, software, tags=b"\x00" if version >= 3 else b"")
    wire.at(0).up(asked).at(1).down(api_versions_v0_response(1, error_code=35))
    wire.at(2).up(heartbeat(2)).at(4).down(heartbeat_response(2))
    refused, after = exchanges(events(wire))
    assert (split(refused), refused.waiting) == ((0, 0, 1), "")
    assert (split(after), after.waiting) == ((0, 0, 2), "")
