"""Finding and loading plugins: Python files and folders that are named, and entry points of installed packages."""

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
from kwiresniff.plugins.answers import described, out_of_reach
from kwiresniff.plugins.hooks import NO_OPTIONS, Hooks, Plugin, PluginOptions
from kwiresniff.plugins.running import Plugins

ENTRY_POINTS = "kwiresniff.plugins"
#: How the folders end that installed packages describe themselves in; an .egg holds such a folder.
_METADATA = (".dist-info", ".egg-info", ".egg")


def load_plugins(paths: Sequence[str] = (), options: PluginOptions = NO_OPTIONS) -> Plugins:
    """Loads entry points, files and folders of files, and with ``options`` our own decoders. Raises PluginError for a
    file that cannot be loaded; an entry point becomes a problem.
    """
    with contextlib.redirect_stdout(sys.stderr):  # what they print is no output
        loaded, problems = _load_all(paths, options)
    return Plugins([*loaded, *_own(options)], problems)


def _load_all(paths: Sequence[str], options: PluginOptions) -> tuple[list[Plugin], list[Problem]]:
    loaded: list[Plugin] = []
    problems: list[Problem] = []
    for entry in _entry_points():
        try:
            loaded.append(
                _register(entry.load(), entry.name, f"entry point {entry.value}", ("entry point", entry.name), options)
            )
        except (Exception, SystemExit) as error:
            problems.append(Problem("plugin_failed", f"plugin {entry.name} cannot be loaded: {described(error)}"))
    return [*loaded, *(_load_file(file, options) for path in paths for file in files_of(path))], problems


def load_own(options: PluginOptions) -> Plugins:
    """Loads the decoders that come with kwiresniff alone, where there are ``options`` for them."""
    return Plugins(_own(options))


def _own(options: PluginOptions) -> list[Plugin]:
    if not any(options):
        return []
    import kwiresniff_values  # brings what few commands need

    return [_register(kwiresniff_values, "values", "kwiresniff itself", None, options)]


def load_again(source: tuple[str, str], options: PluginOptions) -> Plugin:
    """Loads in another process the plugin that has this ``source``; raises PluginError."""
    kind, where = source
    if kind == "file":
        return _load_file(Path(where), options)
    for entry in _entry_points():
        if entry.name == where:
            return _register(entry.load(), entry.name, f"entry point {entry.value}", source, options)
    raise PluginError(f"plugin {where}: no package offers it any more; install it again")


def _entry_points() -> Iterable[Any]:
    """The installed entry points of our group, searched by importlib only where a package names it."""
    folders = _import_path()
    if not any(map(_may_offer, folders)):
        return ()
    from importlib import metadata  # brings the library of mail: a quarter of a start

    found: dict[tuple[str, str], Any] = {}
    for package in metadata.distributions(path=folders):
        for entry in package.entry_points.select(group=ENTRY_POINTS):
            found.setdefault((entry.name, entry.value), entry)
    return found.values()


def _import_path() -> list[str]:
    """The import path of installed packages, without the current folder and relative entries."""
    folders = [folder for folder in sys.path if os.path.isabs(folder)]
    with contextlib.suppress(OSError):  # a current folder that has been removed
        if folders and not sys.flags.safe_path and folders[0] == sys.path[0] == os.getcwd():
            del folders[0]
    return folders


def _may_offer(folder: str) -> bool:
    """Whether a package in this folder of the import path names our group, or importlib must be asked."""
    try:
        names = [name for name in os.listdir(folder) if name.endswith(_METADATA)]
    except NotADirectoryError:
        return True  # an archive
    except OSError:
        return False
    for name in names:
        if name.endswith(".egg"):
            return True
        path = f"{folder}/{name}/entry_points.txt"
        if not os.access(path, os.R_OK):  # most packages have none
            continue
        with contextlib.suppress(OSError), open(path, "rb") as file:
            if ENTRY_POINTS.encode() in file.read():
                return True
    return False


def files_of(path: str) -> list[Path]:
    """The Python files that a path names: itself, or all in a folder but those that begin with ``_``."""
    named = Path(path)
    if named.is_dir():
        found = sorted(file for file in named.glob("*.py") if not file.name.startswith("_"))
        if not found:
            raise PluginError(f"plugin {path}: no Python file in this folder; give the path of a file or a folder")
        return found
    if not named.is_file():
        raise PluginError(f"plugin {path}: no such file; give the path of a Python file or a folder of them")
    return [named]


def _load_file(file: Path, options: PluginOptions) -> Plugin:
    spec = util.spec_from_file_location(f"kwiresniff_plugin_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise PluginError(f"plugin {file}: not a Python file; its name must end in .py")
    module = util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look for the module of their class
    try:
        spec.loader.exec_module(module)
        return _register(module, file.stem, str(file), ("file", os.path.abspath(file)), options)
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        why = [described(error)]
        if isinstance(error, ImportError):  # of what is installed where this user may not look
            why += filter(None, {out_of_reach(sys.prefix), out_of_reach(sys.base_prefix)})
        raise PluginError(f"plugin {file} cannot be loaded: {'; '.join(why)}") from error


def _register(module: Any, name: str, origin: str, source: tuple[str, str] | None, options: PluginOptions) -> Plugin:
    """Calls ``register`` of a module; an entry point may also name the function itself."""
    register = getattr(module, "register", module)
    if not callable(register):
        raise PluginError(f"plugin {origin}: has no function register(hooks)")
    plugin = Plugin(name, origin, source, options)
    register(Hooks(plugin))
    return plugin
