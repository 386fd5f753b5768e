"""The command ``kwiresniff``, also as ``python -m kwiresniff``."""

import gc


def main() -> None:
    """Runs the command; never returns."""
    # What is made while modules are loaded stays, and what is left at the end goes with the process: looking for
    # garbage in it takes a tenth of a short run.
    gc.disable()
    from kwiresniff.cli.main import main as command

    try:
        command()
    finally:
        gc.freeze()


if __name__ == "__main__":
    main()
