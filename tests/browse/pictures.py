"""Draws the pictures of docs/browse.md anew: ``python -m tests.browse.pictures``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from tests.support.browsing import Browsing, browse
from tests.support.paths import CAPTURES, ROOT

#: Picture, recording, terminal, filter, keys pressed.
PICTURES: Sequence[tuple[str, str, tuple[int, int], str, tuple[str, ...]]] = (
    ("browse-exchanges.svg", "rolling-restart.pcap.xz", (118, 34), "error != NONE or latency > 50ms", ("e", "e")),
    ("browse-timeline.svg", "broker-pauses.pcap.xz", (110, 26), "", ("2", *["right"] * 32)),
    ("browse-doctor.svg", "broker-pauses.pcap.xz", (110, 30), "", ("6",)),
)


def draw(name: str, recording: str, size: tuple[int, int], expression: str, keys: Sequence[str]) -> None:
    """Draws one of them."""
    drawn: list[str] = []

    async def script(user: Browsing) -> None:
        await user.read()
        if expression:
            user.app.show_filter(expression)
            await user.until(lambda: len(user.app.selection) < len(user.app.model.index))
            await user.pilot.pause(2)
        await user.press(*keys)
        await user.pilot.pause(2)
        drawn.append(user.app.export_screenshot(title="kwiresniff browse"))

    browse(CAPTURES / "incidents" / recording, script, size=size)
    # Programs other than browsers leave spaces out.
    Path(ROOT, "docs", name).write_text(re.sub("<text ", '<text xml:space="preserve" ', drawn[0]), encoding="utf-8")


if __name__ == "__main__":
    for picture in PICTURES:
        draw(*picture)
