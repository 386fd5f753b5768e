"""Topics, partitions, groups and transactional ids of exchanges."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from kwiresniff import codec, schema
from kwiresniff.analysis.body_entities import groups_of, partitions_of, session_topics, topics_of, transactional_ids_of
from kwiresniff.capture import open_captures
from kwiresniff.codec.text.digest_bodies import DigestReader
from kwiresniff.export import json_text
from kwiresniff.model import Exchange, Message
from kwiresniff.pipeline.entities import Entities
from kwiresniff.session import Analyzer
from tests.support.exchanges import exchange
from tests.support.exported import recorded
from tests.support.random_bodies import usual_body
from tests.support.sample import mostly_slow, sampled


def walked(bodies: list[Any], topic_name: Any) -> list[list[Any]]:
    """What a walk through every body finds."""
    found: list[list[Any]] = [[name for body in bodies for name in topics_of(body, topic_name)]]
    found += [[value for body in bodies for value in find(body)] for find in (partitions_of, groups_of)]
    found.append([value for body in bodies for value in transactional_ids_of(body)])
    return [list(dict.fromkeys(values)) for values in found]


def found(entities: Entities) -> list[list[Any]]:
    return [entities.topics, entities.partitions, entities.groups, entities.transactional_ids]


@pytest.mark.parametrize("capture", mostly_slow(recorded(), 4), ids=lambda path: path.name)
def test_nothing_is_missed_by_asking_bytes_and_definitions(capture: Path) -> None:
    """Every recording, with bodies as text and digests where the build has them, says what walking its bodies says."""
    with_text = Analyzer("records", encode=json_text, digests=True, sessions=True)
    plain = Analyzer("records", sessions=True)
    entities = Entities(with_text.topics.name)
    events = zip(
        with_text.analyze(open_captures([str(capture)])), plain.analyze(open_captures([str(capture)])), strict=True
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
            frame = codec.encoder(api.key, version, direction)(value)
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
