"""The README's first two commands, in a clean clone and a clean environment, as a new user would run them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.readme_commands import README, commands
from tests.support.environment import INSIDE

ROOT = README.parent


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of the committed state; of the files git knows when there are uncommitted changes."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("needs a git checkout and git")
    target = tmp_path_factory.mktemp("clone") / "kwiresniff"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(target)], check=True)
    return target


def run(command: str, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run one README line with an environment that holds nothing of this one but what pip needs."""
    keep = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "SSL_", "REQUESTS_", "CI"))}
    environment = {**keep, "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", str(cwd)), "LANG": "C.UTF-8"}
    return subprocess.run(
        ["bash", "-c", command],
        check=False,
        cwd=cwd,
        env={**environment, **extra},
        text=True,
        capture_output=True,
        timeout=900,
    )


def test_each_command_is_one_line() -> None:
    """Somebody types it: one line each, and both stand on the first screen."""
    lines = commands()
    assert set(lines) >= {"read", "test"}
    assert all("\n" not in lines[name] for name in ("read", "test"))


@pytest.mark.slow
@pytest.mark.skipif(INSIDE in os.environ, reason="already inside the README's test command")
def test_the_first_command_decodes_a_shipped_capture(clone: Path) -> None:
    """The first command of the README prints a conversation with names that are in the capture."""
    result = run(commands()["read"], clone)
    assert result.returncode == 0, result.stderr
    assert "Metadata" in result.stdout
    assert "orders" in result.stdout


@pytest.mark.slow
@pytest.mark.skipif(INSIDE in os.environ, reason="already inside the README's test command")
def test_the_second_command_passes_the_tests(clone: Path) -> None:
    """With the whole suite collected and a sample of it run; as plain Python, since the first command has compiled."""
    result = run(commands()["test"], clone, KWIRESNIFF_PURE="1", PYTEST_ADDOPTS="-n 0", **{INSIDE: "1"})
    assert result.returncode == 0, result.stdout[-4000:] + result.stderr[-2000:]
    assert " passed" in result.stdout
