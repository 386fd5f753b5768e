"""The commands the README promises, read out of the README: ``python tests/readme_commands.py read|test``.

Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"

_BLOCK = re.compile(r"^<!-- command: (\w+) -->\n```(?:sh|console)\n(.+?)\n```$", re.MULTILINE)


def commands() -> dict[str, str]:
    """Name to command line, for every block of the README that is marked with ``<!-- command: NAME -->``."""
    return {match[1]: match[2] for match in _BLOCK.finditer(README.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    print(commands()[sys.argv[1]])
