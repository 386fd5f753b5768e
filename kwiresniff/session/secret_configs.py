"""Which configs hold a secret: by Kafka's types, by what the broker says (``is_sensitive``), by name and by value."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from kwiresniff.base.light_typing import Any
from kwiresniff.schema.password_configs import PASSWORD, config_type

#: What the names of secrets have in them, however the words are put together: ``clientSecret``, ``client_secret``,
#: ``client.secret``, ``clientsecret``. A key is one beside a word that says that it opens something.
_SECRET_WORDS = (
    r"secret|passw|passphrase|pwd|token|credential|jaas"
    r"|(?:private|access|api|account|shared|signing|encryption)[^a-z0-9]*keys?"
    r"|keys?[^a-z0-9]*(?:private|access)"
)
#: Values that are secrets under any name: a login of JAAS, a pair ``password=...`` among others, a private key.
_SECRET_VALUE = (
    r"LoginModule\s|(?i:passw(?:or)?d|passphrase|secret|token)[\"']?\s*[=:]\s*\S|-----BEGIN [A-Z ]*PRIVATE KEY"
)
#: DescribeConfigsResponse.ConfigType.
_PASSWORD_TYPE = 9


def is_secret_name(name: Any) -> bool:
    """Whether a config of that name holds a credential (``ssl.keystore.password``, ``sasl.jaas.config``, ...).

    What Kafka knows as something else (``delegation.token.max.lifetime.ms``) does not, also behind a listener's name.
    """
    if not isinstance(name, str):
        return False
    known = config_type(name)
    if known is not None:
        kafkas_type, prefix = known
        return kafkas_type == PASSWORD or _search(_SECRET_WORDS)(prefix.lower()) is not None
    return _search(_SECRET_WORDS)(name.lower()) is not None


def is_secret_config(name: Any, value: Any, sensitive: Any = False, config_type: Any = None) -> bool:
    """Whether the value of a config is a secret; ``sensitive`` and ``config_type`` are what the broker says of it."""
    if sensitive is True or config_type == _PASSWORD_TYPE or is_secret_name(name):
        return True
    return isinstance(value, str) and _search(_SECRET_VALUE)(value) is not None


@cache
def _search(expression: str) -> Callable[[str], object]:
    """What searches for an expression; made when the first config comes, which few captures have: it takes a while."""
    import re

    return re.compile(expression).search
