"""A comparison of two captures as a page."""

from __future__ import annotations

from collections.abc import Callable

from kwiresniff.render.comparison import certainty, in_unit, ratio, verdict
from kwiresniff.render.page.html import filled
from kwiresniff.results.comparison import Comparison


def comparison_page(comparison: Comparison) -> str:
    """The comparison as HTML, what may be chance included."""
    words: tuple[Callable[..., str], ...] = (in_unit, ratio, certainty, verdict)
    return filled("comparison.html", {one.__name__: one for one in words}, comparison=comparison)
