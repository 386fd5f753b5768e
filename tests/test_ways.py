"""docs/architecture.md, *Ways through a message*: which modules take numbers out of the bytes of messages."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "kwiresniff"
ROOMS = ("analysis", "codec", "render", "session")
#: What reads a number at a place: of the standard library, of librt, of ``base.fastint`` and ``codec.body_reader``, or
#: an offset that is counted from where a body begins.
READS = re.compile(
    r"\b(?:(?:read_i\d+_be|from_bytes|int16|int32|[iu](?:16|32))\(|(?:unpack_from|iter_unpack|read_uvarint)\b)"
    r"|body_offset \+"
)

BODIES = {
    "decoder": {"codec/value_reader.py", "codec/primitives.py"},
    "dissector": {"codec/dissector.py", "codec/field_facts.py", "codec/folding.py"},
    "digest": {"codec/body_reader.py", "codec/body_walker.py", "codec/digests.py"},
    "JSON": {"codec/text/json_bodies.py", "codec/text/json_batches.py"},
    "stripper": {"session/record_stripper.py"},
}
BATCHES = {
    "codec/alignment.py", "codec/batch_header.py", "codec/batch_reader.py", "codec/compression.py", "codec/control.py",
    "codec/message_set.py", "codec/record_batch.py", "codec/shown_records.py",
}  # fmt: skip
#: The version, or the length, before a message that is embedded in another.
EMBEDDED = {
    "codec/embedded/embedded_format.py", "codec/embedded/groups.py", "codec/embedded/internal_topics.py",
}  # fmt: skip
#: Headers of frames, and what may be none: TLS, proxies, SASL tokens, frames that are searched for.
FRAMES = {
    "codec/headers.py", "session/credential_blanking.py", "session/der.py", "session/detection.py",
    "session/frame_confirmation.py", "session/frame_search.py", "session/kafka_messages.py",
    "session/proxy_preamble.py", "session/secrets.py",
    "session/signatures.py", "session/standalone.py", "session/tls_ciphers.py", "session/tls_handshake.py",
    "session/tls_opening.py", "session/tls_record_layer.py",
}  # fmt: skip
#: Fields of bodies that are read at fixed offsets.
BY_HAND = {"analysis/body_entities.py", "session/apis.py", "session/fetch_sessions.py"}
STATE = {"session/checkpoint.py"}


def test_bytes_are_read_in_these_modules_alone() -> None:
    """A way through a body that is added, or taken away, is named here and on the page."""
    found = {
        f"{room}/{path.relative_to(PACKAGE / room)}"
        for room in ROOMS
        for path in (PACKAGE / room).rglob("*.py")
        if READS.search(path.read_text("utf-8"))
    }
    assert found == set().union(*BODIES.values(), BATCHES, EMBEDDED, FRAMES, BY_HAND, STATE)


def test_the_page_names_the_ways_through_a_body_and_a_record() -> None:
    """A reader whose module the section does not name would not be found by whoever changes the format."""
    page = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")
    section = page.split("## Ways through a message")[1].split("\n## ")[0]
    named = set(re.findall(r"`((?:\w+/)+\w+\.py)`", section))
    ways = {"codec/value_reader.py", "codec/dissector.py", "codec/body_walker.py", "codec/text/json_bodies.py"}
    assert ways | BODIES["stripper"] | BY_HAND | {"codec/record_reader.py", "codec/message_set.py"} <= named
