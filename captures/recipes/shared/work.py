"""Where what recipes download is kept from one to the next, and how long they wait for a client program."""

from __future__ import annotations

import argparse
from pathlib import Path

DEFAULT_WORK = Path.home() / ".cache" / "kwiresniff-recipes"
CLIENT_TIMEOUT_S = 150  # the longest recipe takes a quarter of that


def work_folder(description: str | None) -> Path:
    """The folder that ``--work`` names, the only option of a recipe that records all or nothing."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=DEFAULT_WORK, help="where downloads are kept")
    work: Path = parser.parse_args().work
    work.mkdir(parents=True, exist_ok=True)
    return work
