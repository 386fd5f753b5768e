"""SASL tokens without a header: what tells them from requests, and when they are over."""

from __future__ import annotations

import pytest

from kwiresniff.session.apis import known_versions
from kwiresniff.session.sasl_opaque import OpaqueTokens, is_request
from tests.support.conversation import api_versions_v0, heartbeat


@pytest.mark.parametrize("token", [b"", b"\0alice\0secret", b"n,,n=alice,r=fyko", bytes(range(100)), b"\0\x0c\0\0"])
def test_a_token_is_no_request(token: bytes) -> None:
    """Of PLAIN, of SCRAM, and of what is any bytes."""
    assert not is_request(len(token), token, known_versions())


@pytest.mark.parametrize("frame", [heartbeat(1)[4:], api_versions_v0(7)[4:]])
def test_a_request_is_told_by_its_header(frame: bytes) -> None:
    """A request after opaque tokens shows that they were accepted."""
    assert is_request(len(frame), frame, known_versions())


def test_tokens_are_over_when_neither_side_sends_any() -> None:
    """Each side ends by itself, and they may begin anew."""
    tokens = OpaqueTokens()
    assert tokens.is_over()
    for _ in range(2):
        tokens.begin()
        assert tokens.expected and not tokens.is_over()
        tokens.from_client = False
        assert not tokens.is_over()
        tokens.from_broker = False
        assert tokens.is_over()
