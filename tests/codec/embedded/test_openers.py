"""A format of embedded bytes is one file: it says itself in which messages it is found."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kwiresniff.base.api_keys import LIST_OFFSETS, PUSH_TELEMETRY
from kwiresniff.codec import embedded
from kwiresniff.codec.embedded.openers import collect

FORMAT = """
from kwiresniff.base.api_keys import {api}

def opener(holder, exchange, topic_name):
    holder.hint("name", "found")

OPENERS = {{({api}, "request"): opener}}
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the list of modules of the package, with room for more of them."""
    monkeypatch.setattr(embedded, "__path__", [*embedded.__path__, str(tmp_path)])
    importlib.invalidate_caches()
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("kwiresniff.codec.embedded.made_up")]:
        del sys.modules[name]


def test_a_file_more_is_a_format_more(package: Path) -> None:
    """Nothing else names it."""
    (package / "made_up_format.py").write_text(FORMAT.format(api="LIST_OFFSETS"))
    openers, _ = collect(embedded.__name__, embedded.__path__)
    assert openers.keys() - embedded.OPENERS.keys() == {(LIST_OFFSETS, "request")}


def test_two_formats_for_one_message_are_refused(package: Path) -> None:
    """Else the one whose name comes later in the alphabet would win."""
    (package / "made_up_format.py").write_text(FORMAT.format(api="PUSH_TELEMETRY"))
    with pytest.raises(ValueError, match=rf"opens what another format opens: \[\({PUSH_TELEMETRY}, 'request'\)\]"):
        collect(embedded.__name__, embedded.__path__)


def test_every_quick_look_is_at_what_is_opened() -> None:
    assert embedded.QUICK_LOOKS.keys() <= embedded.OPENERS.keys()
