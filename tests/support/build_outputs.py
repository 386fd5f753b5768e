"""What the command says about captures, in one process: ``python -P build_outputs.py plain|installed FILE``.

FILE has a name of ``OUTPUTS`` and a path a line. For each, one line is printed: both, the exit code and a digest of all
that was written to stdout and stderr. ``plain`` passes by extension modules of kwiresniff, so that the sources beside
them are run.

It knows nothing of ``tests``, because it is run where only the package under test can be imported.
"""

from __future__ import annotations

import hashlib
import importlib.machinery
import os
import sys
import tempfile
from collections.abc import Sequence
from types import ModuleType

OUTPUTS = {
    "jsonl": ("read", "-o", "jsonl"),
    "tree": ("read", "-v"),
    "summary": ("read", "-o", "summary"),
    "stats": ("stats", "--by", "api,client,topic", "-o", "json"),
}
PACKAGE = "kwiresniff"


class SourcesOnly:
    """Finds modules of kwiresniff by their sources alone."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name.partition(".")[0] != PACKAGE:
            return None
        for folder in sys.path if path is None else path:
            sources = (importlib.machinery.SourceFileLoader, [".py"])
            found = importlib.machinery.FileFinder(folder, sources).find_spec(name)
            if found is not None:
                return found
        return None


def digest(arguments: Sequence[str]) -> str:
    """The exit code of a run of the command and a digest of what it wrote, stdout before stderr."""
    from kwiresniff.cli.main import main

    sys.stdout.flush()
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        try:
            main(list(arguments))
        except SystemExit as end:
            code = end.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for number, before in enumerate(kept, 1):
                os.dup2(before, number)
                os.close(before)
        written = hashlib.sha256()
        for file in (out, err):
            file.seek(0)
            written.update(file.read() + b"\0")
    return f"{code} {written.hexdigest()}"


def run(build: str, names: str) -> None:
    if build == "plain":
        sys.meta_path.insert(0, SourcesOnly)
    from kwiresniff.base.fastint import COMPILED

    assert (build == "plain") != COMPILED, f"the {build} build is {'compiled' if COMPILED else 'plain Python'}"
    with open(names, encoding="utf-8") as file:
        for line in file.read().splitlines():
            output, path = line.split(" ", 1)
            print(line, digest([*OUTPUTS[output], path]))


if __name__ == "__main__":
    run(*sys.argv[1:])
