"""Options of the test run."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is rendered now as the golden files")
    parser.addoption("--exhaustive", action="store_true", help="damage captures in every place, not in a sample")
    parser.addoption("--more-captures", metavar="DIR", help="damage the captures in this folder as well")
