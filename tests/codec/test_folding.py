"""Folded dissections say what the dissector says: it is the reader that they are held to."""

from __future__ import annotations

import gzip
import io
from random import Random
from struct import pack
from typing import Any

import google_crc32c
import pytest

from kwiresniff import schema
from kwiresniff.base.tree_sizes import ELEMENTS_SHOWN, RANGES_SHOWN
from kwiresniff.codec import batch_nodes, dissector, folding
from kwiresniff.codec.dissector import MessageBytes, dissect
from kwiresniff.codec.folding import dissect_shown, front_of, problems_of
from kwiresniff.codec.node_values import plain
from kwiresniff.model import Dissection, Exchange, Message, Node
from kwiresniff.render.tree import TreeWriter
from kwiresniff.schema.types import MessageVersion
from tests.support.encoding import encoder
from tests.support.exchanges import exchange
from tests.support.sample import sampled

DELETE_RECORDS = schema.message("DeleteRecords", 2, "response")


def body(count: int, *, wrong: frozenset[int] = frozenset()) -> bytes:
    """Topics with a partition each, of which some have an error."""
    topics = [
        {
            "name": f"t{index}",
            "partitions": [{"partition_index": 0, "low_watermark": 7, "error_code": 3 if index in wrong else 0}],
        }
        for index in range(count)
    ]
    return bytes(encoder(21, 2, "response")({"throttle_time_ms": 0, "topics": topics}))


def distinct(root: Node) -> int:
    """How many nodes there are in memory."""
    found: set[int] = set()
    todo = [root]
    while todo:
        node = todo.pop()
        found.add(id(node))
        todo += node.children
    return len(found)


def drawn(found: Dissection, frame: bytes) -> str:
    """The tree of a message, as ``decode`` writes it."""
    asked: Exchange = exchange(api_key=21, api_version=2)
    assert asked.response is not None
    message: Message = asked.response
    message.frame, message.size_bytes, message.header_version = frame, len(frame), -1
    out = io.StringIO()
    TreeWriter(out, None, False).write_message(asked, "response", found)
    return out.getvalue()


def check(message: MessageVersion, frame: bytes) -> None:
    """All three ways to fold agree with what is not folded."""
    whole = dissect(message, frame, 0)
    shown = dissect_shown(message, frame, 0)
    assert (shown.problems, shown.end) == (whole.problems, whole.end)
    assert drawn(shown, frame) == drawn(whole, frame)
    assert problems_of(MessageBytes(message, frame, 0, records=True)) == whole.problems
    values = plain(whole.root)
    assert front_of(MessageBytes(message, frame, 0, records=True)) == (values, whole.problems)
    assert not shown.is_whole or plain(shown.root) == values


@pytest.mark.parametrize("wrong", [(), (2,), (20,), (20, 39), range(40), range(12, 25), range(13, 26)], ids=str)
def test_trees_of_long_arrays_are_the_same_folded(wrong: Any) -> None:
    """With errors among the elements that are shown and those that are not, few and many."""
    check(DELETE_RECORDS, body(40, wrong=frozenset(wrong)))


@pytest.mark.parametrize("count", [1, ELEMENTS_SHOWN, ELEMENTS_SHOWN + 2])
@pytest.mark.parametrize("cut", [0, 1, 9])
def test_a_body_of_which_nothing_is_folded_is_read_with_its_tree(count: int, cut: int) -> None:
    """Whole or cut; as soon as an element is folded there are no values for it."""
    frame = body(count)
    frame = frame[: len(frame) - cut]
    shown = dissect_shown(DELETE_RECORDS, frame, 0)
    assert shown.is_whole == (count <= ELEMENTS_SHOWN)
    assert not shown.is_whole or plain(shown.root) == front_of(MessageBytes(DELETE_RECORDS, frame, 0, records=True))[0]


def test_a_message_that_breaks_off_is_told_the_same_wherever_it_does() -> None:
    """Cut at every byte, and with every byte in turn made the largest."""
    frame = body(15)
    for at in range(0, len(frame), 3):
        check(DELETE_RECORDS, frame[:at])
        check(DELETE_RECORDS, frame[:at] + b"\xff" + frame[at + 1 :])


def test_limits_stop_folded_readers_where_they_stop_the_dissector(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes that are kept, nodes that are counted, problems that are told."""
    rng = Random(12)
    frame = bytearray(body(60))
    for _ in range(20):
        frame[frame.index(b"t", rng.randrange(len(frame) - 20))] = 0xFF  # names that are not UTF-8
    for name, limit in (("MAX_NODES", 90), ("MAX_PROBLEMS", 3), ("MAX_COUNTED", 170)):
        for module in (dissector, folding):
            monkeypatch.setattr(module, name, limit)
        check(DELETE_RECORDS, bytes(frame))


def test_texts_that_are_none_by_the_thousand_end_what_keeps_values() -> None:
    """A hundred are told; what comes behind them is not read, and the array says so."""
    frame = body(1_000).replace(b"t", b"\xff")
    values, problems = front_of(MessageBytes(DELETE_RECORDS, frame, 0, records=True))
    assert problems[: dissector.MAX_PROBLEMS] == dissect(DELETE_RECORDS, frame, 0).problems[: dissector.MAX_PROBLEMS]
    assert [(problem.code, problem.path) for problem in problems[dissector.MAX_PROBLEMS :]] == [
        ("invalid_utf8", "topics")
    ]
    assert len(values["topics"]) == dissector.MAX_PROBLEMS


def test_elements_that_nobody_looks_at_cost_no_nodes() -> None:
    """Thirty thousand topics of three bytes, whole and broken: a few dozen nodes instead of ninety thousand."""
    frame = b"\0\0\0\0" + b"\xb1\xea\x01" + b"\1\1\0" * 30_000 + b"\0"
    found = dissect_shown(DELETE_RECORDS, frame, 0)
    assert not found.problems and found.end == len(frame)
    assert distinct(found.root) < 50 < 60_000 < distinct(dissect(DELETE_RECORDS, frame, 0).root)
    broken = dissect_shown(DELETE_RECORDS, frame[:-4] + b"\xff\xff\xff\xff", 0)
    assert broken.problems and distinct(broken.root) < 50


def test_a_broken_array_of_numbers_is_kept_as_far_as_it_goes() -> None:
    """Values of one type are taken together, and what breaks behind them does not lose them."""
    message = schema.message("ElectLeaders", 2, "request")
    frame = b"\0" + b"\x02" + b"\x02a" + b"\xc9\1" + b"".join(n.to_bytes(4, "big") for n in range(200)) + b"\0"
    found, problems = front_of(MessageBytes(message, frame, 0, records=True))
    assert found["topic_partitions"] == [{"topic": "a", "partitions": list(range(200))}]
    assert [problem.code for problem in problems] == ["truncated"]


def produce(records: bytes, count: int, attributes: int = 0) -> bytes:
    """A Produce request v3 of one batch."""
    after = pack(">hiqqqhii", attributes, count - 1, 1000, 2000, -1, -1, -1, count) + records
    batch = pack(">qii", 5, len(after) + 9, 0) + b"\x02" + pack(">I", google_crc32c.value(after)) + after
    return pack(">hhii", -1, 1, 1000, 1) + b"\0\x01t" + pack(">iii", 1, 0, len(batch)) + batch


#: No key, the value "v", no headers; and the same with a header "h" of no value.
PLAIN, HEADED = b"\x0e\0\0\0\1\2v\0", b"\x14\0\0\0\1\2v\2\2h\1"


@pytest.mark.parametrize(
    ("records", "count", "attributes"),
    [
        (PLAIN * 40, 40, 0),
        (HEADED * 40, 40, 0),
        (PLAIN * 20 + b"\x0e\0\0\0\1\2" + PLAIN * 9, 30, 0),
        (PLAIN * 20, 30, 0),
        (PLAIN * 20 + b"??", 20, 0),
        (gzip.compress(HEADED * 30, mtime=0), 30, 1),
        (b"\x16\0\0\0\x08\0\0\0\1\2v\0" * 15, 15, 0x20),
    ],
    ids=["plain", "headers", "a broken one", "too few", "too many bytes", "compressed", "control"],
)
def test_records_that_are_not_shown_are_folded(records: bytes, count: int, attributes: int) -> None:
    """Whatever is said of the others, and of the batch, is what is said without folding."""
    frame = produce(records, count, attributes)
    message = schema.message("Produce", 3, "request")
    check(message, frame)
    shown, whole = dissect_shown(message, frame, 0), dissect(message, frame, 0)
    assert attributes == 0x20 or distinct(shown.root) < distinct(whole.root)


def test_records_are_counted_as_if_they_were_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes behind them in the message is kept, or not, as without folding."""
    monkeypatch.setattr(batch_nodes, "MAX_NODES", 200)
    frame = produce(HEADED * 30, 30)
    check(schema.message("Produce", 3, "request"), frame)
    for name in ("MAX_NODES", "MAX_COUNTED"):
        for module in (dissector, folding):
            monkeypatch.setattr(module, name, 120)
    check(schema.message("Produce", 3, "request"), frame)


def test_elements_with_bytes_are_kept_for_who_opens_them_but_not_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of those that a tree shows, and of as many more as the limit says."""
    monkeypatch.setattr(folding, "MAX_OPENED", 20)
    message = schema.message("SyncGroup", 3, "request")
    assignments = [{"member_id": "m", "assignment": b"x"} for _ in range(100)]
    request = {"group_id": "g", "generation_id": 1, "member_id": "", "group_instance_id": None}
    frame = encoder(14, 3, "request")({**request, "assignments": assignments})
    for opened, kept in ((True, ELEMENTS_SHOWN + 20), (False, ELEMENTS_SHOWN)):
        found = dissect_shown(message, frame, 0, opened=opened)
        (array,) = (node for node in found.root.children if node.name == "assignments")
        assert len(array.children) == 100
        assert sum(child is not dissector.FOLDED for child in array.children) == kept


#: How many ranges there are, and whether one has a name that is no UTF-8.
RANGES = [(RANGES_SHOWN + 1, False), (RANGES_SHOWN, False), (RANGES_SHOWN + 1, True), (RANGES_SHOWN, True)]


@pytest.mark.parametrize("case", sampled(RANGES, 3, 1), ids=str)
def test_version_ranges_are_the_same_folded(case: tuple[int, bool]) -> None:
    """Arrays of as many as stand on one row, and of one more."""
    count, garbled = case
    check(schema.message("ApiVersions", 3, "response"), features(count, garbled))


def test_version_ranges_beyond_a_row_of_them_have_no_nodes() -> None:
    """Thirty thousand features cost what their bytes do; no broker has more than a few."""
    message = schema.message("ApiVersions", 3, "response")
    assert distinct(dissect_shown(message, features(30_000), 0).root) < 100
    assert distinct(dissect_shown(message, features(RANGES_SHOWN), 0).root) > 3 * RANGES_SHOWN


def features(count: int, garbled: bool = False) -> bytes:
    """An ApiVersions response v3 of a broker with so many features; ``garbled`` makes the second last name no UTF-8."""
    supported = [{"name": f"f{index:05}", "min_version": 1, "max_version": 3} for index in range(count)]
    plain_body = {"error_code": 0, "api_keys": [], "throttle_time_ms": 0, "supported_features": supported}
    rest = {"finalized_features_epoch": -1, "finalized_features": [], "zk_migration_ready": False}
    frame = bytes(encoder(18, 3, "response")({**plain_body, **rest}))
    return frame.replace(b"f%05d" % (count - 2), b"f\xff0000") if garbled else frame
