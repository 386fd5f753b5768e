"""Trees of bodies that were written straight from their bytes are those of the annotated message."""

from __future__ import annotations

import io
import random
from itertools import product
from struct import pack
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.base.tree_sizes import RANGES_SHOWN
from kwiresniff.codec.dissector import count_nodes, dissect
from kwiresniff.codec.embedded import OPENERS
from kwiresniff.codec.folding import dissect_shown
from kwiresniff.codec.node_view import NodeView
from kwiresniff.codec.record_limits import RecordBudget
from kwiresniff.codec.records import dissect_record_set, encode_record_set
from kwiresniff.model import Connection, Dissection, DrawnNodes, Exchange, Message
from kwiresniff.render import TreeWriter
from kwiresniff.render.tree import words_of
from kwiresniff.session.withheld import all_nodes
from tests.support.random_bodies import drawable_body, random_body
from tests.support.record_vectors import vector, vectors
from tests.support.sample import mostly_slow, sampled

FETCH, JOIN_GROUP, SYNC_GROUP, API_VERSIONS, CREATE_TOPICS, REASSIGN = 1, 11, 14, 18, 19, 45
INTERNAL_ID, NAMED_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "ABEiM0RVZneImaq7zN3u_w"
#: Columns of the terminal, None for a pipe, and whether there are colours.
PLACES = [(None, False), (None, True), (80, True), (160, False)]


def topic_name(topic_id: str) -> str | None:
    return "orders" if topic_id == NAMED_ID else None


class Both:
    """Writes a body with and without the dissector for one place."""

    def __init__(self, width: int | None, color: bool) -> None:
        self._tree = TreeWriter(io.StringIO(), width, color)
        words = words_of(io.StringIO(), width, color)
        writer = codec.row_writer(words, INTERNAL_ID.__eq__, topic_name)
        assert writer is not None
        self._writer = writer

    def rows(self, api_key: int, version: int, direction: Any, frame: bytes) -> list[bytes] | None:
        steps = self._writer.plans.steps(api_key, version, direction)
        if steps is None:
            return None
        errors: list[tuple[str, int]] = []
        rows = self._writer.text(steps, frame, 0, errors if direction == "response" else None)
        if rows is not None and direction == "response":
            body, _ = codec.decoder(api_key, version, direction)(frame, 0, [])
            assert errors == codec.error_finder(api_key, version)(body)
        return rows

    def written(self, api_key: int, version: int, direction: Any, frame: bytes) -> str | None:
        rows = self.rows(api_key, version, direction, frame)
        return None if rows is None else self._drawn(frame, rows)

    def dissected(self, api_key: int, version: int, direction: Any, frame: bytes) -> str:
        return self._drawn(frame, dissect(schema.message(api_key, version, direction), frame, 0, topic_name=topic_name))

    def shown(self, api_key: int, version: int, direction: Any, frame: bytes) -> tuple[str, list[list[bytes]]]:
        """The tree of a message with whose record sets, where they are sound, no nodes are made; and their rows."""
        definition = schema.message(api_key, version, direction)
        found = dissect_shown(definition, frame, 0, topic_name=topic_name, writer=self._writer)
        rows = [node.rows for node in all_nodes(found.root) if isinstance(node, DrawnNodes)]
        return self._drawn(frame, found), rows

    def counted(self, wire: bytes) -> int | None:
        """How many nodes are counted of a record set that is drawn; None for one that is not."""
        sets = self._writer.record_sets
        rows = sets.drawn(wire, 0, len(wire), len(wire), "records", RecordBudget(len(wire)))
        return None if rows is None else sets.nodes

    def opened(self, api_key: int, version: int, direction: Any, frame: bytes) -> tuple[str, str] | None:
        """The tree of a message of the groups' protocol, and what comes of its nodes; None for one with no rows."""
        steps = self._writer.plans.opened_steps(api_key, version, direction)
        assert steps is not None
        self._writer.protocol_type = b"consumer" if direction == "response" else b""
        errors: list[tuple[str, int]] = []
        rows = self._writer.text(steps, frame, 0, errors if direction == "response" else None)
        if rows is None:
            return None
        found = dissect(schema.message(api_key, version, direction), frame, 0, topic_name=topic_name)
        asked = Message(1, 0, 1, 0, 0, b"")
        asked.body = {"protocol_type": "consumer"}
        exchange = Exchange(Connection(1, "", ""), api_key, version, 1, None, asked, None)
        OPENERS[api_key, direction](NodeView(found.root, found.problems), exchange, topic_name)
        body, _ = codec.decoder(api_key, version, direction)(frame, 0, [])
        assert errors == codec.error_finder(api_key, version)(body) or direction == "request"
        return self._drawn(frame, rows), self._drawn(frame, found)

    def _drawn(self, frame: bytes, read: Dissection | list[bytes]) -> str:
        message = Message(1, 0, 1, 0, len(frame), frame)
        exchange = Exchange(Connection(1, "10.0.0.1:1", "10.0.0.2:9092"), 1, 0, 1, None, message, None)
        return self._tree.text(exchange, read, None).decode().removeprefix("\n")


@pytest.fixture(params=PLACES, ids=lambda place: f"{place[0] or 'pipe'} {'colour' if place[1] else 'plain'}")
def both(request: pytest.FixtureRequest) -> Both:
    return Both(*request.param)


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_every_message_at_every_version_is_drawn_as_the_walker_reads_it(api: Any, direction: Any) -> None:
    """In a pipe and in terminals, with everything that a random body has."""
    boths = [Both(*place) for place in PLACES]
    first, last = getattr(api, f"{direction}_versions")
    codes = (0, 0, 3, -1, 9999) if direction == "response" else (0,)
    rng = random.Random(f"{api.name} {direction}")
    for version in range(first, last + 1):
        definition = schema.message(api.key, version, direction)
        encode = codec.encoder(api.key, version, direction)
        which = (api.key, version, direction)
        for both in boths:
            frame = encode(drawable_body(definition, rng, lambda: rng.choice(codes)))
            if "FLOAT64" in repr(definition):
                assert both.written(*which, frame) is None
                continue
            assert both.written(*which, frame) == both.dissected(*which, frame)
            frame = encode(drawable_body(definition, rng, lambda: rng.choice(codes), True))
            written = both.written(*which, frame)
            assert written == both.dissected(*which, frame) or (written is None and api.key == API_VERSIONS)
            frame = encode(random_body(definition, rng))
            assert both.written(*which, frame) in (None, both.dissected(*which, frame))
            assert both.rows(*which, frame + b"\0") is None
            for cut in range(0, len(frame), max(1, len(frame) // 8)):
                assert both.rows(*which, frame[:cut]) is None


CONTENTS = {JOIN_GROUP: "ConsumerProtocolSubscription", SYNC_GROUP: "ConsumerProtocolAssignment"}


def with_contents(value: Any, message: str, rng: random.Random) -> None:
    """Put what consumers say to each other into the bytes of a body, and make nothing an error."""
    for name, field in value.items():
        if name in ("metadata", "assignment"):
            version = rng.randint(*schema.data_versions(message))
            content = random_body(schema.data_message(message, version), rng)
            content["user_data"] = rng.choice((None, b"", b"", b"", b"x"))
            value[name] = rng.choice((b"", version.to_bytes(2, "big") + codec.data_encoder(message, version)(content)))
            if rng.random() < 0.1:
                value[name] += b"y"
        elif name == "protocol_type":
            value[name] = rng.choice(("consumer", "consumer", "consumer", "connect", "other", ""))
        for part in field if isinstance(field, list) else ():
            if isinstance(part, dict):
                with_contents(part, message, rng)


@pytest.mark.parametrize("case", mostly_slow(product(CONTENTS, ("request", "response")), 3), ids=str)
def test_what_consumers_say_to_each_other_is_drawn_as_it_is_opened_in_nodes(case: tuple[int, Any]) -> None:
    """At every version, with the type of the group in the message or the request, and errors of the whole message."""
    api_key, direction = case
    rng = random.Random(f"contents {api_key} {direction}")
    drawn = 0
    boths = [Both(*place) for place in PLACES]
    for version in range(schema.version_range(api_key)[0], schema.version_range(api_key)[1] + 1):
        definition = schema.message(api_key, version, direction)
        for _ in range(24):
            body = drawable_body(definition, rng)
            with_contents(body, CONTENTS[api_key], rng)
            code = rng.choice((0, 0, 79)) if direction == "response" else 0
            if "error_code" in body:
                body["error_code"] = code
            frame = codec.encoder(api_key, version, direction)(body)
            for both in boths:
                text = both.opened(api_key, version, direction, frame)
                assert text is None or text[0] == text[1]
                drawn += text is not None
    assert drawn > 300


def fetch_response(records: bytes, **changes: Any) -> bytes:
    partition = {"partition_index": 0, "error_code": 0, "high_watermark": 9, "last_stable_offset": 9,
                 "log_start_offset": 0, "aborted_transactions": None, "preferred_read_replica": -1,
                 "records": []} | changes  # fmt: skip
    topic = {"topic": changes.pop("topic", "orders"), "partitions": [partition]}
    body = {"throttle_time_ms": 0, "error_code": 0, "session_id": 1, "responses": [topic]}
    frame: bytes = codec.encoder(FETCH, 11, "response")(body)
    assert frame.endswith(bytes(4))
    return frame[:-4] + len(records).to_bytes(4, "big") + records


@pytest.mark.slow
@pytest.mark.usefixtures("roomy")
@pytest.mark.parametrize("row", vectors(), ids=lambda row: row["name"])
def test_records_of_kafkas_clients_are_drawn_as_the_walker_reads_them(row: dict[str, Any], both: Both) -> None:
    """One set, several in a row, and one that is cut short."""
    for wire in (row["wire"], row["wire"] * 3, row["wire"] * 11, row["wire"] + row["wire"][:-1]):
        frame = fetch_response(wire)
        drawn = both.written(FETCH, 11, "response", frame)
        assert drawn in (None, both.dissected(FETCH, 11, "response", frame))
        assert drawn is not None or row["control"] or row["wire"][16] != 2


TEXTS = (
    b"", b"null", b"plain", b"two words", b'{"a": "b c"}', b"\x1b[31m\n", "größe 日本".encode(), b"\xff\xfe\x00\x01",
    b"x" * 200, b"word " * 60, "é".encode() * 200, b"a" * 119 + "é".encode() * 30, b"PNG" + bytes(300), None,
)  # fmt: skip


def random_batch(rng: random.Random) -> dict[str, Any]:
    """A batch with records of all sorts of keys, values, times and headers."""
    base = rng.choice((0, 5, 98, 999_995, 1 << 40))
    records = [
        {"offset": base + index, "timestamp": rng.choice((-1, 0, 1_700_000_000_000, 1_700_000_086_399)),
         "key": rng.choice(TEXTS), "value": rng.choice(TEXTS),
         "headers": [{"key": rng.choice(("a", "grün", "two words", "")), "value": rng.choice(TEXTS)}
                     for _ in range(rng.choice((0, 0, 1, 8, 10)))]}
        for index in range(rng.choice((0, 1, 2, 10, 14)))
    ]  # fmt: skip
    producer = rng.choice(({}, {"producer_id": 7, "producer_epoch": 0, "base_sequence": 3}))
    attributes = rng.choice((0, 0, 1, 2, 3, 4)) | rng.choice((0, 0x08)) | rng.choice((0, 0x10))
    return {"base_offset": base, "attributes": attributes, "records": records, **producer}


@pytest.mark.slow
def test_damaged_record_sets_are_drawn_as_the_walker_reads_them_or_not_at_all(both: Both) -> None:
    """Sound ones always, apart from what only the dissector tells."""
    rng = random.Random("damaged record sets")
    drawn = 0
    for _ in range(250):
        wire = encode_record_set([random_batch(rng) for _ in range(rng.choice((1, 1, 2, 9)))])
        sound = rng.random() < 0.7
        if not sound:
            broken = bytearray(wire)
            broken[rng.randrange(len(broken))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
            wire = bytes(broken)[: rng.choice((len(wire), rng.randrange(len(wire))))]
        frame = fetch_response(wire)
        text = both.written(FETCH, 11, "response", frame)
        assert text in (None, both.dissected(FETCH, 11, "response", frame))
        assert text is not None or not sound
        drawn += text is not None
    assert drawn > 170


def fetched(rng: random.Random) -> bytes:
    """A response to Fetch v11 with record sets of several topics, some of them Kafka's own."""
    topics = []
    for _ in range(rng.choice((1, 2, 3))):
        partitions = []
        for index in range(rng.choice((1, 2, 13))):
            wire = encode_record_set([random_batch(rng) for _ in range(rng.choice((0, 1, 1, 9)))])
            wire = wire[: rng.choice((len(wire), len(wire), rng.randrange(len(wire) + 1)))]
            partitions.append(
                pack(">ihqqqiii", index, rng.choice((0, 0, 3)), 9, 9, 0, -1, -1, len(wire)) + wire
            )  # partition_index .. preferred_read_replica, records
        name = rng.choice((b"orders", b"orders", b"__consumer_offsets", b"or\xffers"))
        topics.append(pack(">h", len(name)) + name + pack(">i", len(partitions)) + b"".join(partitions))
    return pack(">ihii", 0, 0, 1, len(topics)) + b"".join(topics)


def test_record_sets_of_a_broken_message_are_drawn_as_the_walker_reads_them(both: Both) -> None:
    """Cut anywhere, with names that are no UTF-8, and with bytes behind it."""
    rng = random.Random("broken fetches")
    drawn = 0
    for _ in range(40):
        frame = fetched(rng)
        frame = rng.choice((frame + b"x", frame[: rng.randrange(len(frame))], frame[:-1]))
        text, rows = both.shown(FETCH, 11, "response", frame)
        assert text == both.dissected(FETCH, 11, "response", frame)
        drawn += len(rows)
    assert drawn > 60


def test_records_of_kafkas_own_topics_have_nodes_that_somebody_can_look_into(both: Both) -> None:
    """In them offsets and groups are opened, and credentials withheld."""
    for name, count in ((b"orders", 1), (b"__cons", 0)):
        frame = fetch_response(vector("3.9.1 magic2 none plain")["wire"]).replace(b"orders", name)
        _, rows = both.shown(FETCH, 11, "response", frame)
        assert len(rows) == count


@pytest.mark.parametrize("row", sampled(vectors()), ids=lambda row: row["name"])
def test_record_sets_that_are_drawn_count_as_many_nodes_as_the_dissector_makes(row: dict[str, Any]) -> None:
    """The limit on the nodes of a message stops where it would: whole, several in a row, and cut short."""
    both = Both(None, False)
    for wire in (row["wire"], row["wire"] * 11, row["wire"][:-1], row["wire"][:20], row["wire"][:10]):
        batches, problems = dissect_record_set(wire, 0, len(wire))
        counted = both.counted(wire)
        assert counted in (None, sum(map(count_nodes, batches)))
        assert counted is not None or problems or row["control"] or wire[16] != 2


@pytest.mark.parametrize(
    "frame",
    [
        pytest.param(fetch_response(b"").replace(b"orders", b"__cons"), id="an internal topic"),
        pytest.param(fetch_response(b"").replace(b"orders", b"orde\xffs"), id="a name that is not UTF-8"),
        pytest.param(fetch_response(vectors()[0]["wire"][:-1] + b"\x7f"), id="a wrong CRC"),
    ],
)
def test_what_the_walker_has_to_look_into_has_no_rows(frame: bytes) -> None:
    """Something to open, something that is wrong."""
    assert Both(None, False).rows(FETCH, 11, "response", frame) is None


@pytest.mark.slow
def test_many_elements_are_drawn_as_the_first_ones_and_how_many_there_are(both: Both) -> None:
    """Of structures and of values, and of errors as many again."""
    for count in (12, 13, 40):
        for wrong in (0, 1, 12, 13, 28):
            codes = [3 if index >= count - wrong else 0 for index in range(count)]
            failed = [
                {"name": f"t{index}", "error_code": code, "error_message": None} for index, code in enumerate(codes)
            ]
            frame = codec.encoder(CREATE_TOPICS, 1, "response")({"topics": failed})
            assert both.written(CREATE_TOPICS, 1, "response", frame) == both.dissected(
                CREATE_TOPICS, 1, "response", frame
            )
        partitions = [{"partition_index": index, "replicas": list(range(count))} for index in range(count)]
        topics = [{"name": f"topic-{index}", "partitions": partitions} for index in range(count)]
        frame = codec.encoder(REASSIGN, 0, "request")({"timeout_ms": 60_000, "topics": topics})
        assert both.written(REASSIGN, 0, "request", frame) == both.dissected(REASSIGN, 0, "request", frame)


@pytest.mark.parametrize("count", [RANGES_SHOWN, RANGES_SHOWN + 1])
def test_version_ranges_are_drawn_on_one_row_up_to_a_number(count: int, both: Both) -> None:
    """Kafka has a hundred APIs; what answers with more of them is no broker."""
    keys = [{"api_key": key, "min_version": 0, "max_version": 3} for key in range(count)]
    frame = codec.encoder(18, 0, "response")({"error_code": 0, "api_keys": keys})
    written = both.written(18, 0, "response", frame)
    assert written == both.dissected(18, 0, "response", frame)
    assert written is not None and ("more of 257" in written) == (count > RANGES_SHOWN)
