"""What the tokens of a SASL mechanism say in the clear: the user, when it expires, which service it is for.

Sources: RFC 4616 (PLAIN), RFC 5802 (SCRAM), KIP-48 (``tokenauth``), RFC 7628 (OAUTHBEARER), RFC 7519 (JSON Web Token),
RFC 4121 and RFC 4120 (GSS-API with Kerberos), the README of aws-msk-iam-auth (AWS_MSK_IAM). Nothing is verified.
Passwords, proofs, signatures, bearer tokens and tickets stay where they are; all that is taken from a token is bounded
in length.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import Any

from kwiresniff.session.der import elements

#: The longest name or claim reported. Kafka has no limit of its own; a principal longer than this is an attack.
MAX_NAME_BYTES = 1024
#: The longest claims that are looked into. Identity providers stay below the 8 KB that HTTP headers may have.
MAX_CLAIMS_BYTES = 16 << 10
#: The end of the year 9999, in seconds: later ones have no written form.
MAX_SECONDS = 253_402_300_799

_SCRAM_USER = rb"[nyp][^,]*,[^,]*,n=([^,]{1,1024})(?:,|$)"
_SCRAM_DELEGATION = rb",tokenauth=true(?:,|$)"
_OAUTH_AUTHZID = rb"n,a=([^,]{1,1024}),"
_BEARER = rb"\x01auth=[Bb]earer +[\w-]+\.([\w-]{1,21848})\.[\w-]*\x01"
#: An access key id of IAM (its API allows 16 to 128 word characters), in front of date, region and service.
_ACCESS_KEY_ID = r"([A-Za-z0-9_]{16,128})/"

_KERBEROS = b"\x06\x09\x2a\x86\x48\x86\xf7\x12\x01\x02\x02"
_INITIAL_TOKEN, _AP_REQ, _TICKET, _SEQUENCE = 0x60, 0x6E, 0x61, 0x30
_TICKET_OF_AP_REQ, _REALM, _SERVICE, _NAMES = 0xA3, 0xA1, 0xA2, 0xA1


def read_token(mechanism: str, token: bytes) -> dict[str, Any]:
    """Facts of a client's first token: ``principal`` and what else the mechanism shows; empty for any other token."""
    if mechanism == "PLAIN":
        parts = token.split(b"\x00")  # where there is one more or less, a password may stand in the name's place
        return {"principal": _text(parts[1])} if len(parts) == 3 else {}
    if mechanism.startswith("SCRAM"):
        return _scram(token)
    if mechanism == "OAUTHBEARER":
        return _bearer(token)
    if mechanism == "AWS_MSK_IAM":
        return _iam(token)
    return _kerberos(token) if mechanism == "GSSAPI" else {}


def _text(name: bytes) -> str:
    return name[:MAX_NAME_BYTES].decode("utf-8", "replace")


def _scram(token: bytes) -> dict[str, Any]:
    """The user; with a delegation token its id stands in the user's place, and who owns it is not said."""
    found = re.match(_SCRAM_USER, token)
    if not found:
        return {}
    name = _text(found[1].replace(b"=2C", b",").replace(b"=3D", b"="))
    if re.search(_SCRAM_DELEGATION, token[found.end(1) :]):
        return {"delegation_token_id": name}
    return {"principal": name}


def _bearer(token: bytes) -> dict[str, Any]:
    authzid = re.match(_OAUTH_AUTHZID, token)
    identity: dict[str, Any] = {"principal": _text(authzid[1])} if authzid else {}
    bearer = re.search(_BEARER, token)
    claims = _claims(bearer[1]) if bearer else {}
    subject, expiry = claims.get("sub"), claims.get("exp")
    if isinstance(subject, str) and 0 < len(subject) <= MAX_NAME_BYTES:
        identity["token_subject"] = subject
        identity.setdefault("principal", subject)
    if isinstance(expiry, int | float) and not isinstance(expiry, bool) and 0 <= expiry <= MAX_SECONDS:
        identity["token_expiry_ns"] = round(expiry * 1000) * 1_000_000
    return identity


def _iam(token: bytes) -> dict[str, Any]:
    """The access key id, which names the user; what stands without the scope behind it may be something else."""
    try:
        fields = json.loads(token) if len(token) <= MAX_CLAIMS_BYTES else None
    except (ValueError, RecursionError):
        return {}
    credential = fields.get("x-amz-credential") if isinstance(fields, dict) else None
    found = re.match(_ACCESS_KEY_ID, credential) if isinstance(credential, str) else None
    return {"principal": found[1]} if found else {}


def _claims(payload: bytes) -> dict[str, Any]:
    """The claims of a JSON Web Token, or nothing when it is none."""
    try:
        raw = base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4))
        claims = json.loads(raw) if len(raw) <= MAX_CLAIMS_BYTES else None
    except (binascii.Error, ValueError, RecursionError):
        return {}
    return claims if isinstance(claims, dict) else {}


def _kerberos(token: bytes) -> dict[str, Any]:
    """The service that a ticket is for; who shows it is encrypted."""
    initial = _only(token, 0, len(token), _INITIAL_TOKEN)
    if initial is None or not token.startswith(_KERBEROS, initial[0]):
        return {}
    request = _only(token, initial[0] + len(_KERBEROS) + 2, initial[1], _AP_REQ, _SEQUENCE)
    ticket = request and _only(token, *request, _TICKET_OF_AP_REQ, _TICKET, _SEQUENCE)
    service = ticket and _only(token, *ticket, _SERVICE, _SEQUENCE, _NAMES, _SEQUENCE)
    realm = ticket and _only(token, *ticket, _REALM)
    if not service or not realm:
        return {}
    names = [token[start:end] for _, start, end in elements(token, *service)][:8]
    realms = [token[start:end] for _, start, end in elements(token, *realm)][:1]
    return {"service": _text(b"/".join(names) + b"@" + b"".join(realms))} if names else {}


def _only(data: bytes, start: int, end: int, *tags: int) -> tuple[int, int] | None:
    """Start and end of the contents of the first element with the first tag, in it of that with the second, ..."""
    for wanted in tags:
        found = next(((at, to) for tag, at, to in elements(data, start, end) if tag == wanted), None)
        if found is None:
            return None
        start, end = found
    return start, end
