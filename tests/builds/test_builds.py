"""The compiled modules and the sources that they were compiled from do the same, and the tests run what users run."""

from __future__ import annotations

import ast
import importlib
import os
import random
import subprocess
import sys
import sysconfig
import tomllib
import traceback
from collections.abc import Callable, Sequence
from itertools import cycle, repeat
from pathlib import Path, PurePosixPath

import pytest

from kwiresniff.analysis.latency import Histogram
from kwiresniff.base.fastint import COMPILED
from kwiresniff.capture import open_captures
from kwiresniff.model import Segment
from tests.support.build_outputs import OUTPUTS
from tests.support.capture_files import pcap
from tests.support.damages import mutated, snapped, thinned
from tests.support.environment import BUILD
from tests.support.package import HOME
from tests.support.paths import CAPTURES, ROOT, TESTS

NAMES = sorted(str(path.relative_to(CAPTURES)) for path in CAPTURES.rglob("*.pcap*") if "expected" not in path.parts)
#: Recordings are damaged up to this size: some thousand packets.
SMALL_BYTES = 14_000
SECONDS = 1200


def listed(name: str) -> tuple[str, ...]:
    """A list in hatch_build.py, which cannot be imported where hatchling is not installed."""
    for statement in ast.parse((ROOT / "hatch_build.py").read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name:
            return tuple(ast.literal_eval(statement.value))
    raise AssertionError(f"hatch_build.py has no {name}")


def test_a_traceback_names_functions_and_lines_of_the_source() -> None:
    """Compiled modules add the line of the source to what they raise."""
    with pytest.raises(ValueError, match="no values") as raised:
        Histogram().percentiles([0.5])
    *_, last = traceback.extract_tb(raised.value.__traceback__)
    assert (Path(last.filename).name, last.name) == ("latency.py", "percentiles")
    source = (ROOT / "kwiresniff" / "analysis" / "latency.py").read_text(encoding="utf-8").splitlines()
    assert last.lineno is not None and "no values" in source[last.lineno - 1]


@pytest.mark.skipif(os.environ.get(BUILD) != "installed", reason=f"{BUILD} does not ask for the installed package")
def test_what_is_tested_is_the_installed_compiled_package() -> None:
    """Every module of the list is an extension module in the site-packages of this Python."""
    places = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    assert HOME in places
    for path in listed("COMPILED"):
        file = importlib.import_module(path.removesuffix(".py").replace("/", ".")).__file__
        assert file is not None and file.endswith(sysconfig.get_config_var("EXT_SUFFIX")), path
        assert Path(file).resolve().is_relative_to(HOME), path


@pytest.mark.skipif(os.environ.get(BUILD) != "installed", reason=f"{BUILD} does not ask for the installed package")
@pytest.mark.parametrize(
    "how", [["-c", "import kwiresniff; print(kwiresniff.__file__)"], ["-m", "kwiresniff", "--version"]]
)
def test_processes_that_tests_start_run_it_too(how: list[str]) -> None:
    """Processes started in the checkout, whose sources would come first, import the build under test, too."""
    done = subprocess.run([sys.executable, *how], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.startswith(str(HOME)) or done.stdout.strip().endswith("(compiled)"), done.stdout


@pytest.mark.skipif(os.environ.get(BUILD) != "plain", reason=f"{BUILD} does not ask for plain Python")
def test_what_is_tested_is_plain_python() -> None:
    """Nothing compiled lies beside the sources."""
    assert not COMPILED


@pytest.mark.slow
@pytest.mark.parametrize("setting", [{"KWIRESNIFF_PURE": "1"}, {"CC": "/no/compiler"}])
def test_a_wheel_is_pure_where_nothing_can_be_compiled(setting: dict[str, str], tmp_path: Path) -> None:
    """Switched off, and without a C compiler: the tag of the wheel says that it holds no extension modules."""
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--wheel-dir", str(tmp_path), str(ROOT)]
    subprocess.run(command, check=True, timeout=SECONDS, env={**os.environ, **setting})
    assert [path.name.split("-", 2)[2] for path in tmp_path.iterdir()] == ["py3-none-any.whl"]


#: A recording after losses, with short packets, and with changed bytes.
DAMAGES: dict[str, Callable[[str, list[Segment]], Sequence[Segment]]] = {
    "thinned": lambda name, segments: thinned(segments, 0.2, random.Random(name)),
    "snapped": lambda name, segments: snapped(segments, 128),
    "mutated": lambda name, segments: mutated(segments, random.Random(name)),
}
SMALL = [name for name in NAMES if (CAPTURES / name).stat().st_size <= SMALL_BYTES]
#: Each recording in one of the outputs, and each small one in another, damaged in one of three ways.
CASES = [
    *zip(NAMES, repeat(""), cycle(OUTPUTS), strict=False),
    *zip(SMALL, cycle(DAMAGES), cycle(OUTPUTS), strict=False),
]


def outputs_of(build: str, names: Path) -> list[str]:
    """What a process with this build says about all captures."""
    program = str(TESTS / "support" / "build_outputs.py")
    done = subprocess.run(
        [sys.executable, "-P", program, build, str(names)],
        capture_output=True, text=True, check=False, cwd=names.parent, timeout=SECONDS,
        env={**os.environ, "PYTHONPATH": str(HOME)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.skipif(not COMPILED, reason="there is nothing compiled to hold against the sources")
@pytest.mark.parametrize("part", range(4))
def test_both_builds_say_the_same_about_recordings_and_damaged_forms_of_them(part: int, tmp_path: Path) -> None:
    """Byte for byte as JSON lines, trees, summaries and statistics, messages and exit codes included."""
    lines = []
    for name, how, output in CASES[part::4]:
        path = CAPTURES / name
        if how:
            segments = [segment for segment in open_captures([str(path)]) if len(segment[2]) == 12]
            path = tmp_path / f"{name.replace('/', '-')}-{how}.pcap"
            path.write_bytes(pcap(DAMAGES[how](name, segments)))
        lines.append(f"{output} {path}\n")
    names = tmp_path / "names"
    names.write_text("".join(lines))
    compiled, plain = outputs_of("installed", names), outputs_of("plain", names)
    assert len(plain) == len(lines)
    assert compiled == plain


def test_the_image_has_what_a_wheel_is_made_of() -> None:
    """A file that a wheel holds and that is not copied into the image is missing there, and nothing says so."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    licenses = project["project"]["license-files"]
    wanted = {"pyproject.toml", "hatch_build.py"}
    wanted |= {project["project"]["readme"], *licenses}
    wanted |= {*wheel["packages"], *wheel["shared-data"]}
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    copied = {
        name for line in lines if line.startswith("COPY ") and "--from" not in line for name in line.split()[1:-1]
    }
    let_in = {
        line[1:] for line in (ROOT / ".containerignore").read_text(encoding="utf-8").splitlines() if line[0] == "!"
    }
    for name in wanted:
        ways = {name, *map(str, PurePosixPath(name).parents)}
        assert ways & copied, f"{name} is not copied"
        assert ways & let_in, f"{name} is ignored"
