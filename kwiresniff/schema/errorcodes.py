"""Kafka's error codes: official name and whether a client may try again.

``data/errors.txt`` has one line a code, ``CODE NAME``, then ``retriable`` where the exception a client gets for it is a
``RetriableException``, then ``was`` and the names that older releases gave it. Source: Kafka's ``Errors`` enumeration
in 4.4, older names from those of 0.8.2 to 4.0.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import nearest, read_data

#: Errors kept; there are some 130, and an INT16 has room for many that are none.
_REMEMBERED = 1024


class KafkaError(NamedTuple):
    """One error code, 0 (``NONE``) and -1 (``UNKNOWN_SERVER_ERROR``) included."""

    code: int
    name: str
    retriable: bool
    aliases: tuple[str, ...] = ()


@lru_cache(maxsize=1)
def _lines() -> dict[int, str]:
    """The lines of the file by code, each parsed on demand: a capture has few codes."""
    found = {}
    for line in read_data("errors.txt").splitlines():
        code, _, said = line.partition(" ")
        found[int(code)] = said
    return found


def _understood(code: int, said: str) -> KafkaError:
    name, *more = said.split()
    aliases = tuple(more[more.index("was") + 1].split(",")) if "was" in more else ()
    return KafkaError(code, name, "retriable" in more, aliases)


@lru_cache(maxsize=_REMEMBERED)
def error(code: int) -> KafkaError:
    """The error with this code; one that is not known is named ``UNKNOWN_ERROR_CODE_<code>``."""
    said = _lines().get(code)
    return _understood(code, said) if said is not None else KafkaError(code, f"UNKNOWN_ERROR_CODE_{code}", False)


def error_by_name(name: str) -> KafkaError:
    """The error with this official or older name, in any case; raises SchemaError with the nearest names."""
    wanted = name.upper()
    for known in error_codes():
        if known.name == wanted or wanted in known.aliases:
            return known
    raise SchemaError(f"no error code is named {name!r}{nearest(name, [known.name for known in error_codes()])}")


def error_codes() -> tuple[KafkaError, ...]:
    """Every known error in the order of codes."""
    return tuple(_understood(code, said) for code, said in _lines().items())
