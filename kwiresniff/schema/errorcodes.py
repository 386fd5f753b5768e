"""Kafka's error codes: official name and whether a client may try again.

``data/errors.txt`` has one line a code, ``CODE NAME``, with ``retriable`` behind it where the exception a client gets
for it is a ``RetriableException``. Source: Kafka's ``Errors`` enumeration.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kwiresniff.errors import SchemaError
from kwiresniff.schema.apis import DATA, nearest


@dataclass(frozen=True, slots=True)
class KafkaError:
    """One error code, 0 (``NONE``) and -1 (``UNKNOWN_SERVER_ERROR``) included."""

    code: int
    name: str
    retriable: bool


@lru_cache(maxsize=1)
def _errors() -> dict[int, KafkaError]:
    found = {}
    for line in (DATA / "errors.txt").read_text("utf-8").splitlines():
        code, name, *retriable = line.split()
        found[int(code)] = KafkaError(int(code), name, bool(retriable))
    return found


def error(code: int) -> KafkaError:
    """The error with this code; one that is not known is named ``UNKNOWN_ERROR_CODE_<code>``."""
    found = _errors().get(code)
    return found if found is not None else KafkaError(code, f"UNKNOWN_ERROR_CODE_{code}", False)


def error_by_name(name: str) -> KafkaError:
    """The error with this official name, in any case; raises SchemaError with the nearest names."""
    wanted = name.upper()
    for known in _errors().values():
        if known.name == wanted:
            return known
    raise SchemaError(f"no error code is named {name!r}{nearest(name, [known.name for known in _errors().values()])}")


def error_codes() -> tuple[KafkaError, ...]:
    """Every known error in the order of codes."""
    return tuple(_errors().values())
