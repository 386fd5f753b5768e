"""Options of the test run."""

from __future__ import annotations

import os

import pytest

#: Set where the README's test command runs inside a test, see test_readme.py.
INSIDE = "KWIRESNIFF_INSIDE_README_TEST"
#: Which of the tests run there: all are collected, so that everything is imported, and one of so many is run.
SAMPLE = 8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is rendered now as the golden files")
    parser.addoption("--exhaustive", action="store_true", help="damage captures in every place, not in a sample")
    parser.addoption("--more-captures", metavar="DIR", help="damage the captures in this folder as well")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test run inside a test run takes a sample: the whole is what is running already."""
    if INSIDE in os.environ:
        config.hook.pytest_deselected(items=[item for index, item in enumerate(items) if index % SAMPLE])
        items[:] = items[::SAMPLE]
