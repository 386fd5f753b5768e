"""``python -m kwiresniff`` is ``kwiresniff``."""

from kwiresniff.cli.main import main

if __name__ == "__main__":
    main()
