"""Files that other processes never see half written."""

from __future__ import annotations

import os
import uuid


def replace_bytes(path: str | os.PathLike[str], data: bytes, mode: int | None = None) -> None:
    """Writes a file as a whole: into a temporary one beside it, which then takes its name.

    ``mode`` is its permissions, by default what the process gives all its files.
    """
    temporary = f"{os.fspath(path)}.{uuid.uuid4().hex}"
    permissions = 0o666 if mode is None else mode
    with open(temporary, "xb", opener=lambda name, flags: os.open(name, flags, permissions)) as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(data)
    os.replace(temporary, path)
