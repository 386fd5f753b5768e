"""The command ``kwiresniff``, also as ``python -m kwiresniff``."""

import gc
import os
import signal
import sys


def main() -> None:
    """Runs the command and exits."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _open_standard_streams()
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        _leave_no_bytecode_of_root()
    # numpy comes with pyarrow and matplotlib. Its OpenBLAS would start a thread for each processor, which waits for
    # work in a loop. There is none: nothing here multiplies matrices.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from kwiresniff.base.process_memory import GARBAGE_THRESHOLD
    from kwiresniff.cli.main import main as command

    gc.set_threshold(GARBAGE_THRESHOLD)
    try:
        command()
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the exit code is decided


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
    main()
