"""Credentials that can be told by their form, in values of configs and in what a broker says about an error."""

from __future__ import annotations

import re
from functools import cache
from typing import Final

#: How the names of fields end in which a broker explains itself; it may quote what it was sent.
EXPLANATIONS: Final = ("error_message", "status_detail")
#: Values that are secrets under any name: a login of JAAS, a pair ``password=...`` or ``"token": ...`` among others (in
#: JDBC strings and in the queries of URLs, too), Oracle's ``user/password@``, an HTTP credential, a JSON Web Token, a
#: private key, a webhook of Slack, Discord or Teams or a bot of Telegram, whose path is the credential, and tokens of
#: which the issuers publish the form, so that they are found where they were leaked (Confluent, GitHub, GitLab, Slack,
#: Stripe, Google, Vault, Databricks, npm, Grafana, SendGrid). Repetitions are bounded, so that a search takes time in
#: proportion to the value.
_SECRET_VALUE = (
    r"LoginModule\s|-----BEGIN [A-Z ]{0,32}PRIVATE KEY|PuTTY-User-Key-File"
    r"|\beyJ[\w-]{8,2048}\.eyJ|\b(?i:basic|bearer|api-token)\s{1,8}[\w+/=.-]{8}"
    r"|(?i:pass|pwd|secret|token|credential|jwt|authorization|signature|(?:private|master|api|access|account)[_.-]?key"
    r"|\bpw|\bsig)[\w.-]{0,32}[\\\"']{0,4}\s{0,8}[=:]\s{0,8}[^\s&;,]"
    r"|(?i://hooks\.slack\.com/\w|//[\w.-]{0,64}/api/webhooks/|\.webhook\.office\.com/|//api\.telegram\.org/bot)"
    r"|(?i::(?:thin|oci8?):)[^/@\s]{1,256}/[^@\s]{1,256}@"
    r"|\b(?:cflt[\w+/]{60}|gh[oprsu]_\w{36}|github_pat_\w{22}|glpat-[\w-]{20}|xox[abeoprs]-[\w-]{10}|[rs]k_live_\w{16}"
    r"|AIza[\w-]{35}|hv[brs]\.[\w-]{20}|dapi[0-9a-f]{32}|npm_\w{36}|glsa_\w{32}|SG\.[\w-]{16,32}\.[\w-]{16})"
)


def is_secret_text(text: str) -> bool:
    """Whether a text has a credential in it that can be told by its form."""
    return _has_login(text) or _secret_value().search(text) is not None


def _has_login(text: str) -> bool:
    """Whether a URL in a text has ``user:password@`` (RFC 3986, section 3.2.1); HTTP's user alone may be a token."""
    scheme_end = text.find("://")
    if scheme_end < 0:
        return False
    at = text.rfind("@")
    colon = text.find(":", scheme_end + 3)
    has_password = 0 <= colon < at - 1
    return at > scheme_end and (has_password or text[:scheme_end].lower().endswith(("http", "https")))


@cache
def _secret_value() -> re.Pattern[str]:
    """The expression, compiled when the first text comes, which few captures have: it takes a while."""
    return re.compile(_SECRET_VALUE)
