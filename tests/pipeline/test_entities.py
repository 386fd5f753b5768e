"""Topics, partitions, groups and transactional ids of exchanges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.analysis.body_entities import names_of, partitions_of, session_topics
from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.codec.digests import DigestReader
from kwiresniff.export.encode import json_text
from kwiresniff.model import Exchange, Message
from kwiresniff.pipeline.entities import MAX_OF_SESSION, MAX_SESSION_CHARS, Entities
from kwiresniff.session import Analyzer
from kwiresniff.session.fetch_sessions import FetchSession
from tests.support.encoding import encoder
from tests.support.events import analyze_with
from tests.support.exchanges import exchange
from tests.support.exported import recorded
from tests.support.random_bodies import usual_body
from tests.support.sample import mostly_slow, sampled


def walked(bodies: list[Any], topic_name: Any) -> list[list[Any]]:
    """What a walk through every body finds."""
    names = [names_of(body, topic_name) for body in bodies]
    partitions = [number for body in bodies for number in partitions_of(body)]
    found: tuple[list[Any], ...] = (
        [name for one in names for name in one.topics],
        partitions,
        [name for one in names for name in one.groups],
        [name for one in names for name in one.transactional_ids],
    )
    return [list(dict.fromkeys(values)) for values in found]


def found(entities: Entities) -> list[list[Any]]:
    return [entities.topics, entities.partitions, entities.groups, entities.transactional_ids]


@pytest.mark.parametrize("capture", mostly_slow(recorded(), 4), ids=lambda path: path.name)
def test_nothing_is_missed_by_asking_bytes_and_definitions(capture: Path) -> None:
    """Every recording, with bodies as text and digests where the build has them, says what walking its bodies says."""
    with_text = Analyzer(Needs("records", text=json_text, digests=True, sessions=True))
    plain = Analyzer(Needs("records", sessions=True))
    entities = Entities(with_text.topics.name)
    events = zip(
        analyze_with(with_text, open_captures([str(capture)])),
        analyze_with(plain, open_captures([str(capture)])),
        strict=True,
    )
    for event, other in events:
        if not isinstance(event, Exchange) or not isinstance(other, Exchange):
            continue
        bodies = [part.body for part in (other.request, other.response) if part is not None and part.body is not None]
        expected = walked(bodies, plain.topics.name)
        if other.fetched is not None:
            expected[0] = list(dict.fromkeys([*expected[0], *session_topics(other, plain.topics.name)]))
            expected[1] = list(dict.fromkeys([*expected[1], *other.fetched.partitions]))
        entities.find(event)
        assert found(entities) == expected, other.api


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_digests_of_every_message_at_every_version_say_what_the_body_says(api: Any, direction: Any) -> None:
    """Random bodies, by their digests as far as they have some, and by those parts of them that definitions tell."""
    rng = random.Random(f"{api.name} {direction}")
    names = {"AAAAAAAAAAAAAAAAAAAAAQ": "known"}
    entities = Entities(names.get)
    reader = DigestReader(lambda topic_id: False)
    for version in range(*(bound + at for at, bound in enumerate(getattr(api, f"{direction}_versions")))):
        definition = schema.message(api.key, version, direction)
        steps = reader.steps(api.key, version, direction)
        for _ in range(3):
            value = usual_body(definition, rng)
            frame = encoder(api.key, version, direction)(value)
            body, end = codec.decoder(api.key, version, direction, "skip")(b"xx" + frame, 2, [])
            assert end == len(frame) + 2
            message = Message(1, 0, 1, 0, len(frame), b"xx" + frame)
            message.body_offset, message.version = 2, version
            message.digest = reader.digest(steps, b"xx" + frame, 2) if steps is not None else None
            if message.digest is None:
                message.body = body
            one = exchange(api=api.name, api_key=api.key, api_version=version)
            one.request, one.response = (message, None) if direction == "request" else (None, message)
            entities.find(one)
            assert found(entities) == walked([body], names.get), version


def fetch_in(session: FetchSession, *named: str) -> Exchange:
    """An incremental fetch of a session that names some topics itself."""
    one = exchange(topics=named)
    one.fetched = session.content()
    return one


def test_a_fetch_lists_the_first_topics_of_a_large_session_and_all_that_it_names() -> None:
    """The lists of a fetch have the same length for any session beyond the limit, and the fetch is counted as cut."""
    entities = Entities(lambda topic_id: None)
    for topics in (MAX_OF_SESSION, MAX_OF_SESSION + 1, 1_000):
        session, names = FetchSession(is_whole=True), [f"t-{number}" for number in range(topics)]
        session.add([{"topic": name, "partitions": [number]} for number, name in enumerate(names)])
        entities.find(fetch_in(session, "t-999", "other"))
        assert entities.topics == ["t-999", "other", *names[:MAX_OF_SESSION]]
        assert entities.partitions == list(range(MAX_OF_SESSION))
    assert entities.cut == 2


def test_a_fetch_lists_names_of_a_session_up_to_so_many_characters() -> None:
    """Kafka allows 249 characters in a name; a hostile one has more."""
    session, entities = FetchSession(is_whole=True), Entities(lambda topic_id: None)
    size = MAX_SESSION_CHARS // 3
    session.add([{"topic": letter * size, "partitions": [0]} for letter in "abcd"])
    entities.find(fetch_in(session))
    assert (entities.topics, entities.cut) == ([letter * size for letter in "abc"], 1)
