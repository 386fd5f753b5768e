"""Secrets that a wrong length has moved into another field, in every message that may hold one.

The messages are encoded soundly, with one text as the secret; then each byte before it that says a length or a count,
or might, is changed. Whatever the message becomes, no six letters of the secret in a row may be told.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from struct import pack
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.analysis.body_entities import message_topics
from kwiresniff.base.needs import Needs
from kwiresniff.export.json_objects import event_json
from kwiresniff.model import Direction, Event, Exchange
from kwiresniff.render.tree import TreeWriter
from kwiresniff.session import Analyzer
from kwiresniff.session.annotation import dissect_message
from kwiresniff.session.peek import SECRET_REQUESTS
from kwiresniff.session.secrets import may_hide
from tests.support.conversation import exchange_frames, known_wire, request
from tests.support.encoding import encoder
from tests.support.events import analyze_with
from tests.support.sample import sampled
from tests.support.secret_messages import encoded

SECRET = "abcdefghijklmnopqrstuvwxyz0123"
PIECES = [SECRET[at : at + 6] for at in range(len(SECRET) - 5)]
PIECES_IN_HEX = [piece.encode().hex(" ") for piece in PIECES]
NAME = "ssl.keystore.password"
SECRETS = dict.fromkeys(("auth_bytes", "hmac", "salt", "salted_password"), SECRET.encode())
FIELDS: dict[str, Any] = {"value": SECRET, "name": NAME, "key": NAME, **SECRETS}
#: Lengths and counts become these, and what they were with these added.
VALUES, STEPS = (1, 20), (9,)

CARRIERS: list[tuple[int, Direction]] = [
    (19, "request"), (19, "response"), (32, "response"), (33, "request"), (36, "request"), (36, "response"),
    (38, "response"), (39, "request"), (40, "request"), (41, "response"), (44, "request"), (51, "request"),
    (88, "request"), (89, "response"),
]  # fmt: skip


def frame(api_key: int, version: int, direction: Direction) -> bytes:
    said = encoded(api_key, version, direction, **FIELDS)
    return exchange_frames(api_key, version, 7, said, said)[direction == "response"]


def outputs(api_key: int, version: int, direction: Direction, said: bytes) -> Iterator[str]:
    """All that is told of a connection on which the frame is said."""
    wire = known_wire()
    if direction == "request":
        wire.up(said)
    else:
        wire.up(frame(api_key, version, "request")).down(said)
    analyzer = Analyzer("records")
    for event in analyze_with(analyzer, wire.segments):
        yield from texts(event, analyzer)
    for event in analyze_with(Analyzer(Needs("bodies", digests=True)), wire.segments):
        if isinstance(event, Exchange):
            yield repr([message_topics(event.request), message_topics(event.response)])
        yield repr(event_json(event))  # bodies that were put off are decoded now


def texts(event: Event, analyzer: Analyzer) -> Iterator[str]:
    yield repr(event_json(event))
    if isinstance(event, Exchange):
        out = StringIO()
        request, response = (dissect_message(event, which, analyzer.topics) for which in ("request", "response"))
        TreeWriter(out, None, False, 2).write(event, request, response)
        yield out.getvalue()


def damaged(said: bytes, direction: Direction) -> Iterator[bytes]:
    """Every byte that is no letter, from the client id's length or behind the correlation id on."""
    for at in range(12 if direction == "request" else 8, len(said)):
        if not said[at : at + 1].isalnum():
            for byte in {*VALUES, *(said[at] + step & 0xFF for step in STEPS)} - {said[at]}:
                yield said[:at] + pack("B", byte) + said[at + 1 :]


def versions(api_key: int) -> set[int]:
    """The newest one, and the newest whose lengths are written the older way, if there is one."""
    low, high = schema.version_range(api_key)
    older = [one for one in range(low, high + 1) if not schema.message(api_key, one, "request").flexible]
    return {high, *older[-1:]}


@pytest.mark.parametrize("carrier", sampled(CARRIERS, 7, 1), ids=repr)
def test_a_wrong_length_does_not_tell_a_secret(carrier: tuple[int, Direction]) -> None:
    """Neither in the tree, bytes included, nor as JSON, nor by the client id, nor in what is said to be wrong."""
    api_key, direction = carrier
    sounds = {version: frame(api_key, version, direction) for version in versions(api_key)}
    assert SECRET.encode() in sounds[max(sounds)]
    for version, sound in sounds.items():
        for said in (sound, *damaged(sound, direction)):
            for text in outputs(api_key, version, direction, said):
                assert not any(piece in text for piece in (*PIECES, *PIECES_IN_HEX)), (version, said)


def test_a_topic_named_like_a_secret_hides_none_of_its_configs() -> None:
    """CreateTopics v5: a topic has a name, as a config has, and a list of configs."""
    configs = [{"name": "cleanup.policy", "value": "compact"}, {"name": "ssl.key.password", "value": "hunter2"}]
    topic = {"name": "password-resets", "num_partitions": 1, "replication_factor": 1, "assignments": []}
    asked = {"topics": [{**topic, "configs": configs}], "timeout_ms": 1000, "validate_only": False}
    told = list(outputs(19, 5, "request", request(19, 5, 7, encoder(19, 5, "request")(asked), tags=b"\0")))
    assert sum("compact" in text for text in told) == 3
    assert not any("hunter2" in text for text in told)


def test_a_client_id_that_runs_into_a_token_is_not_taken() -> None:
    """Its length says that the token of SaslAuthenticate belongs to it."""
    said = frame(36, 2, "request")
    at = 4 + 8
    swallowing = said[:at] + pack(">h", len(said) - at - 2 - 3) + said[at + 2 :]
    assert not any(piece in text for text in outputs(36, 2, "request", swallowing) for piece in PIECES)


def test_what_only_the_capture_cut_off_is_told_as_far_as_it_is_there() -> None:
    """A snap length moves nothing: names before the cut are those that were written."""
    said = frame(44, 1, "request")
    wire = known_wire()
    wire.up(said, missing=len(SECRET) // 2)
    text = "".join(repr(event_json(event)) for event in analyze_with(Analyzer("records"), wire.segments))
    assert NAME in text
    assert not any(piece in text for piece in PIECES)


def test_every_request_that_may_hold_a_secret_is_known_by_its_front() -> None:
    found = {api.key for api in schema.apis() if may_hide(api.key, "request")}
    assert found == SECRET_REQUESTS
