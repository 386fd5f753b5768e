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
from typing import Final

from kwiresniff.capture.packet_decoder import LayerDecoder
from kwiresniff.cli.dumps import NotationError, dump_pieces, hex_bytes, number, numbers

#: The names of the notations in messages.
NAMES: Final = (
    "hex (0x, colons, commas, dashes, spaces), base64, dumps of hexdump, xxd, od, tcpdump and Wireshark, "
    "byte arrays of C, Go, Java, Python, JavaScript, escaped strings"
)


def dumps(text: str) -> list[bytes]:
    """The bytes of all dumps in the text, joined; see ``dump_pieces``."""
    return [b"".join(pieces) for pieces in dump_pieces(text)]


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
            for packet, piece in enumerate(pieces, 1):
                segment = decoder.segment(packet, 0, link_type, piece, 0, len(piece), 0)
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
_AROUND = re.compile(r"[\w\s\[\]{}()<>&*=;:,.!\"@$/-]{0,400}")
_BARE = re.compile(r"-?[0-9]+(?:\s*,\s*-?[0-9]+)+[\s,]*")
#: Between blanks, where hex has two digits each.
_DECIMAL = re.compile(r"\s*+(?:(?:0|-?[1-9][0-9]{0,2})(?:\s++|\Z)){2,}+")


def arrays(text: str) -> list[bytes]:
    """Lists of numbers in brackets, of C, Go, Java, Python, Rust, JavaScript; Node's ``<Buffer 00 01>``.

    Numbers are -128 to 255, in hex with 0x before them; of Buffer in hex, and where letters or zeros before them show
    it (Rust's ``{:02x?}``). Raises NotationError for larger ones.
    """
    text = _CAST.sub("", _COMMENT.sub("", text))
    if _BARE.fullmatch(text) or _DECIMAL.fullmatch(text):
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
    are_pairs = all(len(one) == 2 for one in tokens)
    is_hex = is_buffer or (are_pairs and any(one[0] == "0" for one in tokens)) or any(map(_is_hex_alone, tokens))
    if is_hex or (are_pairs and "," not in text):
        ways.append(hex_bytes([one.zfill(2) for one in tokens]))
    if not is_hex:
        ways.append(numbers(tokens))
        if ways == [None]:
            wrong = next((one for one in tokens if numbers([one]) is None), "")
            raise NotationError(f"{wrong[:20]} in the array is not a byte: -128 to 255, or 0x00 to 0xff")
    return [one for one in ways if one is not None]


def _is_number(token: str) -> bool:
    return number(token) is not None or _is_hex_alone(token)


def _is_hex_alone(token: str) -> bool:
    """Whether a token is a byte in hex, and cannot be a number in decimal."""
    return len(token) <= 2 and number(token) is None and hex_bytes([token.zfill(2)]) is not None


# --- strings ---------------------------------------------------------------------------------------------------------

_QUOTED = re.compile(r"\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'", re.DOTALL)
#: Before, between and after the parts of a string: assignments, calls, continuations.
_BESIDE = re.compile(r"[\w\s\[\]{}()&*=;:,.+$\\|<>/#-]*+")
MAX_BESIDE_CHARS: Final = 200
_UNQUOTED = re.compile(r"[!-~\s]*+")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u00([0-9a-fA-F]{2})|([0-7]{1,3})|(\r?\n)|(.))", re.DOTALL)
_LETTERS: Final = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "e": 27, "0": 0}


def strings(text: str) -> list[bytes]:
    r"""Escaped strings: Python's ``b'\x00I'``, those of C, Go and JSON, and ``\x00\x49`` or ``\000I`` without quotes.

    Without an escape only what Python marks as bytes is taken. Raises NotationError for an escape that is not known.
    """
    bare = text.strip()
    if bare[:2] in ("\\x", "\\0"):
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
    if match is None or (_DECIMAL.fullmatch(text) and any(len(one) != 2 for one in text.split())):
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


#: Hex or base64 among other things: more characters than a topic id has, on as many lines as there are.
_RUN = re.compile(r"[0-9A-Za-z+/_=:-]{24,}+(?:[ \t]*\n[ \t]*[0-9A-Za-z+/_=-]++(?=[ \t]*(?:\n|\Z)))*+")


def _within(text: str) -> list[tuple[str, bytes]]:
    """The bytes of the longest run of hex digits or of base64 in other text: a call, a line of a log, JSON of tshark,
    Wireshark's YAML. They have to begin as the length of a frame does, with zero.
    """
    for run in sorted((match[0].strip(":=-") for match in _RUN.finditer(text)), key=len, reverse=True):
        if run.startswith("00"):
            with suppress(NotationError):
                if found := hex_digits(run):
                    return [("hex", found[0])]
        if run.startswith("AA") and (found := base64_text(run)):
            return [("base64", found[0])]
    return []


#: Notations by the names that ``--input`` has for them.
NOTATIONS: Final[dict[str, Callable[[str], list[bytes]]]] = {
    "dump": dumps,
    "hex": hex_digits,
    "array": arrays,
    "string": strings,
    "base64": base64_text,
    "packet": packets,
}


#: What stands between bytes in texts that went through a browser or hexyl.
_BLANKS: Final = str.maketrans("\N{NO-BREAK SPACE}\N{BOX DRAWINGS LIGHT QUADRUPLE DASH VERTICAL}│", "  |")


def readings(text: str) -> list[tuple[str, bytes]]:
    """The bytes that a text may stand for and the notation that says so, the likeliest first; none when it is in no
    notation that is known. Raises NotationError for a text that is in one, with a mistake."""
    text = text.translate(_BLANKS)
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
    found = found or _within(text)
    if not found and trouble is not None:
        raise trouble
    return found
