"""Where pyshark looks for its settings: beside itself, and not in the folder in which somebody happens to be.

A ``config.ini`` there belongs to another program, or to an attacker, who would choose which program is run as tshark.
"""

from __future__ import annotations

import os
from pathlib import Path

NO_FILE = Path(os.devnull, "config.ini")


def use_own_settings() -> None:
    """Keeps pyshark from reading config.ini in the current folder, or one in its own that may no longer be read."""
    from pyshark import config

    readable = os.access(config.__file__, os.R_OK)
    config.pyshark_config_path = Path(config.__file__).parent / "config.ini" if readable else NO_FILE
    config.fp_config_path = config.pyshark_config_path
