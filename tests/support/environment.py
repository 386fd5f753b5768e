"""The environment variables that steer the tests."""

from __future__ import annotations

#: Set where the README's test command runs inside a test, see test_readme.py.
INSIDE = "KWIRESNIFF_INSIDE_README_TEST"
#: Set where Spark has been installed on purpose: there its tests must run, not be passed over.
REQUIRE_SPARK = "KWIRESNIFF_REQUIRE_SPARK"
#: Which build the tests must find: ``installed`` is the installed package with its modules compiled, ``plain`` is plain
#: Python, wherever it lies. Anything may be tested where it is not set.
BUILD = "KWIRESNIFF_TESTED_BUILD"
