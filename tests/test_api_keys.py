"""The numbers of APIs are written in one place, which agrees with the definitions."""

from __future__ import annotations

import re
from pathlib import Path

from kwiresniff import schema
from kwiresniff.base import api_keys

PACKAGE = Path(api_keys.__file__).resolve().parent.parent
FILES = sorted(PACKAGE.rglob("*.py"))

KEYS = {name: key for name, key in vars(api_keys).items() if isinstance(key, int)}


def constant_name(name: str) -> str:
    """``ListOffsets`` as ``LIST_OFFSETS``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper()


def test_every_api_has_its_number_under_its_newest_name() -> None:
    """The constants are the APIs of the definitions, which are Kafka's own, and no others."""
    assert {constant_name(api.name): api.key for api in schema.apis()} == KEYS


#: An assignment to a name of an API, alone or among others, of something with a number in it.
OWN_NUMBER = re.compile(rf"^ *[\w, ]*\b_?({'|'.join(KEYS)})\b[\w, ]*(: *\w+)? = .*\b\d", re.MULTILINE)


def numbers_of_their_own(path: Path) -> list[str]:
    """Assignments by which a module gives APIs numbers by itself."""
    return [found.group() for found in OWN_NUMBER.finditer(path.read_text(encoding="utf-8"))]


def test_no_other_module_gives_an_api_its_number() -> None:
    """Whoever needs one by name imports it."""
    home = PACKAGE / "base" / "api_keys.py"
    found = {str(path): numbers_of_their_own(path) for path in FILES if path != home}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_an_api_number_that_is_written_again_is_found(tmp_path: Path) -> None:
    """Alone, among others, and as a Final."""
    path = tmp_path / "module.py"
    path.write_text("PRODUCE, FETCH = 0, 1\n_METADATA: Final = 3\nMAX_FETCH = 1\nFETCH = KEY\n")
    assert numbers_of_their_own(path) == ["PRODUCE, FETCH = 0, 1", "_METADATA: Final = 3"]
