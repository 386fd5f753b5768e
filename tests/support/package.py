"""The package under test: the checkout's sources, or the installed package."""

from __future__ import annotations

import os
from pathlib import Path

import kwiresniff
from tests.support.paths import ROOT

#: The folder that the package was imported from. Processes that are to import the same one get it as PYTHONPATH.
HOME = Path(kwiresniff.__file__).resolve().parents[1]
#: The environment of processes that are to import the same package, and the tests' helpers besides.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys((str(HOME), str(ROOT))))}
