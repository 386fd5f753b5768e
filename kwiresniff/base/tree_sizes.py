"""How much of a message a tree shows without ``-v``: as much as fits on a screen beside the rest.

Trees are drawn from decoded values or from annotated nodes (``kwiresniff.render``): both show the same.
"""

from __future__ import annotations

from typing import Final

#: Elements of an array of structures.
ELEMENTS_SHOWN: Final = 12
#: Version ranges of an array that stand on one row; a longer array is shown like any other. Kafka has a hundred APIs.
RANGES_SHOWN: Final = 256
#: Values of an array that stand on one line: the replicas of any sane partition, the bits of any small set.
SCALARS_SHOWN: Final = 32
#: Batches of a record set, records of a batch, headers of a record.
BATCHES_SHOWN: Final = 8
RECORDS_SHOWN: Final = 10
HEADERS_SHOWN: Final = 8

#: Names are padded so that values stand in a column; one longer than this only pushes its own value aside.
NAME_COLUMN: Final = 26

#: What an element is called by that is a range of versions, and the two ends of it.
_RANGE_NAMES: Final = frozenset(["api_key", "name"])
_RANGE_ENDS: Final = frozenset(["min_version", "max_version", "min_version_level", "max_version_level"])
#: Fields of such an element.
RANGE_FIELDS: Final = 3


def is_range(names: list[str]) -> bool:
    """Whether these fields are those of a version range: a name and two ends (drawn on one row)."""
    return len(names) == RANGE_FIELDS and names[0] in _RANGE_NAMES and set(names[1:]) <= _RANGE_ENDS
