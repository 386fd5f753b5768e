"""Every message at every version that any release has had compiles, and comes back from its bytes."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from kwiresniff import codec, schema
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.node_values import plain
from kwiresniff.errors import DecodeError
from kwiresniff.model import Direction
from kwiresniff.schema.index import Api
from tests.support.encoding import encoder
from tests.support.random_bodies import random_body
from tests.support.sample import sampled

WANTED = frozenset({"error_code", "topicName"})
#: Random byte strings tried on each message.
NOISE = 3
CUTS, SPOILT = 6, 6


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_every_version_comes_back_from_its_bytes(api: Api, direction: Direction) -> None:
    first, last = getattr(api, f"{direction}_versions")
    for version in range(first, last + 1):
        definition = schema.message(api.key, version, direction)
        rng = random.Random(f"{api.name} {direction} {version}")
        body = random_body(definition, rng)
        raw = encoder(api.key, version, direction)(body)
        decode = codec.decoder(api.key, version, direction)
        assert decode(raw, 0, []) == (body, len(raw))
        dissected = dissect(definition, raw, 0)
        assert (plain(dissected.root), dissected.problems) == (body, [])
        scanner = codec.scanner(api.key, version, direction, WANTED)
        assert scanner.scan(raw, 0)
        for _ in range(NOISE):
            noise = rng.randbytes(rng.randrange(120))
            dissect(definition, noise, 0)
            with suppress(DecodeError):
                decode(noise, 0, [])
            scanner.scan(noise, 0)
