"""Marked values in every place where a record, a credential or a config can stand, and what any command writes.

Records are marked with one text, credentials with another. No command may write either, in the clear, in hex or in
base64, with ``--redact``, and none the credentials without it. Messages are encoded by Kafka's definitions, batches
laid out by hand (protocol guide, Record Batch and Message Set).
"""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from struct import pack
from typing import Any

import cramjam
import pytest
from pyarrow import parquet

from kwiresniff import schema
from kwiresniff.codec.batch_libraries import crc32c
from kwiresniff.codec.primitives import write_varlong
from kwiresniff.export.table_columns import READABLE
from kwiresniff.model import Direction
from kwiresniff.pipeline.batches import table_batches
from kwiresniff.pipeline.plan import WorkUnit, find_sources
from kwiresniff.pipeline.unit_reader import Settings
from tests.support.capture_files import save
from tests.support.command import Run
from tests.support.conversation import Wire, exchange_frames, known_wire
from tests.support.encoding import encoder
from tests.support.secret_messages import body

RECORD = "QxRECORDxQ"
SECRET = "ZjSECRETjZ"


#: Snappy, LZ4 and zstd, by the codec's number (protocol guide, attributes of a batch).
COMPRESS: dict[int, Callable[[bytes], bytes]] = {
    2: lambda data: bytes(cramjam.snappy.compress_raw(data)),
    3: lambda data: bytes(cramjam.lz4.compress(data)),
    4: lambda data: bytes(cramjam.zstd.compress(data)),
}
#: The topic id of the metadata log (KIP-516).
METADATA_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def blob(data: bytes) -> bytes:
    return write_varlong(len(data)) + data


def record(key: bytes, value: bytes) -> bytes:
    header = blob(f"h-{RECORD}".encode()) + blob(f"v-{RECORD}".encode())
    content = b"\0" + write_varlong(0) + write_varlong(0) + blob(key) + blob(value) + write_varlong(1) + header
    return write_varlong(len(content)) + content


def batch(
    key: bytes = f"k-{RECORD}".encode(), value: bytes = f"v-{RECORD}".encode(), *, codec: int = 0, magic: int = 2,
    crc: int = 0, count: int = 1, cut: int = 0, lost: int = 0,
) -> bytes:  # fmt: skip
    """A record batch, whose CRC is off by ``crc``; its records lose the last ``lost`` bytes, the batch ``cut``."""
    records = record(key, value)
    records = (gzip.compress(records) if codec == 1 else COMPRESS.get(codec, bytes)(records))[: -lost or None]
    front = pack(">hiqqqhii", codec, 0, 1700000000000, 1700000000000, -1, -1, -1, count)
    checked = front + records
    body = pack(">ib", 0, magic) + pack(">I", crc32c()(checked) ^ crc) + checked
    whole = pack(">qi", 0, len(body)) + body
    return whole[: len(whole) - cut]


def message(magic: int, codec: int = 0, value: bytes = f"v-{RECORD}".encode()) -> bytes:
    """A message of the sets before Kafka 0.11."""
    content = pack(">bb", magic, codec) + (pack(">q", 1700000000000) if magic else b"")
    key = f"k-{RECORD}".encode()
    content += pack(">i", len(key)) + key + pack(">i", len(value)) + value
    content = pack(">I", zlib.crc32(content)) + content
    return pack(">qi", 0, len(content)) + content


def record_sets() -> Iterator[bytes]:
    """Sound ones of every format, and what is wrong with others."""
    yield batch()
    yield batch(codec=1)
    yield batch(crc=1)
    yield batch(codec=1, lost=9)
    yield batch(codec=7)
    for codec in COMPRESS:
        yield batch(codec=codec)
        yield batch(codec=codec, lost=9)
    yield batch(magic=9)
    yield batch(lost=3)
    yield batch(count=3)
    yield batch(count=-1)
    yield batch(cut=5)
    yield batch() + batch(magic=9) + batch()
    for magic in (0, 1):
        yield message(magic)
        yield message(magic, 1, gzip.compress(message(magic)))
        yield message(magic, 1, message(magic))
        yield message(magic)[:-4]


CONFIGS = json.dumps({"properties": {"connection.password": SECRET, "connection.url": f"jdbc:x://u:{SECRET}@h/d"}})
SESSION = json.dumps({"key": SECRET, "algorithm": "HmacSHA256", "creation-timestamp": 1})


def connect_sets() -> Iterator[bytes]:
    """Records of Connect's config topic, and some that cannot be read."""
    for codec in (0, 1, *COMPRESS):
        yield batch(b"connector-a", CONFIGS.encode(), codec=codec)
        yield batch(b"task-a-0", CONFIGS.encode(), codec=codec)
        yield batch(b"session-key", SESSION.encode(), codec=codec)
        yield batch(b"any", CONFIGS.encode(), codec=codec)
    yield batch(b"connector-a", CONFIGS.encode()[:-3])
    yield batch(b"connector-a", CONFIGS.encode(), crc=1)
    yield batch(b"connector-a", CONFIGS.encode(), magic=9)
    yield batch(b"connector-a", CONFIGS.encode(), count=2)
    yield message(1, 0, CONFIGS.encode())


def encoded(api_key: int, version: int, direction: Direction, **given: Any) -> bytes:
    return encoder(api_key, version, direction)(body(schema.message(api_key, version, direction).fields, given))


class Talk:
    """Exchanges on a connection, each answered; ``frames`` are theirs, each with API, version and direction."""

    def __init__(self) -> None:
        self.wire = known_wire()
        self.number = 1
        self.frames: list[tuple[int, int, Direction, bytes]] = []

    def exchange(self, api_key: int, version: int, asked: bytes, answered: bytes) -> None:
        self.number += 1
        up, down = exchange_frames(api_key, version, self.number, asked, answered)
        self.wire.up(up).down(down)
        self.frames += (api_key, version, "request", up), (api_key, version, "response", down)

    def forwarded(self, api_key: int, version: int, asked: bytes, answered: bytes) -> None:
        """The same, as a broker forwards it to the controller (KIP-590)."""
        up, down = exchange_frames(api_key, version, self.number, asked, answered)
        outer = encoded(58, 0, "request", request_data=up[4:], client_host_address=b"\x7f\0\0\1")
        self.exchange(58, 0, outer, encoded(58, 0, "response", response_data=down[4:]))


def explaining() -> Iterator[tuple[int, int]]:
    """The APIs in whose responses a broker explains itself, each in its newest version."""
    for api in schema.apis():
        version = schema.version_range(api.key)[1]
        names = str(schema.message(api.key, version, "response").fields)
        if "error_message" in names or "status_detail" in names:
            yield api.key, version


def explained(said: str) -> dict[str, Any]:
    names = ("error_message", "batch_index_error_message", "acknowledge_error_message", "status_detail")
    return {"error_code": 42, **dict.fromkeys(names, said)}


def compact(text: str | bytes) -> bytes:
    """A COMPACT_STRING or COMPACT_BYTES of less than 127 bytes."""
    raw = text.encode() if isinstance(text, str) else text
    return bytes([len(raw) + 1]) + raw


def metadata_records(marked: str) -> Iterator[bytes]:
    """Records of the metadata log: a config, SCRAM credentials (KIP-900); frame version, type, version, fields."""
    config = compact("1") + compact("ssl.keystore.password") + compact(marked) + b"\0"
    yield b"\1\4\0" + b"\4" + config
    yield b"\1\x0b\0" + compact("alice") + b"\1" + 3 * compact(marked) + pack(">i", 4096) + b"\0"
    yield b"\1\x7f\0" + compact(marked)


def internal_sets() -> Iterator[tuple[str, bytes]]:
    """Records of the topics of groups and transactions: a commit with its metadata, and what cannot be read."""
    text = pack(">h", len(RECORD)) + RECORD.encode()
    commit_key = pack(">hh", 1, 1) + b"g" + pack(">h", 1) + b"t" + pack(">i", 0)
    yield "__consumer_offsets", batch(commit_key, pack(">hqi", 3, 7, -1) + text + pack(">q", 1))
    yield "__transaction_state", batch(pack(">h", 0) + text, pack(">hqhi", 0, 1, 0, 60_000) + text)
    for topic in ("__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"):
        yield topic, batch()
        yield topic, batch(crc=1)


def records_capture(path: Path) -> str:
    """Records in all formats, produced and fetched, and errors that quote them."""
    talk = Talk()
    said = {"error_message": f"bad {RECORD}", "batch_index_error_message": f"bad {RECORD}"}
    for records in record_sets():
        asked = encoded(0, 8, "request", records=records, acks=1)
        talk.exchange(0, 8, asked, encoded(0, 8, "response", error_code=87, **said))
        talk.exchange(1, 11, encoded(1, 11, "request"), encoded(1, 11, "response", records=records))
    sound = encoded(0, 8, "request", records=batch())
    at = sound.index(b"orders")
    for damaged in (sound[: at - 1] + b"\x30" + sound[at:], sound[:-3], sound + f"t-{RECORD}".encode()):
        talk.exchange(0, 8, damaged, encoded(0, 8, "response", **said))
    talk.exchange(0, 3, encoded(0, 3, "request", records=message(1)), encoded(0, 3, "response"))
    for version in (3, 8, 11):  # the length of the client id goes on into the records
        talk.number += 1
        whole = encoded(0, version, "request", records=batch())
        up, down = exchange_frames(0, version, talk.number, whole, encoded(0, version, "response"))
        length = up.index(RECORD.encode()) + len(RECORD) - 14
        talk.wire.up(up[:12] + pack(">h", length) + up[14:]).down(down)
    for topic, records in internal_sets():
        asked, answered = encoded(0, 8, "request", records=records, name=topic), encoded(0, 8, "response")
        talk.exchange(0, 8, asked, answered)
        talk.forwarded(0, 8, asked, answered)
        talk.exchange(1, 11, encoded(1, 11, "request"), encoded(1, 11, "response", records=records, topic=topic))
    for records in (batch(), batch(codec=4), batch(crc=1)):
        talk.exchange(78, 1, encoded(78, 1, "request"), encoded(78, 1, "response", records=records))
        talk.exchange(59, 0, encoded(59, 0, "request"), encoded(59, 0, "response", unaligned_records=records))
    for api_key, version in explaining():
        answered = encoded(api_key, version, "response", **explained(f"bad {RECORD}"))
        talk.exchange(api_key, version, encoded(api_key, version, "request"), answered)
        talk.forwarded(api_key, version, encoded(api_key, version, "request"), answered)
    return save(path, talk.wire.close())


def secret_messages() -> Talk:
    """Credentials in all messages that have any, by themselves and forwarded, and in what brokers say of them."""
    secret, name = SECRET.encode(), "ssl.keystore.password"
    talk = Talk()
    configs: dict[str, Any] = {
        "name": name, "config_name": name, "key": name, "value": SECRET, "config_value": SECRET,
        "is_sensitive": False, "error_message": None, "hmac": secret, "salt": secret, "salted_password": secret,
    }  # fmt: skip
    for api_key in (19, 32, 33, 38, 39, 40, 41, 44, 51):
        for version in {schema.version_range(api_key)[0], schema.version_range(api_key)[1]}:
            asked = encoded(api_key, version, "request", **configs)
            said = {19: f"Invalid value {SECRET} for {name}", 51: f"The salt is {SECRET}."}.get(api_key)
            if api_key in (32, 33, 44):
                said = f"Invalid value {SECRET} for {name}"
            answered = encoded(api_key, version, "response", **{**configs, "error_message": said})
            talk.exchange(api_key, version, asked, answered)
            talk.forwarded(api_key, version, asked, answered)
    for said in (SECRET, secret.hex(), base64.b64encode(secret).decode()):
        asked = encoded(51, 0, "request", **configs)
        talk.exchange(51, 0, asked, encoded(51, 0, "response", error_message=f"{said} is refused"))
    for api_key, version in explaining():
        answered = encoded(api_key, version, "response", **explained(f"refused: password={SECRET}"))
        talk.exchange(api_key, version, encoded(api_key, version, "request"), answered)
        talk.forwarded(api_key, version, encoded(api_key, version, "request"), answered)
    for value in metadata_records(SECRET):
        known = {"name": "__cluster_metadata", "topic_id": METADATA_ID}
        answered = encoded(59, 0, "response", unaligned_records=batch(b"", value), **known)
        talk.exchange(59, 0, encoded(59, 0, "request"), answered)
        answered = encoded(1, 17, "response", records=batch(b"", value), **known)
        talk.exchange(1, 17, encoded(1, 17, "request", **known), answered)
    return talk


def secrets_capture(path: Path) -> str:
    """Credentials in messages, in Connect's records and in SASL tokens."""
    talk = secret_messages()
    for records in connect_sets():
        for topic in ("connect-configs", "any"):
            asked = encoded(0, 8, "request", records=records, name=topic)
            talk.exchange(0, 8, asked, encoded(0, 8, "response"))
            answered = encoded(1, 11, "response", records=records, topic=topic)
            talk.exchange(1, 11, encoded(1, 11, "request", topic=topic), answered)
    secret = SECRET.encode()
    wires = [talk.wire.close()]
    for port, mechanism, token in (
        (40_001, "PLAIN", b"\0alice\0" + secret),
        (40_002, "SCRAM-SHA-256", b"c=biws,r=x,p=" + secret),
        (40_003, "OAUTHBEARER", b"n,,\x01auth=Bearer " + secret + b"\x01\x01"),
        (40_004, "AWS_MSK_IAM", json.dumps({"x-amz-credential": f"A{SECRET}", "x-amz-signature": SECRET}).encode()),
        (40_005, "UNKNOWN", secret),
    ):
        sasl = Talk()
        sasl.wire = Wire(client_port=port).open()
        sasl.exchange(17, 1, encoded(17, 1, "request", mechanism=mechanism), encoded(17, 1, "response"))
        answered = encoded(36, 1, "response", auth_bytes=secret, error_message=f"{SECRET} is wrong")
        sasl.exchange(36, 1, encoded(36, 1, "request", auth_bytes=token), answered)
        wires.append(sasl.wire.close())
    return save(path, *wires)


def forms(marked: str) -> set[bytes]:
    """What a marked text looks like in an output: itself, in hex with and without spaces, in base64 at any offset.

    A row of hex may end inside of it, so each half is looked for.
    """
    raw = marked.encode()
    found = {raw, *(half.hex(gap).encode() for half in (raw[:5], raw[5:]) for gap in (" ", ":"))}
    found |= {half.hex().encode() for half in (raw[:5], raw[5:])}
    for offset in range(3):
        found.add(base64.b64encode(b"?" * offset + raw)[4 if offset else 0 :][:8])
    return found


def content(path: Path) -> bytes:
    """What a file holds; columns are decompressed."""
    if path.suffix == ".parquet":
        return repr(parquet.read_table(path).to_pylist()).encode("utf-8", "surrogateescape")
    return path.read_bytes()


COMMANDS = [
    "read", "read -v", "read -vv", "read -o summary", "read -o jsonl", "read -o json", "read -v -Y api==Produce",
    "stats --by topic,client,api", "stats -o json", "topics", "topics -o json", "clients", "clients -o json", "groups",
    "producers", "doctor", "doctor -o json", "audit --target 4.0",
]  # fmt: skip
FILES = [
    "export -O out.jsonl",
    "export -O out.json",
    "export -O out.csv",
    "export -O out.parquet",
    "report -O out.html",
]


@pytest.mark.parametrize("command", COMMANDS + FILES)
@pytest.mark.parametrize(
    ("capture", "marked", "options"),
    [(records_capture, RECORD, ["--redact"]), (secrets_capture, SECRET, ["--redact"]), (secrets_capture, SECRET, [])],
    ids=["records redacted", "secrets redacted", "secrets"],
)
def test_no_command_writes_what_is_marked(
    kwiresniff: Run, tmp_path: Path, command: str, capture: Any, marked: str, options: list[str]
) -> None:
    name, *words = command.split()
    out = tmp_path / words[-1] if command in FILES else None
    if out is not None:
        words[-1] = str(out)
    done = kwiresniff(name, *words, *options, capture(tmp_path / "c.pcap"))
    assert done.code in (0, 1) and "Traceback" not in done.err
    written = (done.out + done.err).encode("utf-8", "surrogateescape")
    if out is not None:
        written += content(out)
    assert not [form for form in forms(marked) if form in written]


@pytest.mark.parametrize("table", READABLE)
@pytest.mark.parametrize(
    ("capture", "marked", "key"),
    [(records_capture, RECORD, "k"), (secrets_capture, SECRET, "k"), (secrets_capture, SECRET, None)],
    ids=["records redacted", "secrets redacted", "secrets"],
)
def test_no_table_of_the_pipeline_has_what_is_marked(
    tmp_path: Path, table: str, capture: Any, marked: str, key: str | None
) -> None:
    """As its tasks read a capture, without Spark; raw segments are left out where they are asked for by name."""
    (source,) = find_sources([capture(tmp_path / "c.pcap")])
    found = table_batches(table, WorkUnit(source), Settings(redact_key=key))
    written = repr([batch.to_pylist() for batch in found]).encode("utf-8", "surrogateescape")
    assert not [form for form in forms(marked) if form in written]


@pytest.mark.parametrize("output", ["-v", "-vv", "-ojson"])
def test_decode_writes_no_credential(kwiresniff: Run, output: str) -> None:
    """Of any message, by itself."""
    for api_key, version, direction, frame in secret_messages().frames:
        words = ["decode", output, f"--{direction}", "--api", str(api_key), "--version", str(version), frame.hex()]
        done = kwiresniff(*words)
        assert done.code in (0, 1) and "Traceback" not in done.err
        written = (done.out + done.err).encode("utf-8", "surrogateescape")
        assert not [form for form in forms(SECRET) if form in written], (api_key, version, direction)


def test_the_marked_values_are_there_when_they_are_asked_for(kwiresniff: Run, tmp_path: Path) -> None:
    """Otherwise the test above would look for what no capture has."""
    shown = kwiresniff("read", "-o", "jsonl", "--show-secrets", secrets_capture(tmp_path / "s.pcap"))
    assert shown.out.count(SECRET) > 40
    assert kwiresniff("read", "-o", "jsonl", records_capture(tmp_path / "r.pcap")).out.count(RECORD) > 60
