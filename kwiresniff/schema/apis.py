"""Which APIs there are, by key and by name, and their versions: answered from the index, no definition is opened."""

from __future__ import annotations

import os
from functools import cache

from kwiresniff.errors import SchemaError
from kwiresniff.schema.index import INDEX_NAME, Api, DataIndex, fold_name, names_of, parse_apis, parse_data

DATA = os.path.join(os.path.dirname(__file__), "data")


#: Files of the definitions that are kept, by name: none, unless they will be out of reach.
_KEPT: dict[str, str] = {}


def keep_data() -> None:
    """Reads all files of the definitions now, and never again."""
    _KEPT.update((name, read_data(name)) for name in os.listdir(DATA) if name.endswith(".txt"))


def read_data(name: str) -> str:
    """A file of the definitions."""
    if name in _KEPT:
        return _KEPT[name]
    with open(os.path.join(DATA, name), "rb", buffering=0) as file:
        return file.read().decode()


_APIS = parse_apis(read_data(INDEX_NAME))

#: The newest official name of every API by its key.
API_NAMES: dict[int, str] = {key: api.name for key, api in _APIS.items()}


def apis() -> tuple[Api, ...]:
    """Every API that any release has had, in the order of keys."""
    return tuple(_APIS.values())


def api_by_key(key: int) -> Api | None:
    """The API with this key, or None."""
    return _APIS.get(key)


def known_api(key: int) -> Api:
    """The API with this key; raises SchemaError when there is none."""
    api = _APIS.get(key)
    if api is None:
        raise SchemaError(f"no API has key {key}; known are {min(_APIS)} to {max(_APIS)}, see: kwiresniff schema list")
    return api


def api_by_name(name: str) -> Api:
    """The API with this official or older name, whatever its case; raises SchemaError with the nearest names."""
    api = _by_name().get(fold_name(name))
    if api is None:
        raise SchemaError(f"no API is named {name!r}{nearest(name, list(API_NAMES.values()))}")
    return api


@cache
def _by_name() -> dict[str, Api]:
    return names_of(_APIS.values())


@cache
def data_index() -> DataIndex:
    """Where the messages are that are of no API."""
    return parse_data(read_data(INDEX_NAME))


def find_api(api: int | str) -> Api:
    """The API with this key or name; raises SchemaError."""
    return known_api(api) if isinstance(api, int) else api_by_name(api)


def version_range(api_key: int) -> tuple[int, int]:
    """The lowest and highest version any release has had; raises SchemaError for an unknown key."""
    return known_api(api_key).versions


def nearest(name: str, names: list[str]) -> str:
    """``; did you mean ...`` with the names most like ``name``, or where to find them all."""
    from difflib import get_close_matches

    folded = {fold_name(known): known for known in names}
    close = get_close_matches(fold_name(name), list(folded), n=3, cutoff=0.6)
    if close:
        return f"; did you mean {' or '.join(folded[one] for one in close)}?"
    return "; see: kwiresniff schema list"
