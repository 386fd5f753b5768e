"""A traffic-sniffing protocol analyzer for Kafka.

``read`` and ``read_into`` are for programs in Python; docs/python.md describes them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kwiresniff.library import (
        Connection,
        ConnectionAttempt,
        Exchange,
        KwiresniffError,
        Message,
        Problem,
        Sink,
        event_json,
        read,
        read_into,
    )

__all__ = [
    "Connection", "ConnectionAttempt", "Exchange", "KwiresniffError", "Message", "Problem", "Sink", "event_json",
    "read", "read_into",
]  # fmt: skip
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Imports the library when it is asked for: commands do without most of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kwiresniff import library

    return getattr(library, name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
