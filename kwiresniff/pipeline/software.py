"""The installed software that decides how much of a capture is understood, compared between driver and executors.

An executor that lacks some of it would say less of the same capture, and nobody would know. So the work says what there
was where it was planned, and is refused where that is not so.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

from kwiresniff import __version__
from kwiresniff.errors import KwiresniffError

#: Compressions of captures and of record batches, checksums, and what clients push about themselves.
_PACKAGES = ("cramjam", "google_crc32c", "lz4", "opentelemetry.proto", "zstandard")


def software() -> tuple[str, ...]:
    """The software that is installed here."""
    return (f"kwiresniff {__version__}", *(name for name in _PACKAGES if _is_there(name)))


def check_software(planned: Iterable[str]) -> None:
    """Raises KwiresniffError unless the same is installed here as where the work was planned; for nothing, it is."""
    wanted, here = set(planned), set(software())
    if wanted and wanted != here:
        lacking = ", ".join(sorted(wanted - here)) or "nothing"
        more = ", ".join(sorted(here - wanted)) or "nothing"
        raise KwiresniffError(
            f"this worker's Python lacks {lacking} and has {more} besides what the driver has: install the same on "
            "all machines, or results would differ"
        )


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False
