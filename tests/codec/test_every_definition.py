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
#: Places at which each message is cut, and ways in which it is spoilt.
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


@pytest.mark.parametrize("api", sampled(schema.apis()), ids=lambda api: api.name)
@pytest.mark.parametrize("direction", ["request", "response"])
def test_a_message_that_is_cut_or_spoilt_is_refused_by_decoder_and_dissector_alike(
    api: Api, direction: Direction
) -> None:
    first, last = getattr(api, f"{direction}_versions")
    for version in range(first, last + 1):
        definition = schema.message(api.key, version, direction)
        rng = random.Random(f"{api.name} {direction} {version}")
        raw = encoder(api.key, version, direction)(random_body(definition, rng))
        decode = codec.decoder(api.key, version, direction, "skip")
        for cut in sorted(rng.sample(range(len(raw)), min(CUTS, len(raw)))):
            with pytest.raises(DecodeError):
                decode(raw[:cut], 0, [])
            (problem,) = dissect(definition, raw[:cut], 0, records=False).problems
            assert problem.code in ("truncated", "bad_array_count")
        trailing = dissect(definition, raw + b"\x07", 0, records=False)
        assert [problem.code for problem in trailing.problems] == ["trailing_bytes"]
        for _ in range(SPOILT):
            spoilt = bytearray(raw)
            for _ in range(rng.choice((1, 1, 4)) if raw else 0):
                spoilt[rng.randrange(len(raw))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            dissected = dissect(definition, bytes(spoilt), 0, records=False)
            try:
                body, end = decode(bytes(spoilt), 0, [])
            except DecodeError as error:
                assert error.code in {problem.code for problem in dissected.problems}
            else:
                assert (repr(plain(dissected.root)), dissected.end) == (repr(body), end)
                assert codec.scanner(api.key, version, direction, WANTED).scan(bytes(spoilt), 0)
