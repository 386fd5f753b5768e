"""Nothing from the wire may act on a terminal."""

from __future__ import annotations

import unicodedata

import pytest

from kwiresniff.render.escape import escape, mixed, text_of

# Written out by number, from the Unicode bidirectional algorithm (UAX 9), ECMA-48 and the lists of default-ignorable
# code points, not taken from the code under test.
C0 = [*range(0x20), 0x7F]
C1 = [*range(0x80, 0xA0)]
BIDI = [0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]
ZERO_WIDTH = [0x00AD, 0x034F, 0x180E, 0x200B, 0x200C, 0x200D, *range(0x2060, 0x2065), 0xFEFF, 0xFE0F, 0xE0100]
SEPARATORS = [0x2028, 0x2029, 0x0085]
FILLERS = [0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800]
TAGS = [0xE0001, *range(0xE0020, 0xE0080)]
SURROGATES = [0xD800, 0xDBFF, 0xDC00, 0xDFFF]
PRIVATE = [0xE000, 0xF8FF, 0xF0000, 0x10FFFD]
DANGEROUS = C0 + C1 + BIDI + ZERO_WIDTH + SEPARATORS + FILLERS + TAGS + SURROGATES + PRIVATE


def test_every_dangerous_character_becomes_visible_ascii() -> None:
    """Between two letters, which stay."""
    for code in DANGEROUS:
        shown = escape(f"a{chr(code)}b")
        assert shown.isascii(), hex(code)
        assert shown.isprintable(), hex(code)
        assert shown.startswith("a\\"), hex(code)
        assert shown.endswith("b"), hex(code)


def test_no_code_point_at_all_survives_as_a_control_or_format_character() -> None:
    shown = escape("".join(map(chr, range(0x110000))))
    categories = {unicodedata.category(char) for char in set(shown)}
    assert not categories & {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31m", "\\x1b[31m"),
        ("\x9b2J", "\\x9b2J"),
        ("\u202egpj.exe", "\\u202egpj.exe"),
        ("\U000e0001", "\\U000e0001"),
        ("a\nb\rc\td", "a\\nb\\rc\\td"),
        ("\ud83d", "\\ud83d"),
        ("C:\\temp", "C:\\temp"),
        ("[bold]not markup[/]", "[bold]not markup[/]"),
        ("Größe 東京 🙂", "Größe 東京 🙂"),
    ],
)
def test_an_escape_reads_as_a_programmer_would_write_it(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_a_pile_of_combining_marks_is_cut_to_three() -> None:
    assert escape("e" + "\u0301" * 50).count("\u0301") == 3
    assert escape("\u0301x") == "\\u0301x"
    assert escape("ệ") == "ệ"


def test_bytes_are_text_only_when_they_are_mostly_visible_utf_8() -> None:
    assert text_of("Größe".encode()) == "Größe"
    assert text_of(b"line\nline\n") == "line\nline\n"
    assert text_of(b"\xff\xfe") is None
    assert text_of(b"\0\0\0\1\0\0\0\2") is None


def test_binary_with_words_keeps_the_words_readable() -> None:
    assert mixed(b"\0\0\0\0\x05\x16customer-17") == "\\x00\\x00\\x00\\x00\\x05\\x16customer-17"
    assert mixed(bytes(range(128, 200))) is None
