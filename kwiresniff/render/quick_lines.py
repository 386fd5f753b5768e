"""The base of quick writers: lines in UTF-8 of exchanges with nothing unusual about them. Written for mypyc."""

from __future__ import annotations

from librt.strings import BytesWriter

from kwiresniff.model import Exchange


class QuickLines:
    """Makes the lines of an exchange; a class to derive from, not a protocol, because it is called for each of them."""

    def write(self, exchange: Exchange, out: BytesWriter) -> bool:
        """Write the lines of an exchange; False, and nothing is written, for one that needs a more careful writer."""
        raise NotImplementedError

    def lines(self, exchange: Exchange) -> bytes | None:
        """The lines of an exchange, None for one that needs a more careful writer."""
        out = BytesWriter()
        return out.getvalue() if self.write(exchange, out) else None
