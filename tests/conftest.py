"""Options of the test run."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kwiresniff.cli.main import main
from kwiresniff.codec.record_limits import decompress_always
from tests.support.command import Done
from tests.support.environment import INSIDE
from tests.support.package import HOME
from tests.support.paths import ROOT

if HOME != ROOT:
    # The installed package is tested. Processes that tests start must not find the sources of the checkout first.
    os.environ["PYTHONSAFEPATH"] = "1"

# How long an example takes, or to make one, says nothing of the code on a machine with much else to do.
# A reader's test run tries fewer examples than .ci/run, which sets CI.
settings.register_profile(
    "patient",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=100 if "CI" in os.environ else 40,
)
settings.load_profile("patient")

# Nothing that is collected is freed; see below.
gc.disable()

#: Which of the tests run there: all are collected, so that everything is imported, and one of so many is run.
SAMPLE = 80
#: Where the tests are that take longest. They begin first, so that no process is left alone with one of them.
LONGEST = ("test_readme.py", "test_builds.py", "test_cluster.py", "test_current_folder.py", "test_spark.py")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write what is rendered now as the golden files")
    parser.addoption("--exhaustive", action="store_true", help="damage captures in every place, not in a sample")
    parser.addoption("--more-captures", metavar="DIR", help="damage the captures in this folder as well")


def pytest_collection_finish() -> None:
    """What was collected stays to the end: nobody needs to look through it for what can be freed.

    Of what tests make, definitions and decoders stay as well: looking through them all for every few thousand objects
    took a tenth of the time of all tests.
    """
    gc.freeze()
    gc.set_threshold(20_000, 50, 100)
    gc.enable()


def pytest_sessionfinish() -> None:
    """What tests left in reference cycles is looked for once; pytest and Python would look through all of it again."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A test run inside a test run takes a sample: the whole is what is running already."""
    if INSIDE in os.environ:
        config.hook.pytest_deselected(items=[item for index, item in enumerate(items) if index % SAMPLE])
        items[:] = items[::SAMPLE]
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.fixture
def kwiresniff(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs ``kwiresniff`` with the arguments given."""

    def run(*args: str) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        out, err = capfd.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Done(code, out, err)

    return run


@pytest.fixture
def roomy() -> Iterator[None]:
    """However few bytes a message has, a megabyte may be made of its records."""
    decompress_always(1 << 20)
    yield
    decompress_always(None)


@pytest.fixture
def ordinary_user(tmp_path: Path) -> Callable[[], AbstractContextManager[None]]:
    """``with ordinary_user():`` what is done there is not done as root, who may read everything.

    What has to be imported should be by then: an ordinary user need not be able to read this Python.
    """

    @contextmanager
    def switched() -> Iterator[None]:
        if os.geteuid():
            yield
            return
        for folder in (tmp_path, *tmp_path.parents):
            if folder == Path(tempfile.gettempdir()):
                break
            folder.chmod(0o755)
        os.seteuid(65534)
        try:
            yield
        finally:
            os.seteuid(0)

    return switched
