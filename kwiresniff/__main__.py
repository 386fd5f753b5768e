"""The command ``kwiresniff``, also as ``python -m kwiresniff``."""

import gc
import os
import sys


def main() -> None:
    """Runs the command; never returns."""
    if sys.stdin is None or sys.stdout is None or sys.stderr is None:
        _open_standard_streams()
    # What is made while modules are loaded stays, and what is left at the end goes with the process: looking for
    # garbage in it takes a tenth of a short run.
    gc.disable()
    from kwiresniff.cli.main import main as command

    try:
        command()
    finally:
        gc.freeze()


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
