"""Pages as a browser would take them apart, and a text that would do something in one."""

from __future__ import annotations

from html.parser import HTMLParser

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\x1b[31m\u202e$x^2${{ 7*7 }}"


class Page(HTMLParser):
    """The text of a page, its tags, and every attribute that could fetch or run something."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.tags: dict[str, int] = {}
        self.active: list[tuple[str, str | None]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] = self.tags.get(tag, 0) + 1
        for name, value in attrs:
            reference = name in ("src", "href", "xlink:href", "action") and not (value or "").startswith("#")
            if reference or name.startswith("on"):
                self.active.append((name, value))

    def handle_data(self, data: str) -> None:
        self.text += data
