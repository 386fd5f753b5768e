"""The interface by which the writer of tree rows, which handles bytes only, gets colours and wording.

Everything comes as UTF-8, escaped and ready to be written.
"""

from __future__ import annotations

from typing import Any, Protocol


class Words(Protocol):
    """What ``kwiresniff.render.wording`` has to say. A kind is one of ``kwiresniff.render.theme``'s."""

    @property
    def limit(self) -> int:
        """Characters or bytes of a value that are shown."""

    @property
    def slack(self) -> int:
        """A value that is only so much longer is shown whole."""

    @property
    def gap(self) -> bytes:
        """What stands between the parts of a row."""

    def on(self, kind: str) -> bytes:
        """What begins a text of a kind."""

    def off(self, kind: str) -> bytes:
        """What ends it."""

    def span(self, kind: str, text: str) -> bytes:
        """A text of a kind."""

    def arrow(self) -> bytes:
        """What stands between a key and its value."""

    def identifies(self, name: str) -> bool:
        """Whether a field tells one element of an array from the others."""

    def is_range(self, names: list[str]) -> bool:
        """Whether elements with these fields are version ranges."""

    def key(self, name: str) -> bytes:
        """What a structure is called by."""

    def label(self, name: str, width: int) -> bytes:
        """The name of a field before its value."""

    def value(self, name: str, type: str, value: Any, meaning: str, identifies: bool) -> bytes:
        """The value of a field and its meaning."""

    def error(self, name: str, width: int, value: int, meaning: str) -> bytes:
        """An error code, the ``value`` of its field, that says what went wrong; the name is ``width`` wide."""

    def opened(self, name: str, content: str, version: int) -> bytes:
        """What bytes are called by that hold something."""

    def element(self, type: str, value: Any, meaning: str) -> bytes:
        """A value of an array and its meaning."""

    def text(self, value: str | bytes, quote: bool) -> str:
        """A string or bytes, cut where they are long."""

    def more(self, count: int, unit: str) -> bytes:
        """What stands for the part of a text that is cut."""

    def size(self, size: int) -> bytes:
        """A number of bytes."""

    def clock(self, second: int) -> bytes:
        """The time of day of a second since 1970, up to its decimal point."""

    def instant(self, second: int) -> bytes:
        """Date and time of a second since 1970, up to its decimal point."""

    def batch(self, count: int, size: int, compressed: int, uncompressed: int, codec: int) -> bytes:
        """How many records a batch holds in how many bytes; ``compressed`` and ``uncompressed`` are bytes of the
        records alone, ``codec`` the number in the attributes."""

    def ranges(self, name: str, count: int) -> bytes:
        """What leads the row of an array of version ranges."""

    def version_range(self, name: str, low: int, high: int) -> bytes:
        """A version range in that row, from ``low`` to ``high``."""

    def hidden_elements(self, name: str, hidden: int, count: int, calm: bool) -> bytes:
        """The row that stands for ``hidden`` elements without one; ``calm`` says that nothing is wrong with them."""

    def hidden_batches(self, hidden: int, size: int) -> bytes:
        """The row that stands for ``hidden`` batches without one."""

    def hidden_records(self, hidden: int) -> bytes:
        """The row that stands for ``hidden`` records without one."""

    def hidden_parts(self, hidden: int) -> bytes:
        """What stands for ``hidden`` values of an array, or headers, that are not shown."""
