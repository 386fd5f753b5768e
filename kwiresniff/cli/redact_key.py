"""The key of the hashes that ``--redact`` puts in the place of values: from a file, from the command line, or none."""

from __future__ import annotations

import os

from kwiresniff.cli.options import ReadOptions
from kwiresniff.errors import KwiresniffError

#: The longest key file. A passphrase or a random key has less than a hundred bytes.
MAX_KEY_FILE_BYTES = 64 << 10


def redact_key(file: str | None, key: str | None) -> str | None:
    """The key: the content of the ``file`` without the line end behind it, where there is a file, else ``key``.

    Raises KwiresniffError for a file that cannot be read, is empty or has more than ``MAX_KEY_FILE_BYTES``.
    """
    if file is None:
        return key
    try:
        with open(file, "rb") as opened:
            content = opened.read(MAX_KEY_FILE_BYTES + 1)
    except OSError as error:
        raise KwiresniffError(f"{file}: {error.strerror or error}; name a file with a key") from None
    if len(content) > MAX_KEY_FILE_BYTES:
        raise KwiresniffError(f"{file}: a key has {MAX_KEY_FILE_BYTES >> 10} KB at most; name another file")
    content = content.removesuffix(b"\n").removesuffix(b"\r")
    if not content:
        raise KwiresniffError(f"{file}: the key is empty; write one into it, as with: openssl rand -hex 32")
    return content.decode("utf-8", "surrogateescape")


def with_redact_key(options: ReadOptions) -> ReadOptions:
    """The options with a key in the place of a key file, and with a random one where ``--redact`` stands alone: all
    processes that are given them hash alike, and none has to read the file. Raises KwiresniffError, as ``redact_key``.
    """
    key = redact_key(options.redact_key_file, options.redact_key)
    if key is None and options.redact:
        key = os.urandom(32).hex()
    return options._replace(redact_key=key, redact_key_file=None)
