"""What people paste into ``kwiresniff decode``. The texts are made by the tools that they come from."""

from __future__ import annotations

import base64
import contextlib
import json
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from kwiresniff.cli import dumps, notations
from kwiresniff.cli.dumps import NotationError
from kwiresniff.cli.notations import readings
from tests.support.command import Run

CAPTURES = Path(__file__).resolve().parents[2] / "captures"
#: ApiVersions v0 by the protocol guide, with a client id that a dump shows as hex, dots and bars beside the bytes.
FRAME = bytes.fromhex("0000001a0012000000000001") + b"\x00\x10" + b"ab .|>*\xc3\xa9\\'\"123 "
#: The same with lines that dumps leave out as repeated.
REPEATING = bytes.fromhex("000000740012000000000001") + b"\x00\x6a" + b"a" * 106
#: Nothing that cannot be printed but zeros, no whole number of lines, no even number of bytes.
ODD = bytes.fromhex("0000000d0012000000000001") + b"\x00\x03cli"
ALL = [FRAME, REPEATING, ODD, FRAME * 3]

TOOLS = [
    "hexdump -C",
    "hexdump -v -C",
    "hexdump",
    "hexdump -x",
    "hexdump -b",
    "hexdump -c",
    "hexdump -d",
    "xxd",
    "xxd -a",
    "xxd -p",
    "xxd -i",
    "xxd -u",
    "xxd -g 1",
    "xxd -g 4",
    "xxd -c 10",
    "od",
    "od -x",
    "od -b",
    "od -c",
    "od -t x1",
    "od -t x1z",
    "od -A x -t x1",
    "od -A x -t x1z -v",
    "od -A d -t x1",
    "od -v -A n -t x1",
    "od -t u1",
    "od -t d1",
    "od -t x4",
    "od -t o2",
    "base64",
    "base64 -w 0",
    "base64 -w 64",
]


def first(text: str) -> bytes:
    """What a text is taken for when nothing else is known."""
    return readings(text)[0][1]


@pytest.mark.parametrize("data", ALL)
@pytest.mark.parametrize("tool", TOOLS)
def test_the_output_of_a_tool_is_read_back(tmp_path: Path, tool: str, data: bytes) -> None:
    """Words at the end that a tool has filled up have a zero more, where no offset tells."""
    name, *options = tool.split()
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    file = tmp_path / "frame"
    file.write_bytes(data)
    text = subprocess.run([name, *options, str(file)], capture_output=True, check=True, text=True).stdout
    assert first(text) == data


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
@pytest.mark.parametrize(
    "expression", ["b", "[...b]", "JSON.stringify(b)", "new Uint8Array(b)", "b.toString('base64url')"]
)
def test_what_node_prints_is_read_back(expression: str) -> None:
    """Buffers, arrays and their JSON; of a long one only the front, as Node says."""
    code = f"const b = Buffer.from('{ODD.hex()}', 'hex'); console.log({expression})"
    assert first(subprocess.run(["node", "-e", code], capture_output=True, check=True, text=True).stdout) == ODD


def signed(data: bytes) -> list[int]:
    return [one - 256 if one > 127 else one for one in data]


@pytest.mark.parametrize("data", ALL)
def test_literals_are_read(data: bytes) -> None:
    """Python's by its own repr; Go's fmt prints %v and %#v so; Java's Arrays.toString and literals are signed."""
    hexes = [f"0x{one:02x}" for one in data]
    escaped = "".join(f"\\x{one:02x}" for one in data)
    texts = [
        repr(data),
        repr(bytearray(data)),
        f"data = {data!r}",
        f"bytes({list(data)})",
        str(list(data)),
        f"[{' '.join(map(str, data))}]",
        f"[]byte{{{', '.join(map(hex, data))}}}",
        f"{signed(data)}",
        f"new byte[] {{{', '.join(f'(byte) {one}' if one < 0 else str(one) for one in signed(data))}}};",
        f"new byte[]{{{', '.join(f'(byte)0x{one:02X}' if one > 127 else f'0x{one:02X}' for one in data)}}}",
        f"const unsigned char pkt[{len(data)}] = {{\n{', '.join(hexes)} /* frame */\n}};",
        f"<<{','.join(map(str, data))}>>",
        f"[{', '.join(f'{one}u8' for one in data)}]",
        f"byteArrayOf({', '.join(map(str, signed(data)))})",
        escaped,
        '"' + '"\n"'.join(f"\\x{one:02X}" for one in data) + '"',
        "$'" + "".join(f"\\x{one:02x}" for one in data) + "'",
        '"' + "".join(f"\\{one:03o}" for one in data) + '"',
        '"' + "".join(f"\\u{one:04x}" for one in data) + '"',
        "-".join(f"{one:02X}" for one in data),
        ", ".join(hexes),
        f"\\x{data.hex()}",
        f"X'{data.hex()}'",
        f"[{', '.join(f'{one:02x}' for one in data)}]",
        f"[{', '.join(f'{one:x}' for one in data)}]",
        f"$1 ==> byte[{len(data)}] {{ {', '.join(map(str, signed(data)))} }}",
        f"[sarama] 2024/11/25 14:00:01 bytes: [{' '.join(map(str, data))}]",
        " ".join(map(str, signed(data))),
        "".join(f"\\{one:03o}" for one in data),
        f"printf '{escaped}' | nc broker 9092",
        f"echo -en '{escaped}' > /dev/tcp/broker/9092",
        f"###[ Raw ]###\n     load      = {data!r}",
        f"bytes.fromhex('{data.hex()}')",
        f"hextoraw('{data.hex()}')",
        f"Buffer.from('{base64.b64encode(data).decode()}', 'base64')",
        f"data:application/octet-stream;base64,{base64.b64encode(data).decode()}",
        json.dumps({"level": "error", "logger": "kafka.network", "payload": base64.b64encode(data).decode()}),
        json.dumps({"tcp.srcport": "40000", "tcp.payload": data.hex(":")}, indent=2),
        f"java.nio.HeapByteBuffer[pos=0 lim={len(data)} cap={len(data)}] {data.hex()}",
    ]
    assert [text for text in texts if first(text) != data] == []


def test_wireshark_s_ways_to_copy_are_read() -> None:
    """With and without the text beside it: three blanks before the bytes, and before the text."""
    rows = [(at, FRAME[at : at + 16]) for at in range(0, len(FRAME), 16)]
    for shown in (False, True):
        text = "\n".join(
            f"{at:04x}   {row.hex(' '):47}   {''.join(chr(one) if 32 <= one < 127 else '.' for one in row)}"
            if shown
            else f"{at:04x}   {row.hex(' ')}"
            for at, row in rows
        )
        assert first(text) == FRAME


def halves(row: bytes, between: str, width: int = 0) -> str:
    """Hex of sixteen bytes with something between the halves, filled up with blanks."""
    return f"{row[:8].hex(' ')}{between if len(row) > 8 else ' ' * len(between)}{row[8:].hex(' ')}".ljust(width)


@pytest.mark.parametrize("data", ALL)
def test_dumps_of_other_programs_are_read(data: bytes) -> None:
    """Wireshark's "Follow Stream" as hex dump and as YAML, ``openssl s_client -debug`` (BIO_dump), ``curl --trace``,
    ``ngrep -x``, ``strace -e write=all``, gdb's ``x/8xb``, PowerShell's Format-Hex, hexyl; and what mail and web pages
    make of one."""
    rows = [(at, data[at : at + 16]) for at in range(0, len(data), 16)]
    shown = {at: "".join(chr(one) if 32 <= one < 127 else "." for one in row) for at, row in rows}
    yaml = "\n".join(textwrap.wrap(base64.b64encode(data).decode(), 60))
    dumps = {
        "wireshark": [f"{at:08X}  {halves(row, '  ', 48)}  {shown[at][:8]} {shown[at][8:]}" for at, row in rows],
        "yaml": ["packets:", "  - packet: 4", "    data: !!binary |", textwrap.indent(yaml, "      ")],
        "openssl": [f"{at:04x} - {halves(row, '-', 49)}  {shown[at]}" for at, row in rows],
        "curl": [f"{at:04x}: {row.hex(' '):47} {shown[at]}" for at, row in rows],
        "ngrep": [f"  {halves(row, '    ', 53)}{shown[at]}" for at, row in rows],
        "strace": [f" | {at:05x}  {halves(row, '  ', 50)}{shown[at]:16} |" for at, row in rows],
        "gdb": [
            f"0x55d0{at:08x} <buffer+{at}>:\t" + "\t".join(f"0x{one:02x}" for one in data[at : at + 8])
            for at in range(0, len(data), 8)
        ],
        "powershell": [f"{at:016X} {row.hex(' ').upper():47} {shown[at]}" for at, row in rows],
        "hexyl": [f"│{at:08x}│ {halves(row, ' ┊ ', 49)} │{shown[at][:8]:8}┊{shown[at][8:]:8}│" for at, row in rows],
        "mail": [f"> {at:08x}: {row.hex(' ', -2):39}  {shown[at]}" for at, row in rows],
        "page": [f"{at:08x}:\u00a0{row.hex(' ', -2):39}\u00a0\u00a0{shown[at]}" for at, row in rows],
    }
    assert [name for name, lines in dumps.items() if first("\n".join(lines)) != data] == []


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
@pytest.mark.parametrize("option", ["-x", "-X", "-xx", "-XX"])
def test_packets_of_tcpdump_are_their_payload(kwiresniff: Run, tmp_path: Path, option: str) -> None:
    """The requests of a connection, as ``read`` has them, without the headers of link, IP and TCP."""
    capture = str(CAPTURES / "first-look.pcap")
    found = map(json.loads, kwiresniff("read", "-o", "jsonl", capture).out.splitlines())
    exchanges = [one for one in found if one["kind"] == "exchange" and one["connection"] == 1]
    host, port = exchanges[0]["client"].split(":")
    command = ["tcpdump", "-nr", capture, option, f"src host {host} and src port {port}"]
    dump = tmp_path / "dump"
    dump.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    done = kwiresniff("decode", "-o", "json", "--file", str(dump))
    bodies = [json.loads(line)["body"] for line in done.out.splitlines()]
    assert (done.code, bodies) == (0, [one["request"]["body"] for one in exchanges])


@pytest.mark.skipif(shutil.which("tcpdump") is None, reason="tcpdump is not installed")
def test_packets_with_blanks_of_both_directions(kwiresniff: Run, tmp_path: Path) -> None:
    """tcpdump -X shows a blank as a dot; that the responses beside the requests are not decoded is told."""
    command = ["tcpdump", "-nr", str(CAPTURES / "java-produce.pcap"), "-X", "-c", "9"]
    dump = tmp_path / "Packets.txt"
    dump.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    assert b" 2000 " in dump.read_bytes()
    done = kwiresniff("decode", "-o", "json", "--file", str(dump))
    apis = [json.loads(line)["api"] for line in done.out.splitlines()]
    assert (done.code, apis) == (0, ["ApiVersions", "Metadata", "InitProducerId"])
    assert f"{dump} has packets of more connections or directions" in done.err


def test_lines_that_belong_to_no_dump_are_counted(kwiresniff: Run, tmp_path: Path) -> None:
    """Lines of a log between those of a dump are left out, and their number is told."""
    rows = [f"{at:08x}: {ODD[at : at + 8].hex(' ')}" for at in range(0, len(ODD), 8)]
    log = tmp_path / "log"
    log.write_text("INFO begin\n\n" + "\nDEBUG more\n".join(rows) + "\n")
    done = kwiresniff("decode", "--file", str(log))
    assert (done.code, "3 lines that belong to no dump left out" in done.err) == (0, True)
    log.write_text("\n".join(rows))
    assert kwiresniff("decode", "--file", str(log)).err == ""


def test_a_file_keeps_its_name_in_an_error(kwiresniff: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first letter of click's messages becomes small, that of a file's name does not."""
    monkeypatch.chdir(tmp_path)
    Path("Notes.txt").write_text("hello world")
    assert "decode: Notes.txt is not a notation" in kwiresniff("decode", "--file", "Notes.txt").err


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (9, "another message follows, cut short in its header: 18 of the 23 bytes that the length says are missing; it "
            "is a Metadata v1 request"),
        (7, "too few for a length and a header"),
        (1, "too few for a length and a header"),
    ],
)  # fmt: skip
def test_a_later_frame_cut_in_its_header(kwiresniff: Run, there: int, said: str) -> None:
    """As of the first frame, it is said what it is and how much of it is missing."""
    metadata = bytes.fromhex("00000017 0003 0001 00000007 0003") + b"cli" + bytes.fromhex("00000002 0001 61 0001 62")
    done = kwiresniff("decode", (ODD + FRAME + metadata[:there]).hex())
    assert (done.code, said in done.out) == (1, True)


@pytest.mark.parametrize(
    "text",
    [
        "hello",
        "Hello World",
        "select * from orders",
        "2024-11-25 14:00:01 INFO started",
        "NullPointerException at Foo.java:12",
        "kafka-console-consumer",
        "https://example.org/x",
        "C:\\x00\\path",
        "'plain text'",
        "[]",
        "0x",
        "acks=all",
        "id AAAAAAAAAAAAAAAAAAAAAQ of the topic",
        "commit 2ae524ed625438c5aabbccddeeff001122334455 of kafka",
        "java.lang.IllegalStateException: org/apache/kafka/common/Foo",
    ],
)
def test_text_is_not_read_as_bytes(kwiresniff: Run, text: str, tmp_path: Path) -> None:
    """Not in a file either: one line says what it begins with and what is read."""
    file = tmp_path / "text"
    file.write_text(text + "\n")
    for given in ([text], ["--file", str(file)]):
        done = kwiresniff("decode", *given)
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert "is not a notation that is known: hex" in done.err


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("00000000: 0000 0049 0000 0000 0000 0004 0000 0000  ...I............\n00000020: 6300", "bytes 0x10 to 0x20"),
        ("[1, 2, 300]", "300 in the array is not a byte"),
        ("b'\\x00\\q'", r"the escape \q"),
        ("00120", "5 hex digits"),
        ("0000000 1.5e+00 2.5e+00\n0000020 1.5e+00 2.5e+00", "not of bytes, words or characters"),
    ],
)
def test_a_mistake_in_a_notation_is_named(text: str, says: str) -> None:
    """It is not passed over, and no other notation is tried in its place."""
    with pytest.raises(NotationError, match=re.escape(says)):
        readings(text)


@pytest.mark.parametrize(
    "piece",
    ["[1 ", "'", '"\\"', "0x", "\\x", "0000 ", "00000000: 00 ", "aA1", "/*", "<Buffer ", "-", "00\n", "*\n", "b'"],
)
def test_no_text_takes_long(piece: str) -> None:
    """Lines of code that are run grow with the length of the text, not with its square."""
    steps = [lines_run(piece * count + "!") for count in (250, 4_000)]
    assert steps[1] < 20 * steps[0] + 2_000


def lines_run(text: str) -> int:
    """How many lines of ``notations`` are run to read a text, which may be in none."""
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        if frame.f_code.co_filename not in (dumps.__file__, notations.__file__):
            return None
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with contextlib.suppress(NotationError):
            readings(text)
    finally:
        sys.settrace(before)
    return lines


def test_a_dump_cannot_stand_for_more_than_a_frame() -> None:
    """A repeated line is as long as the offset after it says."""
    with pytest.raises(NotationError):
        readings("00000000: 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00\n*\nffffffffff0: 00")


def test_frames_in_a_row_and_one_cut_short(kwiresniff: Run) -> None:
    """Each is decoded; of the last it is said how many bytes its length promises and are not there."""
    done = kwiresniff("decode", "-o", "json", (ODD * 2 + ODD[:-5]).hex())
    found = [json.loads(line) for line in done.out.splitlines()]
    assert [(one["api"], one["size_bytes"]) for one in found] == [("ApiVersions", 13)] * 2
    assert [one["code"] for each in found for one in each["problems"]] == ["trailing_bytes"]
    found = [json.loads(line) for line in kwiresniff("decode", "-o", "json", (ODD + FRAME).hex()).out.splitlines()]
    assert [one["header"]["client_id"] for one in found] == ["cli", FRAME[14:].decode()]
    body = bytes.fromhex("00000002 0001 61 0001 62")
    metadata = bytes.fromhex("00000017 0003 0001 00000007 0003") + b"cli" + body
    for cut in (1, 3):
        done = kwiresniff("decode", "-o", "json", metadata[:-cut].hex())
        problem = json.loads(done.out)["problems"][0]
        assert (done.code, problem["code"]) == (1, "truncated")
        assert f"cut short: {cut} of the 23 bytes" in problem["message"]
    done = kwiresniff("decode", metadata[:9].hex())
    assert (done.code, "cut short in its header" in done.err, "Metadata v1" in done.err) == (1, True, True)


def test_layouts_that_read_knows(kwiresniff: Run) -> None:
    """KIP-511: version 0 answers a version that is refused. Old librdkafka has bytes more; a new version may fit."""
    refused = ["--api", "ApiVersions", "--version", "3", "--response", "-o", "json"]
    for data in ("002300000001001200000003", "00000007 002300000001001200000003"):
        done = kwiresniff("decode", *refused, data)
        body = json.loads(done.out)["body"]
        assert (done.code, body["error_code"], body["api_keys"]) == (
            0,
            35,
            [{"api_key": 18, "min_version": 0, "max_version": 3}],
        )
    old = "00000007 0000 00000001 0012 0000 0003 00000000"
    done = kwiresniff("decode", "--api", "ApiVersions", "--version", "0", "--response", "-o", "json", old)
    found = json.loads(done.out)
    assert (len(found["body"]["api_keys"]), [one["code"] for one in found["problems"]]) == (1, ["trailing_bytes"])
    newer = "0012 0063 00000001 0003 636c69 00 04 6c6962 02 31 00 ffffffff 00"
    done = kwiresniff("decode", "--version", "99", "-o", "json", newer)
    found = json.loads(done.out)
    assert (done.code, found["body"]["client_software_name"]) == (0, "lib")
    assert [one["code"] for one in found["problems"]] == ["guessed_version"]
