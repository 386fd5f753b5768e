"""Every API, version and direction that kio knows: what kio writes we read, what we write kio reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import pytest

from kwiresniff import schema
from kwiresniff.codec.body_walker import BodyScanner
from kwiresniff.codec.dissector import dissect
from kwiresniff.codec.node_values import plain
from kwiresniff.codec.plan import leaf_plan
from kwiresniff.codec.value_reader import message_decoder
from kwiresniff.errors import DecodeError
from kwiresniff.schema.types import MessageVersion
from tests.support import kio_reference as kio
from tests.support.encoding import encode
from tests.support.error_codes import error_codes
from tests.support.sample import sampled

#: Instances of each entity. There are 625 entities; a handful of each visits every branch over time.
INSTANCES = 3
#: Places at which each message is cut and spoilt; test_compiler and test_walker cut at every byte.
CUTS = 12
SPOILT = 12


@dataclass(frozen=True)
class Compiled:
    """One entity's definition and everything compiled from it."""

    message: MessageVersion
    entity: Any

    @cached_property
    def decode(self) -> Callable[..., tuple[dict[str, Any], int]]:
        return message_decoder(self.message, "skip")

    @cached_property
    def scanner(self) -> BodyScanner:
        return BodyScanner(leaf_plan(self.message, frozenset({"error_code"})))


@lru_cache(None)
def compiled(name: str, version: int, kind: str, entity: Any) -> Compiled:
    if kind in ("request", "response"):
        return Compiled(schema.message(entity.__api_key__, version, kind), entity)
    if kind == "header":
        return Compiled(schema.header(name.removesuffix("_header"), version), entity)
    return Compiled(schema.data_message("".join(word.capitalize() for word in name.split("_")), version), entity)


def cases(name: str) -> Iterator[tuple[Compiled, Any, bytes, random.Random]]:
    """A few random messages of every version, each as definition, instance, bytes and a source of randomness."""
    for version, kind, entity in kio.entities(name):
        rng = random.Random(str((name, version, kind)))
        for _ in range(INSTANCES):
            instance = kio.instance(entity, rng)
            yield compiled(name, version, kind, entity), instance, kio.encoded(instance), rng


def test_kio_knows_most_of_the_protocol() -> None:
    assert kio.CLASSES > 600


@pytest.mark.parametrize("name", sampled(kio.NAMES))
def test_what_kio_writes_is_read_field_by_field(name: str) -> None:
    for case, instance, raw, _ in cases(name):
        body, end = case.decode(raw, 0, [])
        assert kio.positional(body) == kio.expected(instance)
        assert end == len(raw)


@pytest.mark.parametrize("name", sampled(kio.NAMES))
def test_what_we_write_is_read_by_kio(name: str) -> None:
    for case, instance, raw, _ in cases(name):
        body, _ = case.decode(raw, 0, [])
        written = encode(case.message, kio.with_record_bytes(body))
        assert kio.decoded(case.entity, written) == instance
        assert case.decode(written, 0, [])[0] == body


@pytest.mark.parametrize("name", sampled(kio.NAMES))
def test_dissector_and_scanner_agree_with_the_decoder(name: str) -> None:
    for case, _, raw, _ in cases(name):
        body, _ = case.decode(raw, 0, [])
        dissected = dissect(case.message, raw, 0, records=False)
        assert (dissected.problems, dissected.end) == ([], len(raw))
        assert repr(plain(dissected.root)) == repr(body)
        errors: list[tuple[str, int]] = []
        assert case.scanner.scan(raw, 0, 0, errors)
        assert errors == error_codes(case.message, body)


@pytest.mark.parametrize("name", sampled(kio.NAMES))
def test_a_cut_message_is_refused_and_walked_as_far_as_it_goes(name: str) -> None:
    for case, _, raw, rng in cases(name):
        for cut in sorted(rng.sample(range(len(raw)), min(CUTS, len(raw)))):
            with pytest.raises(DecodeError):
                case.decode(raw[:cut], 0, [])
            (problem,) = dissect(case.message, raw[:cut], 0, records=False).problems
            assert problem.code in ("truncated", "bad_array_count")
        trailing = dissect(case.message, raw + b"\x07", 0, records=False)
        assert [problem.code for problem in trailing.problems] == ["trailing_bytes"]


@pytest.mark.parametrize("name", sampled(kio.NAMES))
def test_a_spoilt_message_parses_or_is_refused_alike_by_decoder_and_walker(name: str) -> None:
    for case, _, raw, rng in cases(name):
        for _ in range(SPOILT):
            spoilt = bytearray(raw)
            for _ in range(rng.choice((1, 1, 4)) if raw else 0):
                spoilt[rng.randrange(len(raw))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            frame = bytes(spoilt)
            dissected = dissect(case.message, frame, 0, records=False)
            try:
                body, end = case.decode(frame, 0, [])
            except DecodeError as error:
                assert error.code in {problem.code for problem in dissected.problems}
            else:
                assert (repr(plain(dissected.root)), dissected.end) == (repr(body), end)
                assert case.scanner.scan(frame, 0)
