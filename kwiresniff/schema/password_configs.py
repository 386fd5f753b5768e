"""Which configs Kafka itself takes for passwords, and which only sound like it.

``data/password_configs.txt`` has a line for each: its name and its type in Kafka's own ConfigDefs. All of type PASSWORD
are there, and those of other types whose names have a word like secret or key in them (``password.encoder.iterations``
is a number). It is made from Kafka's jars by ``tests/schema/data/password_configs``.
"""

from __future__ import annotations

from functools import lru_cache

from kwiresniff.schema.apis import read_data

FILE = "password_configs.txt"
PASSWORD = "PASSWORD"


@lru_cache(maxsize=1)
def _types() -> tuple[dict[str, str], int, frozenset[str]]:
    """The types by name, the length of the longest name, and what stands behind the last dots of the names. What was a
    PASSWORD in any release is one."""
    types: dict[str, str] = {}
    for line in read_data(FILE).splitlines():
        name, config_type = line.split()
        if types.get(name) != PASSWORD:
            types[name] = config_type
    return types, max(map(len, types)), frozenset(name[name.rfind(".") + 1 :] for name in types)


def config_type(name: str) -> tuple[str, str] | None:
    """The type of a known config, with the prefix before its name (``listener.name.internal.``), or None."""
    types, longest, last_words = _types()
    if name[name.rfind(".") + 1 :] not in last_words:
        return None
    start = name.rfind(".", 0, max(len(name) - longest, 0)) + 1 if len(name) > longest else 0
    while True:
        if name[start:] in types:
            return types[name[start:]], name[:start]
        dot = name.find(".", start)
        if dot < 0:
            return None
        start = dot + 1
