"""Draws the pictures of docs/browse.md anew: ``python -m tests.browse.pictures``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.support.browsing import Browsing, browse
from tests.support.paths import CAPTURES, ROOT

#: Picture, recording, terminal, keys pressed: sessions of ``test_app``.
PICTURES: Sequence[tuple[str, str, tuple[int, int], tuple[str, ...]]] = (
    ("browse-doctor.svg", "fenced.pcap.xz", (110, 30), ("6",)),
    ("browse-exchanges.svg", "missing-topic.pcap.xz", (118, 34), ("e", "t", "down", "down")),
    ("browse-timeline.svg", "produce-quota.pcap.xz", (110, 26), ("o", "c", "2", *["right"] * 43)),
)


def draw(name: str, recording: str, size: tuple[int, int], keys: Sequence[str]) -> None:
    """Draws one of them."""
    drawn: list[str] = []

    async def script(user: Browsing) -> None:
        await user.read()
        for key in keys:
            await user.press(key)
            await user.pilot.pause(0.05 if key == "right" else 1)
            await user.until(lambda: not user.app.exchanges.is_filtering)
        await user.pilot.pause(2)
        drawn.append(user.app.export_screenshot(title="kwiresniff browse"))

    browse(CAPTURES / "incidents" / recording, script, size=size)
    # Programs other than browsers leave spaces out.
    Path(ROOT, "docs", name).write_text(re.sub("<text ", '<text xml:space="preserve" ', drawn[0]), encoding="utf-8")


if __name__ == "__main__":
    for picture in PICTURES:
        draw(*picture)
