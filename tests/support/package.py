"""The package under test: the checkout's sources, or the installed package."""

from __future__ import annotations

from pathlib import Path

import kwiresniff

#: The folder that the package was imported from. Processes that are to import the same one get it as PYTHONPATH.
HOME = Path(kwiresniff.__file__).resolve().parents[1]
