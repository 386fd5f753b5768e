"""hatchling as the build backend, which asks for everything it needs at once.

pip installs what pyproject.toml requires before it asks a backend what else it needs. Each time is a process of pip's
that takes a second, so pyproject.toml requires nothing. What compiles is asked for only where it can: hatch_build.py.

Standard library only, until something is built.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any

BACKEND = ["hatchling>=1.25"]
#: Which an editable install needs besides, by hatchling's account.
EDITABLE = ["editables~=0.3"]
#: What compiles the modules.
COMPILER = ["mypy[mypyc]>=2.4,<3"]
#: Set to anything but 0 or nothing, it switches compiling off.
OFF = "KWIRESNIFF_PURE"


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    return BACKEND if obstacle() else BACKEND + COMPILER


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    return BACKEND + EDITABLE


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    return BACKEND


def build_wheel(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    from hatchling import build

    return str(build.build_wheel(wheel_directory, config_settings, metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: dict[str, Any] | None = None, metadata_directory: str | None = None
) -> str:
    from hatchling import build

    return str(build.build_editable(wheel_directory, config_settings, metadata_directory))


def build_sdist(sdist_directory: str, config_settings: dict[str, Any] | None = None) -> str:
    from hatchling import build

    return str(build.build_sdist(sdist_directory, config_settings))


def obstacle() -> str:
    """Why nothing can be compiled here, or an empty string."""
    if os.environ.get(OFF, "0") not in ("", "0"):
        return f"{OFF} is set"
    if sys.implementation.name != "cpython":
        return "only CPython has compiled modules"
    if shutil.which(compiler := c_compiler()[0]) is None:
        return f"no C compiler ({compiler})"
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        return "Python's headers are not installed"
    return ""


def c_compiler() -> list[str]:
    """The command that setuptools calls to compile a C file."""
    return shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
