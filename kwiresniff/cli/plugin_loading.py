"""Finding and loading plugins: Python files that are named, and entry points that installed packages offer."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Sequence
from importlib import util
from pathlib import Path
from typing import Any

from kwiresniff.errors import PluginError
from kwiresniff.model import Problem
from kwiresniff.plugins import Hooks, Plugin, Plugins, described

ENTRY_POINTS = "kwiresniff.plugins"
#: How the folders end that installed packages describe themselves in; an .egg holds such a folder.
_METADATA = (".dist-info", ".egg-info", ".egg")


def load_plugins(paths: Sequence[str] = ()) -> Plugins:
    """Loads installed entry points, then the files named by the user.

    A file that cannot be loaded raises PluginError, because it was asked for; an entry point that cannot be loaded
    becomes a problem, because it only happens to be installed.
    """
    loaded: list[Plugin] = []
    problems: list[Problem] = []
    for entry in _entry_points():
        try:
            loaded.append(_register(entry.load(), entry.name, f"entry point {entry.value}"))
        except (Exception, SystemExit) as error:
            problems.append(Problem("plugin_failed", f"plugin {entry.name} cannot be loaded: {described(error)}"))
    loaded += [_load_file(path) for path in paths]
    return Plugins(loaded, problems)


def _entry_points() -> Iterable[Any]:
    """The installed entry points of our group.

    Asking importlib takes longer than reading many a capture, so it is asked only where some package names the group.
    """
    if not any(map(_may_offer, sys.path)):
        return ()
    from importlib import metadata  # brings the library of mail: a quarter of a start

    return metadata.entry_points(group=ENTRY_POINTS)


def _may_offer(folder: str) -> bool:
    """Whether a package in this folder of the import path names our group, or nobody can tell without importlib."""
    try:
        names = [name for name in os.listdir(folder or ".") if name.endswith(_METADATA)]
    except NotADirectoryError:
        return True  # an archive
    except OSError:
        return False
    for name in names:
        if name.endswith(".egg"):
            return True
        path = f"{folder or '.'}/{name}/entry_points.txt"
        if not os.access(path, os.R_OK):  # most packages have none
            continue
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if ENTRY_POINTS.encode() in file.read():
                return True
    return False


def _load_file(path: str) -> Plugin:
    file = Path(path)
    if not file.is_file():
        raise PluginError(f"plugin {path}: no such file; give the path of a Python file")
    spec = util.spec_from_file_location(f"kwiresniff_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plugin {path}: not a Python file; its name must end in .py")
    module = util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
        return _register(module, file.stem, str(file))
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"plugin {path} cannot be loaded: {described(error)}") from error


def _register(module: Any, name: str, origin: str) -> Plugin:
    """Calls ``register`` of a module; an entry point may also name the function itself."""
    register = getattr(module, "register", module)
    if not callable(register):
        raise PluginError(f"plugin {origin}: has no function register(hooks)")
    plugin = Plugin(name, origin)
    register(Hooks(plugin))
    return plugin
