"""``read -w --anonymise``: the same exchanges, counts and times, and no name, address or value."""

from __future__ import annotations

import random
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kwiresniff.base.needs import Needs
from kwiresniff.capture import open_captures
from kwiresniff.capture.packet_formats import PcapFormat
from kwiresniff.model import Exchange
from kwiresniff.packets.anonymous import Pseudonyms
from kwiresniff.packets.anonymous.pseudonyms import PUBLIC_WORDS
from kwiresniff.packets.anonymous.rebuilding import rebuilt
from kwiresniff.packets.source import Source, segments_of
from kwiresniff.session import Analyzer
from tests.support import capture_files, packet_builder, proxies, wrapped_recording
from tests.support.command import Run
from tests.support.conversation import Wire, heartbeat, heartbeat_response, request, response, string
from tests.support.damages import snapped
from tests.support.events import analyze_with
from tests.support.paths import CAPTURES
from tests.support.sample import one_in

QUICK = ["java-produce.pcap", "java-group-consumer.pcapng", "old-sasl-plain.pcap", "java-transactions.pcap"]
ALL = sorted(
    str(path.relative_to(CAPTURES))
    for path in CAPTURES.rglob("*.pcap*")
    if path.name.endswith((".pcap", ".pcapng", ".xz")) and path.stat().st_size < 400_000
    if path.parent.name != "lossy"  # a gap inside a message leaves zeros where there was more to be found
)
#: What readers say of bytes that were something and are zeros.
ZEROS = {"embedded_undecoded"}
#: Texts that are kept, by their fields, and what is no text of anybody.
KEPT_FIELDS = {"client_software_name", "client_software_version", "mechanism", "mechanisms"}
OURS = {"compression", "timestamp_type"}
TCP_FIELDS = (
    "frame.time_epoch", "tcp.srcport", "tcp.seq_raw", "tcp.ack_raw", "tcp.len", "tcp.flags", "tcp.window_size_value",
    "tcp.options.timestamp.tsval",
)  # fmt: skip
#: The network of the recordings, on the wire and as text.
ADDRESSES = {b"\x0a\x09\x00\x01", b"\x0a\x09\x00\x02", b"10.9.0."}


def exchanges(path: Path) -> list[Exchange]:
    analyzer = Analyzer(Needs("records"), show_secrets=True)
    return [event for event in analyze_with(analyzer, open_captures([str(path)])) if isinstance(event, Exchange)]


def members(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """All values in a body that hold no others, with the names of their fields."""
    if isinstance(value, dict):
        for key, member in value.items():
            yield from members(member, key)
    elif isinstance(value, list):
        for member in value:
            yield from members(member, name)
    else:
        yield name, value


def facts(exchange: Exchange) -> tuple[Any, ...]:
    """What must stay: who asked what and when, what came back, how many records in how many bytes."""
    sides = []
    for message in (exchange.request, exchange.response):
        if message is not None:
            counts = sum(value for name, value in members(message.body) if name == "records_count")
            sides.append((message.first_ns, message.last_ns, message.size_bytes, counts))
    problems = [problem.code for problem in exchange.problems if problem.code not in ZEROS]
    errors = [error[:2] for error in exchange.errors]
    return exchange.api, exchange.api_version, exchange.correlation_id, exchange.outcome, str((errors, sides, problems))


def texts(exchange: Exchange) -> Iterator[bytes]:
    """Every name, key and value of at least four letters."""
    named = [("client_id", exchange.client_id)]
    for message in (exchange.request, exchange.response):
        named += members(message.body) if message is not None else ()
    for name, value in named:
        raw = value.encode() if isinstance(value, str) else value
        if isinstance(raw, bytes) and name not in KEPT_FIELDS | OURS and sum(64 <= byte < 127 for byte in raw) >= 4:
            yield raw


def check(source: Path, out: Path, data: bytes) -> None:
    """Holds what was written, ``data`` in the file ``out``, to what it was made of."""
    before, after = exchanges(source), exchanges(out)
    assert len(after) == len(before)
    assert Counter(facts(one) for one in before if not one.problems) <= Counter(map(facts, after))
    software = {value.encode() for one in before for side in (one.request, one.response) if side is not None
                for name, value in members(side.body) if name in KEPT_FIELDS and isinstance(value, str)}  # fmt: skip
    secret = {text for one in before for text in texts(one) if text.decode("utf-8", "replace") not in PUBLIC_WORDS}
    assert [text for text in secret | ADDRESSES if text in data and not any(text in word for word in software)] == []


@pytest.mark.parametrize("name", QUICK)
def test_exchanges_stay_and_nothing_of_what_they_say(name: str, kwiresniff: Run, tmp_path: Path) -> None:
    """Records of every compression, groups, tokens of SASL with and without headers, transactions."""
    out = tmp_path / "out.pcapng"
    assert kwiresniff("read", "-w", str(out), "--anonymise", str(CAPTURES / name)).code == 0
    check(CAPTURES / name, out, out.read_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, ALL))
def test_exchanges_of_recordings_stay(name: str, kwiresniff: Run, tmp_path: Path) -> None:
    """Of every release, with what was lost, sent again and cut. Comments name APIs, as some messages do."""
    out = tmp_path / "out.pcapng"
    assert kwiresniff("read", "-q", "-w", str(out), "--anonymise", str(CAPTURES / name)).code in (0, 1)
    check(CAPTURES / name, out, b"".join(record.data for record, _ in segments_of(Source([str(out)]))))


def test_wireshark_finds_checksums_right_and_tcp_as_it_was(kwiresniff: Run, tmp_path: Path) -> None:
    """Those of IP and TCP; sequence numbers, flags and windows are those of the recording."""
    program = shutil.which("tshark")
    if program is None:
        pytest.skip("tshark is not installed")
    source, out = CAPTURES / "java-transactions.pcap", tmp_path / "out.pcapng"
    assert kwiresniff("read", "-w", str(out), "--anonymise", str(source)).code == 0
    checks = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"]
    wrong = [program, "-n", "-r", str(out), *checks, "-Y", "tcp.checksum.status == 0 or ip.checksum.status == 0"]
    assert subprocess.run(wrong, capture_output=True, text=True, check=True).stdout == ""
    fields = [word for name in TCP_FIELDS for word in ("-e", name)]
    found = [
        subprocess.run(
            [program, "-n", "-r", str(path), "-T", "fields", *fields], capture_output=True, check=True
        ).stdout
        for path in (out, source)
    ]
    assert set(found[0].splitlines()) <= set(found[1].splitlines())
    assert len(found[0].splitlines()) > 100


def test_the_key_tells_the_pseudonyms(kwiresniff: Run, tmp_path: Path) -> None:
    """The same file with the same key, another with another, or with none."""
    (tmp_path / "key").write_text("correct horse\n")
    (tmp_path / "other").write_text("battery staple\n")
    written = []
    for number, key in enumerate(("key", "key", "other", None)):
        out = tmp_path / f"{number}.pcapng"
        given = [] if key is None else ["--anonymise-key-file", str(tmp_path / key)]
        done = kwiresniff("read", "-w", str(out), "--anonymise", *given, str(CAPTURES / "sarama.pcap"))
        assert done.code == 0, done.err
        written.append(out.read_bytes())
    assert written[0] == written[1]
    assert len({*written}) == 3


def test_addresses_share_the_prefixes_that_they_shared() -> None:
    """Of IPv4 and IPv6, bit by bit."""
    pseudonyms, chance = Pseudonyms(b"key"), random.Random(3)
    for size in (4, 16):
        for _ in range(100):
            bits = 8 * size
            one = chance.getrandbits(bits)
            shared = chance.randrange(bits)
            two = one ^ (1 << (bits - 1 - shared)) ^ chance.getrandbits(bits - 1 - shared)
            new = [int.from_bytes(pseudonyms.address(each.to_bytes(size, "big")), "big") for each in (one, two)]
            assert bits - (new[0] ^ new[1]).bit_length() == shared


def test_names_have_pseudonyms_of_their_length() -> None:
    """The same for the same; letters and digits, whatever the name was made of."""
    pseudonyms = Pseudonyms(b"key")
    for name in ("orders", "Bestellungen-ÄÖÜ", "a", "x" * 249):
        found = pseudonyms.text(name.encode())
        assert len(found) == len(name.encode())
        assert found.isalnum()
        assert found == pseudonyms.text(name.encode()) != name.encode()
    assert pseudonyms.text(b"__consumer_offsets") == b"__consumer_offsets"


def test_what_cannot_be_read_is_zeros(kwiresniff: Run, tmp_path: Path) -> None:
    """A message with bytes behind it, one of an API that nobody knows, and a connection that is not Kafka's."""
    wire = Wire().open().up(request(3, 0, 1, struct.pack(">i", 1) + string("orders") + b"behind-it"))
    wire.down(response(1, struct.pack(">i", 0) + struct.pack(">i", 0)))
    wire.up(request(9_999, 0, 2, b"private-words")).down(response(2, b"private-answer")).close()
    source = capture_files.save(tmp_path / "in.pcap", wire, capture_files.irc())
    assert kwiresniff("read", "-q", "-w", str(tmp_path / "out.pcapng"), "--anonymise", source).code == 0
    data = (tmp_path / "out.pcapng").read_bytes()
    for word in (b"orders", b"behind", b"private", b"somebody", b"c-1"):
        assert word in Path(source).read_bytes()
        assert word not in data


@pytest.mark.parametrize("name", ["java-produce.pcap", "old-sasl-plain.pcap"])
@pytest.mark.parametrize("snap_length", [96, 128, 200])
def test_messages_that_are_cut_keep_their_front(name: str, snap_length: int, kwiresniff: Run, tmp_path: Path) -> None:
    """A request of which the end was not captured has its answer, and a Produce its acks. All cuts inside of texts."""
    source, out = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    segments = list(open_captures([str(CAPTURES / name)]))
    for more in (0, 1, 2, 3):
        source.write_bytes(capture_files.pcap(snapped(segments, snap_length + more)))
        assert kwiresniff("read", "-q", "-w", str(out), "--anonymise", str(source)).code == 0
        before = exchanges(source)
        assert [(one.api, one.outcome) for one in exchanges(out)] == [(one.api, one.outcome) for one in before]
        data = out.read_bytes()
        secret = {text for one in exchanges(CAPTURES / name) for text in texts(one)}
        told = {text for text in secret if text in data and text in source.read_bytes()}
        assert {text for text in told if text.decode("utf-8", "replace") not in PUBLIC_WORDS} == set()


@pytest.mark.parametrize("name", proxies.recorded())
def test_what_proxies_say_becomes_what_nobody_says(name: str, kwiresniff: Run, tmp_path: Path) -> None:
    """Preambles as real proxies and their clients have sent them: what follows is found, and names are not."""
    wire = Wire().open()
    said = proxies.recorded()[name]
    for side, data in said:
        wire.send(side, data)
    wire.up(heartbeat(1)).down(heartbeat_response(1)).up(heartbeat(2)).down(heartbeat_response(2)).close()
    source, out = capture_files.save(tmp_path / "in.pcap", wire), tmp_path / "out.pcapng"
    assert kwiresniff("read", "-q", "-w", str(out), "--anonymise", source).code == 0
    before, after = exchanges(Path(source)), exchanges(out)
    assert [facts(one) for one in after] == [facts(one) for one in before]
    for one, other in zip(before, after, strict=True):
        assert (one.connection.proxied or {}).get("by") == (other.connection.proxied or {}).get("by")
    written = b"".join(record.data for record, _ in segments_of(Source([str(out)])))
    for word in re.findall(rb"[\w.-]{4,}", b" ".join(data for _, data in said)):
        assert word in (b"PROXY", b"CONNECT", b"HTTP", b"QUIT") or word not in written


def test_nothing_of_a_tunnel_is_left(kwiresniff: Run, tmp_path: Path) -> None:
    """VXLAN: neither the outer addresses nor the header; what it carried is there."""
    source = wrapped_recording.capture(
        tmp_path / "in.pcap",
        lambda frame: wrapped_recording.udp(struct.pack(">II", 0x08000000, 0xABCDEF00) + frame, 4789),
    )
    assert kwiresniff("read", "-q", "-w", str(tmp_path / "out.pcapng"), "--anonymise", source).code == 0
    data = (tmp_path / "out.pcapng").read_bytes()
    assert b"\xab\xcd\xef" not in data
    assert packet_builder.CLIENT + packet_builder.BROKER not in data
    assert packet_builder.MACS not in data
    count = len(exchanges(Path(source)))
    assert len(exchanges(tmp_path / "out.pcapng")) == count > 3


@pytest.mark.slow
def test_tls_is_zeros(kwiresniff: Run, tmp_path: Path) -> None:
    """Hellos tell names, certificates too; keys are left out."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed")
    log, out = CAPTURES / "keys" / "kcat-tls.log", tmp_path / "out.pcapng"
    args = ["read", "-q", "-w", str(out), "--anonymise", "--keylog", str(log), str(CAPTURES / "kcat-tls.pcap")]
    assert kwiresniff(*args).code == 0
    data = out.read_bytes()
    assert b"\x16\x03\x01" not in data
    assert not any(line.split()[-1] in data for line in log.read_bytes().splitlines() if line.strip())
    assert len(list(open_captures([str(out)]))) > 20


def test_it_needs_packets_to_change(kwiresniff: Run) -> None:
    """Without ``-w`` nothing would be anonymous."""
    done = kwiresniff("read", "--anonymise", str(CAPTURES / "sarama.pcap"))
    assert done.code == 2
    assert "-w FILE" in done.err


def test_a_key_of_pseudonyms_alone_is_a_mistake(kwiresniff: Run, tmp_path: Path) -> None:
    """Whoever gives one means to write nothing that names anybody."""
    key, out = tmp_path / "key", tmp_path / "out.pcap"
    key.write_text("k")
    source = str(CAPTURES / "sarama.pcap")
    done = kwiresniff("read", "-w", str(out), "--anonymise-key-file", str(key), source)
    assert done.code == 2 and "say that, too" in done.err
    assert not out.exists()
    done = kwiresniff("read", "-w", str(out), "--anonymise", "--anonymise-key-file", str(tmp_path / "no"), source)
    assert done.code == 1 and "--redact" not in done.err


def test_redacting_does_not_change_packets(kwiresniff: Run, tmp_path: Path) -> None:
    """Whoever thinks so is told."""
    done = kwiresniff("read", "--redact", "-w", str(tmp_path / "out.pcap"), str(CAPTURES / "sarama.pcap"))
    assert done.code == 2
    assert "--anonymise" in done.err


@pytest.mark.parametrize("seed", range(3))
def test_damaged_captures_are_written_all_the_same(seed: int, kwiresniff: Run, tmp_path: Path) -> None:
    """With bytes anywhere changed, in headers of packets, of messages and of batches."""
    chance = random.Random(seed)
    data = bytearray((CAPTURES / "sarama.pcap").read_bytes())
    for _ in range(200):
        data[chance.randrange(24, len(data))] = chance.randrange(256)
    source = tmp_path / "in.pcap"
    source.write_bytes(data)
    done = kwiresniff("read", "-q", "-w", str(tmp_path / "out.pcapng"), "--anonymise", str(source))
    assert "internal error" not in done.err
    assert done.code in (0, 1)


def test_ipv6_packets_have_their_checksums(tmp_path: Path) -> None:
    """As tshark works them out; what is read of the packet is what it was made of."""
    payload = bytes(range(99))
    buffer = packet_builder.tcp(payload, seq=7)
    flow = bytes(15) + b"\x01" + bytes(15) + b"\x02" + packet_builder.FLOW[-4:]
    segment = (1, 10**18, flow, 7, 2, 0x18, buffer, 20, 119, 0)
    packet, wire = rebuilt(segment, payload, Pseudonyms(b"key"))
    form = PcapFormat()
    path = tmp_path / "out.pcap"
    path.write_bytes(form.begin() + form.interface(1, 65_535) + form.packet(0, 10**18, packet, wire))
    (found,) = open_captures([str(path)])
    assert (found[3:6], found[6][found[7] : found[8]]) == (segment[3:6], payload)
    assert found[2][:32] == b"".join(Pseudonyms(b"key").address(flow[at : at + 16]) for at in (0, 16))
    program = shutil.which("tshark")
    if program is not None:
        checks = ["-o", "tcp.check_checksum:TRUE", "-T", "fields", "-e", "tcp.checksum.status"]
        done = subprocess.run([program, "-n", "-r", str(path), *checks], capture_output=True, text=True, check=True)
        assert done.stdout == "1\n"
