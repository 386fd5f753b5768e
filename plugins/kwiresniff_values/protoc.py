"""Compiles a .proto file with protoc, in a process of its own that has nothing but the files of the schema."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from kwiresniff_values.limits import MAX_SCHEMA_BYTES, PROTOC_TIMEOUT_S
from kwiresniff_values.problems import EXTRA, Unusable
from kwiresniff_values.schemas import Schema

#: The path of an import. It becomes that of a file, so it must not lead out of the folder.
_PATH = re.compile(r"(?!\.)[\w.-]+(?:/(?!\.)[\w.-]+)*")
_MAIN = "schema.proto"


def compiled(schema: Schema, others: Mapping[str, str]) -> bytes:
    """The FileDescriptorSet of a .proto file and its imports (``others``, by path). Raises Unusable."""
    assert isinstance(schema.text, str)
    with tempfile.TemporaryDirectory(prefix="kwiresniff-proto-") as scratch:
        folder, target = Path(scratch) / "in", Path(scratch) / "out"
        folder.mkdir()
        main = _MAIN if _MAIN not in others else f"main-{_MAIN}"
        for path, text in {**others, main: schema.text}.items():
            if not _PATH.fullmatch(path):
                raise Unusable(f"schema {schema.name} imports {path!r}, which is no path of a file")
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        command = [*_protoc(), f"-I{folder}", "--include_imports", f"--descriptor_set_out={target}", main]
        try:
            done = subprocess.run(
                command,
                check=False,
                capture_output=True,
                timeout=PROTOC_TIMEOUT_S,
                stdin=subprocess.DEVNULL,
                cwd=scratch,
            )
        except subprocess.TimeoutExpired:
            raise Unusable(f"schema {schema.name}: protoc took longer than {PROTOC_TIMEOUT_S:.0f} s") from None
        except OSError as error:
            raise Unusable(f"schema {schema.name}: protoc does not start: {error.strerror}") from None
        if done.returncode:
            said = " ".join(done.stderr.decode("utf-8", "replace").replace(f"{folder}/", "").split())[:200]
            raise Unusable(f"schema {schema.name} does not compile: {said}")
        if target.stat().st_size > 2 * MAX_SCHEMA_BYTES:
            raise Unusable(f"schema {schema.name} has a descriptor of more than {2 * MAX_SCHEMA_BYTES} bytes")
        return target.read_bytes()


def _protoc() -> list[str]:
    found = importlib.util.find_spec("grpc_tools")
    if found is not None and found.submodule_search_locations and os.access(sys.executable, os.X_OK):
        well_known = Path(found.submodule_search_locations[0]) / "_proto"
        # -P: what lies in the working directory is not imported.
        return [sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{well_known}"]
    path = shutil.which("protoc")
    if path is None:
        raise Unusable(f"a .proto file needs protoc, where this user may run it: {EXTRA}; a descriptor set does not")
    return [path]
