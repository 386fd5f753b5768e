"""Which configs hold a secret: by Kafka's types, by what the broker says (``is_sensitive``), by name and by value."""

from __future__ import annotations

import re
from functools import cache
from sys import getsizeof
from typing import Any, ClassVar

from kwiresniff.base.secret_texts import is_secret_text
from kwiresniff.schema.password_configs import PASSWORD, config_type

#: Words in secrets' names, in any spelling; ``pin``, ``auth`` and the like only by themselves.
_SECRET_WORDS = (
    r"pass|pwd|psw|secret|token|credential|authorization|user[^a-z0-9]?info|licen[cs]e|jwt|jaas|cookie|hmac|signature"
    r"|webhook|sensitive|keyfile|bind[^a-z0-9]?pw"
    r"|(?:priv(?:ate)?|master|api|access|rsa|aes|account|shared|signing|encryption|kms|ssh|pgp|storage|crypt|cipher"
    r"|app(?:lication)?|subscription|integration|function|sse[^a-z0-9]?customer|cipher[^a-z0-9]?data)"
    r"[^a-z0-9]?keys?"
    r"|keys?[^a-z0-9]?(?:private|master|api|access|rsa)"
    r"|(?<![a-z])(?:pw|pin|pat|sas|salt|creds?|oauth|bearer|session[^a-z0-9]?id)(?![a-z])"
    r"|(?<![a-z])(?<!client.)auth(?:[^a-z0-9]?(?:header|info|data|key|code|string))?(?![a-z0-9._-])"
)
#: Where a word begins in the middle of a name: ``dbPw``.
_WORD_START = r"(?<=[a-z0-9])(?=[A-Z])"
#: A reference to a secret that a config provider resolves (KIP-297): ``${file:/a:password}`` says where it is.
_REFERENCE = r"\$\{[\w.-]{1,64}:[^{}]{0,1024}\}"
#: DescribeConfigsResponse.ConfigType.
_PASSWORD_TYPE = 9
#: Memory of the names that brokers have called sensitive; plugins have some tens, of some tens of characters.
MAX_SENSITIVE_BYTES = 1 << 20
_ENTRY_BYTES = 100


def is_secret_name(name: Any) -> bool:
    """Whether a config's name is that of a credential, unless Kafka knows it as something else."""
    if not isinstance(name, str):
        return False
    known = config_type(name)
    if known is not None:
        kafkas_type, prefix = known
        return kafkas_type == PASSWORD or _has_secret_word(prefix)
    return _has_secret_word(name)


def _has_secret_word(name: str) -> bool:
    words = _compiled(_WORD_START).sub(".", name).lower()
    search = _compiled(_SECRET_WORDS).search
    return search(words) is not None or search(name.lower()) is not None


def is_secret_config(name: Any, value: Any, sensitive: Any = False, config_type: Any = None) -> bool:
    """Whether the value of a config is a secret; ``sensitive`` and ``config_type`` are what the broker says of it."""
    if sensitive is True or config_type == _PASSWORD_TYPE:
        return True
    if not isinstance(value, str):
        return is_secret_name(name)
    told = _compiled(_REFERENCE).sub("", value) if "${" in value else value
    return (is_secret_name(name) and (told == value or bool(told.strip(" ,")))) or is_secret_text(told)


@cache
def _compiled(expression: str) -> re.Pattern[str]:
    """An expression, compiled when the first config comes, which few captures have: it takes a while."""
    return re.compile(expression)


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
