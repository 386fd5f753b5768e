"""The tables that the user's rules of how packets are decoded make, imported with what they need when there are any."""

from __future__ import annotations

from collections.abc import Sequence

from kwiresniff.capture.packet_decoder import NO_CHOICES, Choices


def choices_of(decode_as: Sequence[str]) -> Choices:
    """The tables that rules of ``decode_as`` make. Raises ValueError for one that is none."""
    if not decode_as:
        return NO_CHOICES
    from kwiresniff.capture.decode_as import tables_of

    return tables_of(decode_as)
