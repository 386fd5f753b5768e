"""The C of compiled modules is rewritten to compile faster: mypyc still writes what is looked for."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.slow
#: A module that imports two others, and has a line that can fail and a value that may be of the wrong type.
SOURCES = {
    "one": "class One:\n    def __init__(self) -> None:\n        self.text = 'a'\n",
    "two": "from ours.one import One\n\ndef two(one: One | None) -> str:\n    assert one\n"
    "    return one.text + str(one)\n",
    "three": "from ours.one import One\nfrom ours.two import two\n\ndef three(value: object) -> One:\n"
    "    one = {1: value}[2]\n    assert two(None)\n    return one  # type: ignore\n",
}
COMPILE = """
import sys
from mypyc.build import mypycify
mypycify(["--config-file=", "--cache-dir=/dev/null", *sys.argv[1:]], target_dir="c", group_name="ours", multi_file=True)
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The C of the three modules as mypyc writes it."""
    pytest.importorskip("mypyc", reason="needs mypyc, which the test extra installs")
    folder = tmp_path_factory.mktemp("written")
    package = folder / "ours"
    package.mkdir()
    for name, source in {"__init__": "", **SOURCES}.items():
        (package / f"{name}.py").write_text(source, encoding="utf-8")
    paths = [f"ours/{name}.py" for name in SOURCES]
    subprocess.run([sys.executable, "-c", COMPILE, *paths], cwd=folder, check=True, capture_output=True, timeout=300)
    return {name: (folder / f"c/__native_ours___{name}.c").read_text(encoding="utf-8") for name in SOURCES}


def lightened(texts: dict[str, str], folder: Path) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("lighter_c", ROOT / "lighter_c.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    paths = {name: folder / f"__native_ours___{name}.c" for name in texts}
    for name, path in paths.items():
        path.write_text(texts[name], encoding="utf-8")
    module.lighten(list(paths.values()))
    return {name: path.read_text(encoding="utf-8") for name, path in paths.items()}


def test_what_mypyc_repeats_is_written_once(written: dict[str, str], tmp_path: Path) -> None:
    texts = lightened(written, tmp_path)
    imports = {name: source.count("from ours.") for name, source in SOURCES.items()}
    assert {name: text.count("imported_module(CPyStatics") for name, text in texts.items()} == imports
    assert {name: text.count("CPyImport_ImportNative(") for name, text in texts.items()} == dict.fromkeys(texts, 1)
    assert {name: text.count("return made_module(&") for name, text in texts.items()} == dict.fromkeys(texts, 1)
    for name, text in texts.items():
        assert "likely(" not in text.partition("#endif\n")[2]
        # Of what notes lines of tracebacks there is one each, with the name of the module.
        assert len(re.findall(r'CPy_(?:AddTraceback|TypeErrorTraceback)\("ours/', text)) <= 2, name
    assert "type_error___native_ours___three(" in texts["three"]
    assert texts["three"].count("traceback___native_ours___three(") > 2


def test_what_is_not_as_expected_stays(written: dict[str, str], tmp_path: Path) -> None:
    """Another mypyc may write another text: here what asks whether a module is there, and what makes one."""
    other = written["three"].replace("CPyImport_IsInitialized(", "CPyImport_IsInitialised(")
    other = other.replace("PyModule_Create(", "PyModule_Create3(")
    texts = lightened({**written, "three": other}, tmp_path)
    assert "imported_module(CPyStatics" not in texts["three"]
    assert texts["three"].count("CPyImport_ImportNative(") == 3
    assert "return made_module(&" not in texts["three"]
    assert "return made_module(&" in texts["two"]
