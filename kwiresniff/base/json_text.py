"""Numbers and strings as JSON text; numbers as they stand in any text.

Written for mypyc: the arithmetic is on machine integers, eight bytes at a time where that is possible. Constants of
more than 62 bits and ``append`` of anything but an ``int`` would become Python objects there, so neither occurs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le

if TYPE_CHECKING:
    from mypy_extensions import i64

#: The same byte in all eight places of a word: 1, a space, a quote, half a backslash, a zero.
ONES: Final = 0x0101010101010101
SPACES: Final = 0x2020202020202020
QUOTES: Final = 0x2222222222222222
_HALF_BACKSLASHES: Final = 0x2E2E2E2E2E2E2E2E
_ZEROS: Final = 0x3030303030303030
#: Numbers whose negative is a number of 62 bits too.
_SMALL: Final = 0x3FFFFFFFFFFFFFFF

#: What stands for each control character.
_CONTROLS: Final = [
    {8: b"\\b", 9: b"\\t", 10: b"\\n", 12: b"\\f", 13: b"\\r"}.get(code, b"\\u%04x" % code) for code in range(32)
]


def write_text(out: BytesWriter, data: bytes, start: i64, stop: i64) -> bool:
    """Writes ``data[start:stop]``, which is in bounds, as a string; False for bytes beyond ASCII, half written."""
    out.append(34)
    if not write_characters(out, data, start, stop):
        return False
    out.append(34)
    return True


def write_characters(out: BytesWriter, data: bytes, start: i64, stop: i64) -> bool:
    """Write ``data[start:stop]`` as it stands inside a string, as ``write_text`` does."""
    at: i64 = start
    half: i64 = _HALF_BACKSLASHES
    backslashes: i64 = half << 1
    while at + 8 <= stop:
        word: i64 = read_i64_le(data, at)
        if (word >> 7) & ONES:
            return False
        # A byte in question borrows from its top bit.
        if (((word - SPACES) | ((word ^ QUOTES) - ONES) | ((word ^ backslashes) - ONES)) >> 7) & ONES == 0:
            write_i64_le(out, word)
            at += 8
            continue
        left: i64 = 8
        while left:
            code: i64 = word & 127
            if code > 34 and code != 92:
                plain: int = code
                out.append(plain)
            else:
                write_character(out, code)
            word >>= 8
            left -= 1
        at += 8
    while at < stop:
        byte: i64 = data[at]
        if byte > 127:
            return False
        write_character(out, byte)
        at += 1
    return True


def write_character(out: BytesWriter, code: i64) -> None:
    """Write one ASCII character as it stands inside a string."""
    if code < 32:
        out.write(_CONTROLS[code])
        return
    if code == 34 or code == 92:
        out.append(92)
    plain: int = code
    out.append(plain)


def write_number(out: BytesWriter, number: i64) -> None:
    """Write ``number``, an INT64 or anything smaller, in decimal."""
    if number < 0:
        if number < -_SMALL:
            out.write(str(number).encode())
            return
        out.append(45)
        number = -number
    if number < 10:
        write_digit(out, number)
    elif number < 100_000_000:
        write_first_digits(out, number)
    else:
        high: i64 = number // 100_000_000
        if high < 100_000_000:
            write_first_digits(out, high)
        else:
            higher: i64 = high // 100_000_000
            write_first_digits(out, higher)
            write_i64_le(out, eight_digits(high - higher * 100_000_000) + _ZEROS)
        write_i64_le(out, eight_digits(number - high * 100_000_000) + _ZEROS)


def write_first_digits(out: BytesWriter, number: i64) -> None:
    """Write a number of at most eight digits, without leading zeros."""
    digits: i64 = eight_digits(number)
    left: i64 = 8
    while left > 1 and digits & 255 == 0:
        digits >>= 8
        left -= 1
    while left:
        write_digit(out, digits & 255)
        digits >>= 8
        left -= 1


def write_fraction(out: BytesWriter, number: i64) -> None:
    """Write a number below 10**9 with all its nine digits."""
    first: i64 = number // 100_000_000
    write_digit(out, first)
    write_i64_le(out, eight_digits(number - first * 100_000_000) + _ZEROS)


def write_digit(out: BytesWriter, digit: i64) -> None:
    """Write ``digit``, a number below 10."""
    code: int = 48 + digit
    out.append(code)


def eight_digits(number: i64) -> i64:
    """The eight decimal digits of a number below 10**8, one a byte, lowest byte first, by halves of the word."""
    high: i64 = number // 10_000
    fours: i64 = high | ((number - high * 10_000) << 32)
    hundreds: i64 = ((fours * 10_486) >> 20) & 0x7F0000007F
    twos: i64 = hundreds | ((fours - hundreds * 100) << 16)
    tens: i64 = ((twos * 103) >> 10) & 0x000F000F000F000F
    return tens | ((twos - tens * 10) << 8)
