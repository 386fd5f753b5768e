"""What no text that people are told may hold."""

from __future__ import annotations

import re

#: What moves a terminal's cursor, or turns or hides text; a line end is none.
UNSAFE = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
#: In JSON a delete character stands as it is.
UNSAFE_JSON = re.compile(UNSAFE.pattern.replace(r"\x7f-", r"\x80-"))
#: How Python would write bytes, what is withheld, and nothing; a backspace before an apostrophe is JSON's ``\b'``.
WRITTEN_BY_PYTHON = re.compile(r"(?<![\w\\])b'\\|\{'withheld|\bNone\b")
