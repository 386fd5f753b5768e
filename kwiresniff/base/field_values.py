"""Fields of decoded bodies as texts and numbers, whatever came in their place: topics, groups, members, times.

Where what came as a text is no UTF-8 it is ``bytes``, which are shown escaped. A text or a long number that may hold a
part of a secret, in a message that does not read as it should, is a ``dict`` that says so; a field may also be null, or
not be there.
"""

from __future__ import annotations

from typing import Any


def name_text(value: Any) -> str | None:
    """A text, None where there is none or it was withheld."""
    if value.__class__ is str:
        return str(value)
    return value.decode("utf-8", "backslashreplace") if value.__class__ is bytes else None


def field_text(value: Any) -> str:
    """A text, empty where there is none or it was withheld."""
    return name_text(value) or ""


def field_number(value: Any) -> int:
    """An integer, 0 where there is none or it was withheld."""
    return value if isinstance(value, int) else 0
