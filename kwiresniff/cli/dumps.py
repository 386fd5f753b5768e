"""Dumps of bytes, as hexdump, xxd, od, tcpdump, gdb, Netty and Wireshark print them.

A line has an offset, then bytes, words or characters, and perhaps their text. Every character has to be accounted for,
but lines between those of a dump. Sources: the manual pages of these programs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple

#: Bytes that one dump may stand for, with the repeated lines that `*` leaves out: the longest frame that is read.
MAX_DUMP_BYTES: Final = 128 << 20


class NotationError(Exception):
    """The text is in a notation, and something in it is wrong; the message says what, and in which line."""


#: Offset, then the rest. The offset of tcpdump has 0x before it; of xxd, tcpdump and gdb a colon after it, of OpenSSL a
#: dash; Netty's stands between bars, strace's behind one, that of a mail's answer behind ``>``.
_LINE = re.compile(r"[ \t|>]*+(0x)?([0-9a-fA-F]{4,16})(?: <[^>]{0,80}>)?(:|\|| -)?(?:[ \t](.*))?", re.DOTALL)
_TOKEN = re.compile(r"[ \t]*(?:0x)?(-?[0-9a-fA-F]{1,22})(?=[ \t|]|-[0-9a-fA-F]|$)-?")
#: A line that is as the one before it, as hexdump, od and xxd -a leave it out.
_REPEATED = "*"

_OD_DIGITS: Final = 7
#: Cells of a line in most dumps, and how many stand before a gap, which the text beside them may have as well.
_CELLS: Final = 16
_HALF: Final = 8

_Cells = Callable[[list[str]], "bytes | None"]


class _Line(NamedTuple):
    """A line of a dump, with its number in the text; ``repeats`` where a line of ``*`` stands before it."""

    number: int
    offset: str
    rest: str
    repeats: bool


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
        return _without_offsets(text)  # or hex in groups
    is_sure = has_colon or has_pairs or _counts_from_0(rows)
    ways: list[_Cells] = [hex_bytes, _octal, _little_words, _big_words, _decimal]
    if has_colon:
        ways = [hex_bytes, _big_words, _little_words]
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


def _without_offsets(text: str) -> list[list[bytes]]:
    """The bytes of lines that have their text beside them and no offset (ngrep -x), all but the last of 16."""
    rows = [_row(line, hex_bytes) for line in text.splitlines() if "  " in line.strip()]
    found = [row for row in rows if row]
    is_dump = len(found) > 1 and len(found[-1]) <= _CELLS and all(len(row) == _CELLS for row in found[:-1])
    return [[b"".join(found)]] if is_dump else []


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
        is_apart = count == _CELLS or beside.startswith(("  ", "\t")) or beside.lstrip().startswith(("|", ">"))
        if not beside.strip() or not is_apart:
            continue
        row = cells(tokens[:count])
        if row is not None and _is_text_of(row, beside.strip()):
            return row
    if tokens and not rest[at:].strip():
        return cells(tokens)
    return None if rest.strip() else b""


def _is_text_of(row: bytes, text: str) -> bool:
    """Whether this is how a dump shows the bytes as text: what cannot be printed is a dot, a blank too in tcpdump's."""
    texts = [text, text.removesuffix(" |")]
    if len(text) > 1 and text[0] + text[-1] in ("||", "><"):
        texts.append(text[1:-1])
    shown = row.decode("latin-1")
    for left in (0, len(shown) - len(shown.lstrip(" "))):
        gap = _HALF - left  # between the halves, as between those of the bytes
        halves = [one[:gap] + one[gap + 1 :] for one in texts if gap > 0 and one[gap : gap + 1] in (" ", "|")]
        if any(_shows(one, shown[left:].rstrip(" ")) for one in texts + halves):
            return True
    return False


def _shows(text: str, row: str) -> bool:
    return len(row) == len(text.rstrip(" ")) and all(
        one == there or (not "!" <= one <= "~" and (there == "." or not there.isascii()))
        for one, there in zip(row, text, strict=False)
    )


def hex_bytes(tokens: list[str]) -> bytes | None:
    """Bytes of two hex digits each; None for other tokens."""
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
    return numbers(tokens)


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


def numbers(tokens: list[str]) -> bytes | None:
    """Numbers from -128 to 255 as bytes; None for other tokens."""
    values = [number(one) for one in tokens]
    if any(value is None or not -128 <= value <= 255 for value in values):
        return None
    return bytes(value & 0xFF for value in values if value is not None)


def number(token: str) -> int | None:
    """A number in decimal, in hex with 0x before it, or a character in quotes; None for another token."""
    if len(token) == 3 and token[0] == token[2] == "'":
        return ord(token[1])
    if len(token) > 12 or "_" in token:
        return None
    digits = token.removesuffix("u8") if not token.startswith("0x") else token.removesuffix("u")
    try:
        return int(digits, 16) if digits[:2].lower() == "0x" else int(digits)
    except ValueError:
        return None
