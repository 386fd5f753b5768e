"""Notations in which people paste bytes: dumps, arrays, escaped strings, hex, base64.

One function a notation, and ``NOTATIONS``, the table of them. Each function takes the whole text and returns the byte
strings that it may stand for, the likeliest first, none when the text is not in that notation. Every character has to
be accounted for, but lines between those of a dump: text is never taken for bytes.

Sources: the manual pages of hexdump, xxd, od and tcpdump; Wireshark's "Copy as"; the literals of C, Go, Java, Python,
JavaScript and their ways to print byte arrays.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Final, NamedTuple

from kwiresniff.capture.packet_decoder import LayerDecoder

#: Bytes that one dump may stand for, with the repeated lines that `*` leaves out: the longest frame that is read.
MAX_DUMP_BYTES: Final = 128 << 20

#: The names of the notations in messages.
NAMES: Final = (
    "hex (0x, colons, commas, dashes, spaces), base64, dumps of hexdump, xxd, od, tcpdump and Wireshark, "
    "byte arrays of C, Go, Java, Python, JavaScript, escaped strings"
)


class NotationError(Exception):
    """The text is in a notation, and something in it is wrong; the message says what, and in which line."""


# --- dumps -----------------------------------------------------------------------------------------------------------

#: Offset, then the rest. The offset of tcpdump has 0x before it; of xxd, tcpdump and gdb a colon after it; Netty's
#: stands between bars.
_LINE = re.compile(r"[ \t]*\|?(0x)?([0-9a-fA-F]{4,16})(:|\|)?(?:[ \t](.*))?", re.DOTALL)
_TOKEN = re.compile(r"[ \t]*(-?[0-9a-fA-F]{1,22})(?=[ \t|]|$)")
#: A line that is as the one before it, as hexdump, od and xxd -a leave it out.
_REPEATED = "*"

_OD_DIGITS: Final = 7

_Cells = Callable[[list[str]], "bytes | None"]


class _Line(NamedTuple):
    """A line of a dump, with its number in the text; ``repeats`` where a line of ``*`` stands before it."""

    number: int
    offset: str
    rest: str
    repeats: bool


def dumps(text: str) -> list[bytes]:
    """The bytes of all dumps in the text, joined; see ``dump_pieces``."""
    return [b"".join(pieces) for pieces in dump_pieces(text)]


def dump_pieces(text: str) -> list[list[bytes]]:
    """Lines of offset, bytes or words, and perhaps the text beside them; offsets from 0 begin another dump.

    Lines of words without a colon are in the byte order of the machine, which is little-endian (hexdump, od -x); with
    one they are in the order of the bytes (xxd, tcpdump). Raises NotationError when offsets show that lines are
    missing, or when it is a dump of something else, such as floating-point numbers.
    """
    lines: list[_Line] = []
    has_colon = False
    repeats = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == _REPEATED:
            repeats = True
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            continue
        has_colon = has_colon or match[3] == ":"
        lines.append(_Line(number, match[2], match[4] or "", repeats))
        repeats = False
    rows = [line for line in lines if line.rest]
    has_pairs = bool(rows) and rows[0].rest.lstrip()[2:3] == " "
    if not rows or not (len(lines) > 1 or has_colon or has_pairs):
        return []  # hex in groups
    is_sure = has_colon or has_pairs or _counts_from_0(rows)
    ways: list[_Cells] = [_hex_bytes, _octal, _little_words, _big_words, _decimal]
    if has_colon:
        ways = [_hex_bytes, _big_words, _little_words]
    # od's offsets have seven digits; with other dumps an octal reading would hide that lines are missing.
    bases = (16, 8, 10) if not has_colon and len(rows[0].offset) == _OD_DIGITS else (16, 10)
    found: list[list[bytes]] = []
    trouble: NotationError | None = None
    for way in ways:
        for base in bases:
            try:
                data = _assembled(lines, way, base)
            except NotationError as error:
                trouble = trouble or error
                continue
            if data is not None and data not in found:
                found.append(data)
                break
    if not found:
        found += [[data] for data in _characters(lines)]
    if not found and is_sure and trouble is not None:
        raise trouble
    if not found and _counts_from_0(rows):
        raise NotationError(f"line {rows[0].number}: a dump, but not of bytes, words or characters")
    return found


def lines_beside(text: str) -> int:
    """The number of lines in a text with dumps that belong to none of them; blank lines do not count."""
    lines = (line.strip() for line in text.splitlines())
    return sum(1 for line in lines if line not in ("", _REPEATED) and _LINE.fullmatch(line) is None)


def _counts_from_0(rows: list[_Line]) -> bool:
    """Whether the offsets are those of a dump of 16 bytes a line, in hex, octal or decimal."""
    first, second = rows[0].offset, rows[1].offset if len(rows) > 1 else ""
    return len(first) > 6 and not first.strip("0") and second.lstrip("0") in ("10", "20", "16")


def _assembled(lines: list[_Line], cells: _Cells, base: int) -> list[bytes] | None:
    """The bytes of each dump, or None when the lines are not of such cells and such offsets."""
    data = bytearray()
    pieces = [data]
    start = expected = -1
    last = b""
    for line in lines:
        try:
            offset = int(line.offset, base)
        except ValueError:
            return None
        row = _row(line.rest, cells)
        if row is None:
            return None
        if start >= 0 and line.repeats and last and offset > expected:
            count, left = divmod(offset - expected, len(last))
            if len(data) + offset - expected > MAX_DUMP_BYTES:
                raise NotationError(f"line {line.number}: repeated lines up to {MAX_DUMP_BYTES >> 20} MB are read")
            if left:
                return None
            data += last * count
            expected = offset
        if start >= 0 and not line.rest and 0 < expected - offset < 16 and offset > start:
            del data[offset - start :]  # the last word was filled up
            expected = offset
        elif expected != offset:
            if start >= 0 and offset and line.rest:
                if base == 16 and offset > expected:
                    raise NotationError(
                        f"line {line.number}: bytes {expected:#x} to {offset:#x} of the dump are not there"
                    )
                return None
            if not line.rest:
                return None
            start = expected = offset
            data = bytearray()
            pieces.append(data)
        data += row
        expected += len(row)
        last = row or last
    return [bytes(piece) for piece in pieces if piece]


def _row(rest: str, cells: _Cells) -> bytes | None:
    """The bytes of a line without its offset; what stands beside them has to be their text."""
    tokens: list[str] = []
    ends: list[int] = []
    at = 0
    while (match := _TOKEN.match(rest, at)) is not None and len(tokens) < 64:
        tokens.append(match[1])
        at = match.end()
        ends.append(at)
    for count in range(len(tokens), 0, -1):
        beside = rest[ends[count - 1] :]
        if not beside.strip() or not (beside.startswith(("  ", "\t")) or beside.lstrip().startswith(("|", ">"))):
            continue
        row = cells(tokens[:count])
        if row is not None and _is_text_of(row, beside.strip()):
            return row
    if tokens and not rest[at:].strip():
        return cells(tokens)
    return None if rest.strip() else b""


def _is_text_of(row: bytes, text: str) -> bool:
    """Whether this is how a dump shows the bytes as text: what cannot be printed is a dot, a blank too in tcpdump's."""
    if len(text) > 1 and text[0] + text[-1] in ("||", "><"):
        text = text[1:-1]
    shown = row.decode("latin-1")
    for left in (0, len(shown) - len(shown.lstrip(" "))):
        part = shown[left:].rstrip(" ")
        if len(part) == len(text.rstrip(" ")) and all(
            one == there or (not "!" <= one <= "~" and (there == "." or not there.isascii()))
            for one, there in zip(part, text, strict=False)
        ):
            return True
    return False


def _hex_bytes(tokens: list[str]) -> bytes | None:
    return _big_words(tokens) if all(len(one) == 2 for one in tokens) else None


def _big_words(tokens: list[str]) -> bytes | None:
    try:
        return bytes.fromhex("".join(tokens))
    except ValueError:
        return None


def _little_words(tokens: list[str]) -> bytes | None:
    if len({len(one) for one in tokens[:-1]}) > 1 or len(tokens[0]) not in (2, 4, 6, 8, 16):
        return None  # xxd -e ends with a shorter one
    words = [_big_words([one]) for one in tokens]
    return None if None in words else b"".join(one[::-1] for one in words if one is not None)


def _octal(tokens: list[str]) -> bytes | None:
    """od's words of two bytes, little-endian, and od -b's bytes."""
    size = {3: 1, 6: 2, 11: 4}.get(len(tokens[0]))
    if size is None or any(len(one) != len(tokens[0]) or one.strip("01234567") for one in tokens):
        return None
    try:
        return b"".join(int(one, 8).to_bytes(size, "little") for one in tokens)
    except OverflowError:
        return None


def _decimal(tokens: list[str]) -> bytes | None:
    """od -t u1 and -t d1; the words of hexdump -d have five digits and are little-endian."""
    if all(len(one) == 5 and one.isdecimal() and int(one) < 1 << 16 for one in tokens):
        return b"".join(int(one).to_bytes(2, "little") for one in tokens)
    return _numbers(tokens)


_CONTROLS: Final = {"\\0": 0, "\\a": 7, "\\b": 8, "\\t": 9, "\\n": 10, "\\v": 11, "\\f": 12, "\\r": 13}


def _characters(lines: list[_Line]) -> list[bytes]:
    """od -c and hexdump -c: cells of four characters; the offset of the next line says how many, with its blanks."""
    for base in (8, 16):
        data = bytearray()
        try:
            for line, after in pairwise(lines):
                room = int(after.offset, base) - int(line.offset, base)
                row = _cells(line.rest, min(room, _CELLS) if after.repeats else room)
                data += row
                if after.repeats and row and 0 < room <= MAX_DUMP_BYTES - len(data) and room % len(row) == 0:
                    data += bytes(row) * (room // len(row) - 1)
        except ValueError:
            continue
        if data and not lines[-1].rest and not int(lines[0].offset, base):
            return [bytes(data)]
    return []


_CELLS: Final = 16


def _cells(rest: str, room: int) -> bytearray:
    """The bytes of a line of cells. Raises ValueError."""
    text = (" " + rest).ljust(4 * room)  # the first blank was taken with the offset
    if not 0 < room <= _CELLS or len(text) > 4 * room:
        raise ValueError
    row = bytearray()
    for at in range(0, 4 * room, 4):
        cell = text[at : at + 4].strip() or " "
        row.append(_CONTROLS[cell] if cell in _CONTROLS else ord(cell) if len(cell) == 1 else int(cell, 8))
    return row


#: LINKTYPE_ numbers of what a packet in a dump may begin with: IP, Ethernet, both headers of Linux's "any", loopback.
_LINK_TYPES: Final = (101, 1, 113, 276, 0)


def packets(text: str) -> list[bytes]:
    """Dumps of packets, or one in hex: the TCP payload of each direction of a connection, the longest first.

    Packets are in the order of the text. None when one of them is no TCP segment of IPv4 or IPv6.
    """
    found = dump_pieces(text)
    with suppress(NotationError):
        found += [[data] for data in hex_digits(text)]
    for pieces in found:
        for link_type in _LINK_TYPES:
            decoder = LayerDecoder({})
            payloads: dict[bytes, bytearray] = {}
            for number, piece in enumerate(pieces, 1):
                segment = decoder.segment(number, 0, link_type, piece, 0, len(piece), 0)
                if segment is None:
                    payloads.clear()
                    break
                _, _, flow, _, _, _, buffer, start, end, _ = segment
                payloads.setdefault(flow, bytearray()).extend(buffer[start:end])
            if any(payloads.values()):
                return [bytes(one) for one in sorted(payloads.values(), key=len, reverse=True) if one]
    return []


# --- arrays ----------------------------------------------------------------------------------------------------------

_COMMENT = re.compile(r"/\*[^*]*\*+(?:[^/*][^*]*\*+)*/|//[^\n]*")
_CAST = re.compile(r"\(\s*(?:byte|Byte|char|unsigned char|uint8_t|sbyte)\s*\)")
_LIST = re.compile(
    r"[\[{(<]\s*(?:Buffer\s+)?((?:(?:-?[0-9a-zA-Z_]++|'[^'\\]')[\s,]*+)*+)"
    r"(?:\.{3} \d+ more (?:bytes?|items?)\s*)?[\]})>]"
)
#: The text around a list: names, types, signs of assignment. Other texts have more.
_AROUND = re.compile(r"[\w\s\[\]{}()<>&*=;:,.!\"@-]{0,400}")
_BARE = re.compile(r"-?[0-9]+(?:\s*,\s*-?[0-9]+)+[\s,]*")


def arrays(text: str) -> list[bytes]:
    """Lists of numbers in brackets, of C, Go, Java, Python, Rust, JavaScript; Node's ``<Buffer 00 01>``.

    Numbers are -128 to 255, in hex with 0x before them; of Buffer in hex. Raises NotationError for larger ones.
    """
    text = _CAST.sub("", _COMMENT.sub("", text))
    if _BARE.fullmatch(text):
        text = f"[{text}]"
    found: list[list[str]] = []
    around: list[str] = []
    at = 0
    is_buffer = False
    for match in _LIST.finditer(text):
        tokens = match[1].replace(",", " ").split()
        is_length = len(tokens) == 1 and not found and not set("[{(").isdisjoint(text[match.end() :])
        if not tokens or is_length or not all(map(_is_number, tokens)):
            continue
        around.append(text[at : match.start()])
        at = match.end()
        is_buffer = is_buffer or "Buffer" in match[0]
        found.append(tokens)
    around.append(text[at:])
    if not found or not all(_AROUND.fullmatch(one) for one in around):
        return []
    tokens = [one for some in found for one in some]
    ways = []
    if is_buffer or (all(len(one) == 2 for one in tokens) and "," not in text):
        ways.append(_hex_bytes(tokens))
    if not is_buffer:
        ways.append(_numbers(tokens))
        if ways == [None]:
            wrong = next((one for one in tokens if _numbers([one]) is None), "")
            raise NotationError(f"{wrong[:20]} in the array is not a byte: -128 to 255, or 0x00 to 0xff")
    return [one for one in ways if one is not None]


def _is_number(token: str) -> bool:
    return _number(token) is not None or _hex_bytes([token]) is not None


def _numbers(tokens: list[str]) -> bytes | None:
    values = [_number(one) for one in tokens]
    if any(value is None or not -128 <= value <= 255 for value in values):
        return None
    return bytes(value & 0xFF for value in values if value is not None)


def _number(token: str) -> int | None:
    if len(token) == 3 and token[0] == token[2] == "'":
        return ord(token[1])
    if len(token) > 12 or "_" in token:
        return None
    digits = token.removesuffix("u8") if not token.startswith("0x") else token.removesuffix("u")
    try:
        return int(digits, 16) if digits[:2].lower() == "0x" else int(digits)
    except ValueError:
        return None


# --- strings ---------------------------------------------------------------------------------------------------------

_QUOTED = re.compile(r"\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'", re.DOTALL)
#: Before, between and after the parts of a string: assignments, calls, continuations.
_BESIDE = re.compile(r"[\w\s\[\]{}()&*=;:,.+$\\-]*+")
MAX_BESIDE_CHARS: Final = 200
_UNQUOTED = re.compile(r"[!-~\s]*+")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2})|([0-7]{1,3})|(\r?\n)|(.))", re.DOTALL)
_LETTERS: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "e": 27, "0": 0}


def strings(text: str) -> list[bytes]:
    r"""Escaped strings: Python's ``b'\x00I'``, those of C, Go and JSON, and ``\x00\x49`` without quotes.

    Without an escape only what Python marks as bytes is taken. Raises NotationError for an escape that is not known.
    """
    bare = text.strip()
    if bare.startswith("\\x"):
        return [_unescaped(bare)] if _UNQUOTED.fullmatch(bare) and _is_escaped(bare) else []
    parts: list[str] = []
    marked = False
    at = 0
    while True:
        beside = _BESIDE.match(text, at)
        if beside is None or len(beside[0]) > MAX_BESIDE_CHARS:
            return []
        at = beside.end()
        if at == len(text):
            break
        match = _QUOTED.match(text, at)
        if match is None:
            break
        marked = marked or beside[0][-1:] in ("b", "B")
        parts.append(match[0][1:-1])
        at = match.end()
    inside = "".join(parts)
    return [_unescaped(inside)] if parts and at == len(text) and (marked or _is_escaped(inside)) else []


def _is_escaped(text: str) -> bool:
    """Whether it has escapes of bytes, more than one: a path of Windows or a pattern has letters behind its strokes."""
    return re.search(r"\\(?:x[0-9a-fA-F]{2}|u00[0-9a-fA-F]{2}|[0-7]{3}|0)", text) is not None


def _unescaped(text: str) -> bytes:
    def value(match: re.Match[str]) -> bytes:
        two, four, octal, newline, letter = match.groups()
        if two or four:
            return bytes([int(two or four, 16)])
        if octal:
            return bytes([int(octal, 8) & 0xFF])
        if newline:
            return b""
        if letter in _LETTERS:
            return bytes([_LETTERS[letter]])
        if letter in "\\'\"?/":
            return letter.encode()
        raise NotationError(f"the escape \\{letter if letter.isprintable() else '?'} in the string is not known")

    out = bytearray()
    at = 0
    for match in _ESCAPE.finditer(text):
        out += text[at : match.start()].encode("utf-8", "surrogateescape")
        out += value(match)
        at = match.end()
    return bytes(out + text[at:].encode("utf-8", "surrogateescape"))


# --- hex and base64 --------------------------------------------------------------------------------------------------

_HEX = re.compile(r"(?:[xXhH]'|\\x)?((?:0[xX](?=[0-9a-fA-F])|[0-9a-fA-F\s:,;-])*+)'?")
_SEPARATORS = re.compile(r"[\s:,;-]+|0[xX]")
#: Base64 is wrapped at 60, 64 or 76.
_MIN_WRAPPED_CHARS: Final = 16
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def hex_digits(text: str) -> list[bytes]:
    """Hex digits, with colons, commas, dashes, blanks or 0x between them. Raises NotationError for half one."""
    match = _HEX.fullmatch(text.strip())
    if match is None:
        return []
    inner = match[1]
    if "0x" in inner.lower():  # each number by itself: Go and C print 0x0
        inner = re.sub(r"(?<![0-9a-fA-F])0[xX]([0-9a-fA-F])(?![0-9a-fA-F])", r"0\1", inner)
    digits = _SEPARATORS.sub("", inner)
    if len(digits) % 2:
        raise NotationError(f"{len(digits)} hex digits: half a byte is missing")
    return [bytes.fromhex(digits)]


def base64_text(text: str) -> list[bytes]:
    """Base64 (RFC 4648), standard or URL-safe, with or without padding, wrapped at any width."""
    lines = text.strip().strip("\"'`").split()
    if len(lines) > 1 and (
        len({len(one) for one in lines[:-1]}) > 1 or not len(lines[-1]) <= len(lines[0]) >= _MIN_WRAPPED_CHARS
    ):
        return []  # words
    joined = "".join(lines)
    if not _BASE64.fullmatch(joined):
        return []
    try:
        standard = joined.rstrip("=").replace("-", "+").replace("_", "/")
        return [base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)]
    except binascii.Error:
        return []


def _may_be_word(text: str) -> bool:
    """Whether a text in base64's alphabet may as well be a word: base64 of a frame begins with AA, of other bytes it
    mixes capitals, small letters and digits.
    """
    kinds = [any(map(test, text)) for test in (str.isupper, str.islower, lambda one: not one.isalpha())]
    return not text.lstrip("\"'` ").startswith("AA") and not all(kinds)


#: Notations by the names that ``--input`` has for them.
NOTATIONS: Final[dict[str, Callable[[str], list[bytes]]]] = {
    "dump": dumps,
    "hex": hex_digits,
    "array": arrays,
    "string": strings,
    "base64": base64_text,
    "packet": packets,
}


def readings(text: str) -> list[tuple[str, bytes]]:
    """The bytes that a text may stand for and the notation that says so, the likeliest first; none when it is in no
    notation that is known. Raises NotationError for a text that is in one, with a mistake."""
    found: list[tuple[str, bytes]] = []
    trouble: NotationError | None = None
    for name, read in NOTATIONS.items():
        try:
            given = [] if name == "base64" and _may_be_word(text.strip()) else read(text)
        except NotationError as error:
            if name == "dump":
                raise
            trouble = trouble or error
            continue
        for data in given:
            if data and all(data != other for _, other in found):
                found.append((name, data))
    if not found and trouble is not None:
        raise trouble
    return found
