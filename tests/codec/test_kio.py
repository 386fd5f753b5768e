"""Every API, version and direction that kio knows: what kio writes we read, what we write kio reads."""

import random

import pytest

from kwiresniff import schema
from kwiresniff.codec.compiler import compile_decoder
from kwiresniff.codec.encoder import compile_encoder
from kwiresniff.codec.error_finder import compile_error_finder
from kwiresniff.codec.plain import plain
from kwiresniff.codec.scanner import compile_scanner
from kwiresniff.codec.walker import walk
from kwiresniff.errors import DecodeError
from tests.codec import kio_oracle as kio

#: Instances of each entity. There are 625 entities; a handful of each visits every branch over time.
INSTANCES = 3
#: Places at which each message is cut and spoilt; test_compiler and test_walker cut at every byte.
CUTS = 12
SPOILT = 12

ENTITIES = list(kio.entities())
NAMES = sorted({name for name, *_ in ENTITIES})


def definition(name, version, kind, entity):
    if kind in ("request", "response"):
        return schema.message(entity.__api_key__, version, kind)
    if kind == "header":
        return schema.header(name.removesuffix("_header"), version)
    return schema.data_message("".join(word.capitalize() for word in name.split("_")), version)


def cases(name):
    """Definition, entity, instance and bytes of a few random messages of every version."""
    for name, version, kind, entity in (case for case in ENTITIES if case[0] == name):
        rng = random.Random(f"{name} {version} {kind}")
        message = definition(name, version, kind, entity)
        for _ in range(INSTANCES):
            instance = kio.instance(entity, rng)
            yield message, entity, instance, kio.encoded(instance), rng


def test_kio_knows_most_of_the_protocol():
    assert len(ENTITIES) > 600


@pytest.mark.parametrize("name", NAMES)
def test_what_kio_writes_is_read_field_by_field(name):
    for message, _, instance, raw, _ in cases(name):
        body, end = compile_decoder(message, "skip")(raw, 0, [])
        assert kio.positional(body) == kio.expected(instance)
        assert end == len(raw)


@pytest.mark.parametrize("name", NAMES)
def test_what_we_write_is_read_by_kio(name):
    for message, entity, instance, raw, _ in cases(name):
        body, _ = compile_decoder(message, "skip")(raw, 0, [])
        written = compile_encoder(message)(kio.with_record_bytes(body))
        assert kio.decoded(entity, written) == instance
        assert compile_decoder(message, "skip")(written, 0, [])[0] == body


@pytest.mark.parametrize("name", NAMES)
def test_walker_scanner_and_error_finder_agree_with_the_decoder(name):
    for message, _, _, raw, _ in cases(name):
        body, _ = compile_decoder(message, "skip")(raw, 0, [])
        walked = walk(message, raw, 0, records=False)
        assert (walked.problems, walked.end) == ([], len(raw))
        assert repr(plain(walked.root)) == repr(body)
        codes = [code for _, code in compile_error_finder(message)(body)]
        scanned = [value for _, value in compile_scanner(message, frozenset({"error_code"}))(raw, 0)]
        assert scanned == codes


@pytest.mark.parametrize("name", NAMES)
def test_a_cut_message_is_refused_and_walked_as_far_as_it_goes(name):
    for message, _, _, raw, rng in cases(name):
        decode = compile_decoder(message, "skip")
        for cut in sorted(rng.sample(range(len(raw)), min(CUTS, len(raw)))):
            with pytest.raises(DecodeError):
                decode(raw[:cut], 0, [])
            (problem,) = walk(message, raw[:cut], 0, records=False).problems
            assert problem.code in ("truncated", "bad_array_count")
        trailing = walk(message, raw + b"\x07", 0, records=False)
        assert [problem.code for problem in trailing.problems] == ["trailing_bytes"]


@pytest.mark.parametrize("name", NAMES)
def test_a_spoilt_message_parses_or_is_refused_alike_by_decoder_and_walker(name):
    for message, _, _, raw, rng in cases(name):
        decode = compile_decoder(message, "skip")
        scan = compile_scanner(message, frozenset({"error_code", "topicName"}))
        for _ in range(SPOILT):
            spoilt = bytearray(raw)
            for _ in range(rng.choice((1, 1, 4)) if raw else 0):
                spoilt[rng.randrange(len(raw))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
            frame = bytes(spoilt)
            walked = walk(message, frame, 0, records=False)
            try:
                body, end = decode(frame, 0, [])
            except DecodeError as error:
                assert error.code in {problem.code for problem in walked.problems}
            else:
                assert (repr(plain(walked.root)), walked.end) == (repr(body), end)
                scan(frame, 0)
