"""The command ``kwiresniff``, also as ``python -m kwiresniff``."""

import gc
import os
import signal
import sys


def main() -> None:
    """Runs the installed command, which uses no code of the current folder."""
    _leave_out_current_folder()
    run()


def run() -> None:
    """Runs the command and exits."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _open_standard_streams()
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        _leave_no_bytecode_of_root()
    # numpy comes with pyarrow. Its OpenBLAS would start a thread for each processor, which waits for
    # work in a loop. There is none: nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kwiresniff.base.process_memory import GARBAGE_THRESHOLD
    from kwiresniff.cli.main import main as command

    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        command()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the exit code is decided


def _leave_out_current_folder() -> None:
    """Keeps this process, and those it starts, from finding modules and programs in the current folder.

    ``PYTHONSAFEPATH`` keeps ``python -m`` and ``python -c`` from looking there. An entry of ``PATH`` or ``PYTHONPATH``
    that is not absolute means a folder below the current one; an empty entry means the current folder itself.
    """
    os.environ["PYTHONSAFEPATH"] = "1"
    _keep_absolute("PATH")
    relative = _keep_absolute("PYTHONPATH")
    if relative:
        try:
            found = {os.path.abspath(place) for place in relative}  # as Python has them in its own list
        except FileNotFoundError:
            return  # Nothing is found in a current folder that has been removed.
        sys.path[:] = [place for place in sys.path if place not in found]


def _keep_absolute(variable: str) -> list[str]:
    """Removes the entries that are not absolute from a search path of the environment, and returns them."""
    places = os.environ.get(variable)
    if not places:
        return []
    absolute = [place for place in places.split(os.pathsep) if os.path.isabs(place)]
    if absolute:
        os.environ[variable] = os.pathsep.join(absolute)
    else:
        del os.environ[variable]  # Programs search an empty PATH in the current folder, and have a default without one.
    return [place for place in places.split(os.pathsep) if not os.path.isabs(place)]


def _leave_no_bytecode_of_root() -> None:
    """Keeps ``sudo kwiresniff sniff`` from leaving files of root's in somebody else's environment.

    They could not update or remove it any more. What Python has written of the package until here goes again.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    if sys.dont_write_bytecode or sys.pycache_prefix or os.stat(package).st_uid == 0:
        return
    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    folder = os.path.join(package, "__pycache__")
    try:
        for name in ("__init__", "__main__"):
            path = os.path.join(folder, f"{name}.{sys.implementation.cache_tag}.pyc")
            if os.lstat(path).st_uid == 0:
                os.unlink(path)
        if os.lstat(folder).st_uid == 0:
            os.rmdir(folder)
    except OSError:
        pass  # There is none, or there is more in it.


def _open_standard_streams() -> None:
    """Gives a process that was started without one of them a stream in its place, so that no file takes its number.

    Standard input and output fail when they are used, as for other programs; what goes to standard error is lost.
    """
    for name, mode, flags in (("stdin", "r", os.O_WRONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY)):
        if getattr(sys, name) is None:
            # The lowest number that is free, which is this stream's: those below it are open by now.
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), mode))


if __name__ == "__main__":
    run()
