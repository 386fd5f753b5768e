"""Running the command inside the test process."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from kwiresniff.cli.main import main


class Done(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def kwiresniff(capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs ``kwiresniff`` with the arguments given."""

    def run(*args: str) -> Done:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(list(args))
        out, err = capfd.readouterr()
        code = ended.value.code
        assert isinstance(code, int)
        return Done(code, out, err)

    return run
