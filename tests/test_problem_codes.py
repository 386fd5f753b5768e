"""Codes of problems are a contract: what makes a problem, and the page that describes them, agree with the table."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from kwiresniff.analysis.doctor import SEVERITIES
from kwiresniff.base import problem_codes
from kwiresniff.base.problem_codes import CODES, OF_CAPTURES, OF_MESSAGES, ProblemCode

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "output.md").read_text(encoding="utf-8")
SOURCES = {path: path.read_text(encoding="utf-8") for path in sorted((ROOT / "kwiresniff").rglob("*.py"))}

#: Codes that are put together where they are used, and named by something else than a text there.
MADE = {"lost_request", "lost_response", "incomplete_request", "incomplete_response"}


def table(rows: tuple[ProblemCode, ...]) -> str:
    lines = [f"| `{row.code}` | {row.severity} | {row.says} |" for row in rows]
    return "\n".join(["| code | severity | says |", "|---|---|---|", *lines])


def codes_in(text: str) -> Iterator[str]:
    """The codes that a module gives to problems and to errors that become problems, as far as they are texts there."""
    constants = dict(re.findall(r"^(LOST_\w+)(?:: Final)? = \"(\w+)\"", text, re.MULTILINE))
    yield from constants.values()
    if "Problem(" not in text and "DecodeError(" not in text:
        return
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name == "Problem" and node.args and isinstance(node.args[0], ast.Constant):
            yield str(node.args[0].value)
        elif name == "DecodeError":
            given = [word.value for word in node.keywords if word.arg == "code"]
            assert given, f"a DecodeError without a code: {ast.unparse(node)}"
            yield from (str(value.value) for value in given if isinstance(value, ast.Constant))


def test_the_page_prints_the_table() -> None:
    """Every row of both, in their order, as it stands."""
    assert table(OF_CAPTURES) in PAGE
    assert table(OF_MESSAGES) in PAGE


def test_every_code_that_is_used_is_in_the_table_and_the_other_way_round() -> None:
    """What is in neither output nor table cannot be told apart from a slip of the pen."""
    used = {code for text in SOURCES.values() for code in codes_in(text)} | MADE
    assert used - CODES == NOT_IN_OUTPUT
    assert used >= CODES


#: What errors are called that are told in the words of another problem (``embedded_undecoded``).
NOT_IN_OUTPUT = {"bad_protobuf", "too_many_values"}


def test_codes_that_are_put_together_are_still_made_that_way() -> None:
    """Else they would be in the table for nothing."""
    session = "\n".join(text for path, text in SOURCES.items() if path.parent.name in ("session", "stream"))
    assert 'f"lost_{' in session or '"lost_request"' in session
    assert 'f"incomplete_{' in session or '"incomplete_request"' in session


def test_a_code_stands_once_in_each_table_and_has_a_severity_that_findings_have() -> None:
    for rows in (OF_CAPTURES, OF_MESSAGES):
        codes = [row.code for row in rows]
        assert len(codes) == len(set(codes))
        assert {row.severity for row in rows} <= set(SEVERITIES)


def test_a_code_is_found_however_it_is_written() -> None:
    text = 'LOST_X: Final = "x"\nProblem("y", "what")\nraise DecodeError("why", code="z")\nProblem(error.code, "")\n'
    assert list(codes_in(text)) == ["x", "y", "z"]


def test_the_table_has_nothing_beside_its_rows() -> None:
    """A row in a third tuple would be held to nothing."""
    tuples = [value for value in vars(problem_codes).values() if isinstance(value, tuple) and value]
    assert [rows for rows in tuples if isinstance(rows[0], ProblemCode)] == [OF_CAPTURES, OF_MESSAGES]
