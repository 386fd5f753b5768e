"""What many rooms have to know is written in one of them: a second place would be forgotten when the first changes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kwiresniff.base import batch_layout, body_members, known_ids, placeholders, sequence_numbers

PACKAGE = Path(known_ids.__file__).resolve().parent.parent
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


@pytest.mark.parametrize(
    ("value", "home"),
    [
        pytest.param(known_ids.ZERO_UUID, known_ids, id="no id"),
        pytest.param(known_ids.METADATA_TOPIC_ID, known_ids, id="the id of the metadata log"),
        pytest.param(known_ids.METADATA_TOPIC, known_ids, id="the topic of the metadata log"),
        pytest.param(body_members.UNKNOWN_TAGS, body_members, id="unknown tagged fields"),
        pytest.param(body_members.DECODED, body_members, id="what bytes hold"),
        pytest.param(body_members.CUT_SHORT, body_members, id="a batch that is cut short"),
        pytest.param(placeholders.NO_CLIENT_ID, placeholders, id="a client without a client id"),
        pytest.param(placeholders.NO_REQUEST, placeholders, id="an exchange without a request"),
        pytest.param(placeholders.NO_TOPIC, placeholders, id="an exchange without a topic"),
        pytest.param(placeholders.OTHERS, placeholders, id="the row of all others"),
        pytest.param(batch_layout.CODEC_NAMES, batch_layout, id="compression codecs"),
    ],
)
def test_a_word_that_many_use_is_written_once(value: object, home: object) -> None:
    """Values of the program count; comments and docstrings do not."""
    text = str(value[-1] if isinstance(value, tuple) else value)
    places = [
        path.relative_to(PACKAGE).as_posix()
        for path, source in SOURCES.items()
        if text in source
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant | ast.Tuple) and written(node) == value
    ]
    assert places == [Path(str(home.__file__)).resolve().relative_to(PACKAGE).as_posix()]  # type: ignore[attr-defined]


def written(node: ast.Constant | ast.Tuple) -> object:
    """The value of a text, or of a tuple of texts."""
    if isinstance(node, ast.Constant):
        return node.value
    return tuple(part.value if isinstance(part, ast.Constant) else None for part in node.elts)


def last_name(node: ast.expr) -> str:
    """``c`` of ``a.b.c``, the name of a variable, or nothing of what is neither."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def numbers_in_place_of_apis(source: str) -> list[str]:
    """Sets that hold a number as such, and comparisons of an API key with one; -1 stands for no API."""
    found = []
    for node in ast.walk(ast.parse(source)):
        values: list[ast.expr] = []
        if isinstance(node, ast.Set):
            values = node.elts
        elif isinstance(node, ast.Compare) and last_name(node.left).endswith("api_key"):
            values = [part for one in node.comparators for part in getattr(one, "elts", [one])]
        numbers = [one for one in values if isinstance(one, ast.Constant) and type(one.value) is int]
        if numbers and not (isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt | ast.GtE)):
            found.append(ast.unparse(node))
    return found


def test_apis_have_names() -> None:
    """A reader does not know what 68 is; ``base/api_keys.py`` does."""
    found = {path.name: numbers_in_place_of_apis(source) for path, source in SOURCES.items()}
    assert {name: numbers for name, numbers in found.items() if numbers} == {}


def test_a_number_in_place_of_an_api_is_found() -> None:
    """In a set and beside an API key; a missing one may be asked for."""
    source = "A = {PRODUCE, 68}\nB = one.api_key == 3\nC = api_key in (1, FETCH)\nD = api_key < 0\nE = {-1, FETCH}\n"
    assert numbers_in_place_of_apis(source) == ["{PRODUCE, 68}", "one.api_key == 3", "api_key in (1, FETCH)"]


def test_tcps_sequence_numbers_have_their_masks_in_one_place() -> None:
    """No other module names a mask of its own."""
    names = {"SEQ_MASK", "SEQ_HALF"}
    places = {
        path.stem
        for path, source in SOURCES.items()
        for line in source.splitlines()
        if any(line.lstrip("_").startswith((f"{name} =", f"{name}:")) for name in names)
    }
    assert places == {Path(sequence_numbers.__file__).stem}


def test_the_fields_of_a_batch_header_follow_each_other() -> None:
    """Each begins where the one before it ends, by the sizes of the protocol guide; the last one ends the header."""
    sizes = {
        "LENGTH_AT": 4, "LEADER_EPOCH_AT": 4, "MAGIC_AT": 1, "CRC_AT": 4, "ATTRIBUTES_AT": 2,
        "LAST_DELTA_AT": 4, "BASE_TIMESTAMP_AT": 8, "MAX_TIMESTAMP_AT": 8, "PRODUCER_ID_AT": 8, "PRODUCER_EPOCH_AT": 2,
        "BASE_SEQUENCE_AT": 4, "RECORDS_COUNT_AT": 4,
    }  # fmt: skip
    at = 8  # behind the base offset
    for name, size in sizes.items():
        assert getattr(batch_layout, name) == at, name
        at += size
    assert at == batch_layout.HEADER_BYTES
    assert {name for name in vars(batch_layout) if name.endswith("_AT")} == sizes.keys()


#: Values that two modules have for reasons of their own.
COINCIDENCES = frozenset[str]()


def is_telling(value: ast.expr) -> bool:
    """Whether a value is too particular to be in two places by chance: a table of texts, an expression, a format."""
    if isinstance(value, ast.Call):
        called = ast.unparse(value.func)
        texts = [part for part in ast.walk(value) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        if called in ("Struct", "struct.Struct"):
            return bool(texts) and len(str(texts[0].value)) > 3
        return called == "re.compile" or (called in ("frozenset", "set", "dict") and len(texts) > 1)
    texts = [part for part in ast.walk(value) if isinstance(part, ast.Constant) and isinstance(part.value, str)]
    return isinstance(value, ast.Tuple | ast.List | ast.Set | ast.Dict) and len(texts) > 1


def telling_values(source: str) -> list[str]:
    """The telling values that a module gives names to; of ``Struct(...).unpack_from`` the format."""
    found = []
    for node in ast.parse(source).body:
        value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
        value = value.value if isinstance(value, ast.Attribute) else value
        if value is not None and is_telling(value):
            found.append(ast.unparse(value).replace("struct.Struct", "Struct"))
    return found


def test_no_table_format_or_expression_is_written_in_two_modules() -> None:
    """Names of the two may differ: what counts is the value."""
    places: dict[str, set[str]] = {}
    for path, source in SOURCES.items():
        for value in telling_values(source):
            places.setdefault(value, set()).add(path.relative_to(PACKAGE).as_posix())
    assert {value: found for value, found in places.items() if len(found) > 1 and value not in COINCIDENCES} == {}


def test_what_is_telling_is_found() -> None:
    """Single texts and numbers are in many places for many reasons."""
    source = 'A = ("a", "b")\n_B: Final = frozenset({"x", "y"})\nC = Struct(">hhi").unpack_from\nD = "a"\nE = (1, 2)\n'
    assert telling_values(source) == ["('a', 'b')", "frozenset({'x', 'y'})", "Struct('>hhi')"]
