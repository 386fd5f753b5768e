"""How ``sniff`` reads its options; what it captures is tested in tests/sniff."""

from __future__ import annotations

import click
import pytest

from kwiresniff.cli.options import DurationType


@pytest.mark.parametrize(("text", "seconds"), [("30s", 30), ("5m", 300), ("3", 3), ("1.5", 1.5)])
def test_a_duration_without_a_unit_counts_seconds(text: str, seconds: float) -> None:
    """A bare number means seconds, as with ``timeout`` and ``sleep``."""
    assert DurationType(in_seconds=True).convert(text, None, None) == seconds * 1_000_000_000


@pytest.mark.parametrize("text", ["", "0", "-3", "soon", "3 parsecs"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    """With an example of what is one."""
    with pytest.raises(click.BadParameter, match="100ms or 10s"):
        DurationType(in_seconds=True).convert(text, None, None)
