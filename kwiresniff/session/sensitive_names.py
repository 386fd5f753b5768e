"""Names of configs that a broker has called sensitive (``is_sensitive`` in DescribeConfigs).

AlterConfigs and IncrementalAlterConfigs carry the values of such configs, and say nowhere that they are secrets.
"""

from __future__ import annotations

from sys import getsizeof
from typing import Any, ClassVar

from kwiresniff.schema.password_configs import config_type

#: Memory of them. A cluster's plugins have some tens, of some tens of characters.
MAX_SENSITIVE_BYTES = 1 << 20
_ENTRY_BYTES = 100


class SensitiveNames:
    """A bounded set of names; once it is full, every name that is not one of Kafka's own counts as sensitive."""

    STATE: ClassVar[tuple[str, ...]] = ("_bytes", "_full", "_names")

    def __init__(self) -> None:
        self._names: dict[str, None] = {}
        self._bytes = 0
        self._full = False

    def learn(self, name: Any) -> None:
        """Adds a config that a broker calls sensitive."""
        if not isinstance(name, str) or name in self._names:
            return
        size = getsizeof(name) + _ENTRY_BYTES
        if self._bytes + size > MAX_SENSITIVE_BYTES:
            self._full = True
            return
        self._names[name] = None
        self._bytes += size

    def assume_all(self) -> None:
        """Takes all names that are not Kafka's own for sensitive: not every broker's word is seen here."""
        self._full = True

    def __len__(self) -> int:
        return len(self._names) + self._full

    def saved(self) -> tuple[tuple[str, ...], bool]:
        """The names, and whether it is full."""
        return tuple(self._names), self._full

    def restore(self, names: tuple[str, ...], full: bool) -> None:
        """Takes over what another set holds."""
        for name in names:
            self.learn(name)
        self._full = self._full or full

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False  # withheld itself, in a message that is not sound
        if name in self._names:
            return True
        if not self._full:
            return False
        return config_type(name) is None
