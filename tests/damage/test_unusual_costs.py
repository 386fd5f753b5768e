"""Messages of the smallest parts that they can have: where something is unusual in each, a byte costs little more."""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from struct import pack
from time import process_time
from typing import TypeAlias

import pytest

from kwiresniff import schema
from kwiresniff.base.fastint import COMPILED
from kwiresniff.base.needs import Needs
from kwiresniff.codec.folding import dissect_shown
from kwiresniff.session import Analyzer
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response
from tests.support.encoding import encode_record_set
from tests.support.encoding.primitives import write_uvarint
from tests.support.events import analyze_with
from tests.support.made_up_bodies import batch

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not COMPILED, reason="interpreted, nothing of it is quick")]

#: How much more a byte may cost than one of the same message with nothing unusual in it. What is held here took 6 to 30
#: times as long once, and takes up to twice as long.
BOUND = 4
#: Where more is bought by it: of a batch whose checksum is wrong all records are looked through for what else is.
#: It took 17 times as long. Each of a group's subscriptions is opened by itself, which takes 2 µs.
MORE = {"checksums that are wrong": 8, "subscriptions of members": 20}
SIZE = 200_000
ROUNDS = 5

#: The subscription of a consumer to no topics, without data of its assignor.
NOTHING = pack(">hii", 0, 0, -1)


def elements(element: bytes) -> bytes:
    """A compact array, of as many elements as fit."""
    count = SIZE // len(element)
    return write_uvarint(count + 1) + element * count


def conversation(api_key: int, version: int, body: bytes, answer: bytes, tags: bytes = b"") -> Wire:
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for way, frame in enumerate((request(api_key, version, 2, body, tags=b"\0"), response(2, answer, tags=tags))):
        for at in range(0, len(frame), 60_000):
            wire.send(way, frame[at : at + 60_000])
    return wire


def join(metadata: bytes) -> Wire:
    """JoinGroup v9 of a consumer with thousands of protocols."""
    protocol = b"\1" + bytes([len(metadata) + 1]) + metadata + b"\0"
    head = b"\2g" + pack(">ii", 10_000, 10_000) + b"\1\0" + b"\x09consumer"
    answer = pack(">ihi", 0, 0, 1) + b"\0\1\1\0\1\1\0"
    return conversation(11, 9, head + elements(protocol) + b"\1\0", answer, b"\0")


def described(*, cut: int = 0) -> Wire:
    """DescribeUserScramCredentials v0 of thousands of users."""
    body = elements(b"\2a\0") + b"\0"
    return conversation(50, 0, body[: len(body) - cut], pack(">ih", 0, 0) + b"\1\1\0", b"\0")


def in_transaction(topic: bytes) -> Wire:
    """DescribeTransactions v0 of one transaction with thousands of topics."""
    head = b"\2\0\0\2t\2s" + pack(">iqqh", 0, 0, 1, 0)
    topics = elements(b"\2" + topic + b"\1\0")
    return conversation(65, 0, b"\2\2t\0", pack(">i", 0) + head + topics + b"\0\0", b"\0")


def offered(tags: bytes) -> Wire:
    """ApiVersions v3 of thousands of APIs."""
    apis = elements(pack(">hhh", 1, 0, 3) + tags)
    return conversation(18, 3, b"\1\1\0", b"\0\0" + apis + pack(">i", 0) + b"\0")


def altered(api_key: int, behind: bytes = b"") -> Wire:
    """AlterConfigs v2, or CreatePartitions v3 that has no secrets, of thousands of topics."""
    body = elements(b"\2\2t\1\0" if api_key == 33 else b"\2t\0\0\0\1\1\0") + b"\0" * (2 if api_key == 33 else 6)
    return conversation(api_key, 2 if api_key == 33 else 3, body + behind, pack(">i", 0) + b"\1\0", b"\0")


def quorum(topics: int) -> Wire:
    """BeginQuorumEpoch v1 of so many topics without partitions, each of two values."""
    return conversation(53, 1, bytes(9), bytes(2) + write_uvarint(topics + 1) + b"\1\1\0" * topics + b"\0", b"\0")


def handshakes(count: int) -> Wire:
    """SaslHandshake v1 over and over, of which a connection has one, or one an hour."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number in range(2, 2 + count):
        wire.up(request(17, 1, number, pack(">h", 5) + b"PLAIN")).down(response(number, pack(">hi", 0, 0)))
    return wire


def produced(value: bytes) -> Wire:
    """Produce v3 by the thousand, of ten records each, the first one with this value under the checksum of another."""
    records = encode_record_set([batch(*[b"a"] * 10)])
    at = records.index(b"\2a\0") + 1
    body = b"\xff\xff" + pack(">hii", 1, 1000, 1) + b"\0\1t" + pack(">iii", 1, 0, len(records))
    body += records[:at] + value + records[at + 1 :]
    answer = pack(">i", 1) + b"\0\1t" + pack(">iihqqi", 1, 0, 0, 0, -1, 0)
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number in range(2, 1_002):
        wire.up(request(0, 3, number, body)).down(response(number, answer))
    return wire


def errors() -> Analyzer:
    return Analyzer("errors")


def records() -> Analyzer:
    return Analyzer("records")


def bodies() -> Analyzer:
    return Analyzer("bodies")


def digests() -> Analyzer:
    return Analyzer(Needs("bodies", digests=True))


def by_the_thousand(asked: bytes, answered: bytes) -> Wire:
    """Small exchanges of JoinGroup v9."""
    wire = Wire().open().up(heartbeat(1)).down(heartbeat_response(1))
    for number in range(2, 2_002):
        wire.up(request(11, 9, number, asked, "", b"\0")).down(response(number, answered, b"\0"))
    return wire


Pair: TypeAlias = tuple[Callable[[], Analyzer], Callable[[], Wire], Callable[[], Wire]]
PAIRS: dict[str, Pair] = {
    "a message that is cut": (bodies, described, lambda: described(cut=4)),
    "texts that are none": (bodies, lambda: in_transaction(b"a"), lambda: in_transaction(b"\xff")),
    "tagged fields that nobody knows": (bodies, lambda: offered(b"\0"), lambda: offered(b"\1\x64\0")),
    "subscriptions of members": (bodies, lambda: join(b"\xff" * len(NOTHING)), lambda: join(NOTHING)),
    "what may be a secret": (digests, lambda: altered(37), lambda: altered(33)),
    "a secret that may have moved": (digests, lambda: altered(33), lambda: altered(33, b"\0")),
    "one authentication after the other": (errors, lambda: by_the_thousand(b"", b""), lambda: handshakes(2_000)),
    "checksums that are wrong": (records, lambda: produced(b"a"), lambda: produced(b"b")),
    "as many values as there may be": (digests, lambda: quorum(50_000), lambda: quorum(400_000)),
}


def seconds_a_byte(make: Callable[[], Analyzer], wire: Wire) -> float:
    size = sum(segment[8] - segment[7] for segment in wire.segments)
    began = process_time()
    for _ in analyze_with(make(), wire.segments):
        pass
    return (process_time() - began) / size


@pytest.mark.parametrize("what", PAIRS)
def test_what_is_unusual_costs_little_more_than_what_is_not(what: str) -> None:
    """Medians of measurements in turns, since other processes may have the machine's caches meanwhile."""
    make, *wires = PAIRS[what]
    usual, unusual = (wire() for wire in wires)
    gc.disable()
    try:
        seconds_a_byte(make, usual), seconds_a_byte(make, unusual)  # whatever is made for the first time
        measured = [(seconds_a_byte(make, usual), seconds_a_byte(make, unusual)) for _ in range(ROUNDS)]
    finally:
        gc.enable()
    usual_cost, cost = (median(costs) for costs in zip(*measured, strict=True))
    assert cost < MORE.get(what, BOUND) * usual_cost, f"{cost / usual_cost:.1f} times"


def seconds_to_fold(text: bytes) -> float:
    """What a tree needs of ListGroups v5 that asks for groups of thousands of types."""
    frame = b"\1" + elements(b"\2" + text) + b"\0"
    began = process_time()
    dissect_shown(schema.message(16, 5, "request"), frame, 0)
    return process_time() - began


def test_a_tree_looks_at_texts_only_until_enough_are_none() -> None:
    """The first are shown, and a hundred are told; to find that out of each would take seventy times as long."""
    seconds_to_fold(b"a"), seconds_to_fold(b"\xff")
    measured = [(seconds_to_fold(b"a"), seconds_to_fold(b"\xff")) for _ in range(ROUNDS)]
    usual_cost, cost = (median(costs) for costs in zip(*measured, strict=True))
    assert cost < BOUND * usual_cost, f"{cost / usual_cost:.1f} times"
