"""What encoders raise."""

from __future__ import annotations

from kwiresniff.errors import KwiresniffError


class EncodeError(KwiresniffError):
    """A value that does not fit its definition."""
