"""Digests in the build that is not compiled, where messages otherwise have none."""

from __future__ import annotations

import pytest

from kwiresniff.base.fastint import COMPILED
from kwiresniff.codec import codecs
from kwiresniff.model import Body, Message


def as_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is for the compiled build alone is there, and bodies that were put off are decoded when asked for."""
    monkeypatch.setattr(codecs, "is_compiled", lambda module: True)
    if COMPILED:
        return

    def body(message: Message) -> Body | None:
        decode, frame = message._decode, message.frame
        if decode is not None and frame is not None:
            message._decode = None
            message._body, _ = decode(frame, message.body_offset, [])
        return message._body

    def set_body(message: Message, value: Body | None) -> None:
        message._decode = None
        message._body = value

    monkeypatch.setattr(Message, "body", property(body, set_body))
