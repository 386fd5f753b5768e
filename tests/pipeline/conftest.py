"""One small Spark session for all tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import pytest

from kwiresniff.errors import KwiresniffError
from tests.support.environment import REQUIRE_SPARK
from tests.support.package import HOME


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Spark takes half a minute to start."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A session with two workers, in folders that go away."""
    if find_spec("pyspark") is None and not os.environ.get(REQUIRE_SPARK):
        pytest.skip("pyspark is not installed; pip install '.[spark]'")
    from kwiresniff.pipeline import session

    names = ("PYTHONPATH", "JAVA_HOME", "PYSPARK_PYTHON", "SPARK_HOME", "SPARK_LOCAL_IP")
    before = {name: os.environ.get(name) for name in names}
    # Workers import the package that is tested, wherever the tests were started.
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HOME), before["PYTHONPATH"]]))
    warehouse = tmp_path_factory.mktemp("warehouse")
    try:
        found = session("local[2]", spark__sql__warehouse__dir=str(warehouse), spark__local__dir=str(warehouse))
    except KwiresniffError as error:
        if os.environ.get(REQUIRE_SPARK):
            raise
        pytest.skip(str(error))
    yield found
    found.stop()
    for name, value in before.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
