from __future__ import annotations

import io
import os

import pytest

from kwiresniff.render.terminal import console, is_unicode, printable, use_color, width_of


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        raise OSError("no descriptor")


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def test_a_pipe_has_no_colour_and_no_width() -> None:
    assert not use_color(io.StringIO())
    assert width_of(io.StringIO()) is None


@pytest.mark.parametrize(
    ("variables", "in_a_pipe", "on_a_terminal"),
    [
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"CLICOLOR_FORCE": "0"}, False, True),
        ({"CLICOLOR": "0"}, False, False),
        ({"CLICOLOR": "1"}, False, True),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True, True),
        ({"NO_COLOR": "1", "CLICOLOR_FORCE": "1"}, False, False),
    ],
)
def test_clicolor_is_obeyed(
    variables: dict[str, str], in_a_pipe: bool, on_a_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CLICOLOR and CLICOLOR_FORCE mean what https://bixense.com/clicolors says; NO_COLOR wins over all."""
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert (use_color(io.StringIO()), use_color(Terminal())) == (in_a_pipe, on_a_terminal)


def test_a_terminal_has_both() -> None:
    assert use_color(Terminal(), "auto")
    assert width_of(Terminal()) == 80


def test_the_option_wins_over_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert use_color(io.StringIO(), "always")
    assert not use_color(Terminal(), "never")


def test_no_color_wins_over_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not use_color(Terminal())


def test_a_dumb_terminal_has_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert not use_color(Terminal())


def test_columns_overrides_the_terminal_but_not_to_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "132")
    assert width_of(Terminal()) == 132
    monkeypatch.setenv("COLUMNS", "3")
    assert width_of(Terminal()) == 40


def test_a_real_terminal_is_asked_for_its_width() -> None:
    fcntl = pytest.importorskip("fcntl")
    termios = pytest.importorskip("termios")
    primary, secondary = os.openpty()
    fcntl.ioctl(secondary, termios.TIOCSWINSZ, (50).to_bytes(2, "little") + (97).to_bytes(2, "little") + bytes(4))
    with os.fdopen(secondary, "w") as out:
        assert width_of(out) == 97
    os.close(primary)


def test_what_the_encoding_cannot_say_is_escaped() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    assert not is_unicode(out)
    assert printable("ö → 東", out) == "ö \\u2192 \\u6771"
    assert is_unicode(io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))


def test_the_console_follows_the_same_rules(capsys: pytest.CaptureFixture[str]) -> None:
    console("never").print("[bold]no markup[/] 123", style="red")
    assert capsys.readouterr().out == "[bold]no markup[/] 123\n"
    console("always", stderr=True).print("x", style="red")
    assert capsys.readouterr().err == "\x1b[31mx\x1b[0m\n"
