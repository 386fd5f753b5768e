"""Files that other processes never see half written."""

from __future__ import annotations

import os
import uuid


def replace_bytes(path: str | os.PathLike[str], data: bytes, mode: int | None = None) -> None:
    """Writes a file as a whole: into a temporary one beside it, which then takes its name.

    ``mode`` is its permissions, by default what the process gives all its files.
    """
    temporary = f"{os.fspath(path)}.{uuid.uuid4().hex}"
    with open(temporary, "xb") as file:
        file.write(data)
    if mode is not None:
        os.chmod(temporary, mode)
    os.replace(temporary, path)
