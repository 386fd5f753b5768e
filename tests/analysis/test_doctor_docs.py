"""docs/doctor.md says what rules there are."""

from __future__ import annotations

import ast
import re

from kwiresniff.analysis.doctor import Cause, Rule
from kwiresniff.analysis.doctor.errors import ErrorRule
from kwiresniff.analysis.doctor.examine import CAUSES, RULES
from tests.support.package import HOME
from tests.support.paths import ROOT

SOURCES = HOME / "kwiresniff" / "analysis" / "doctor"
PAGE = (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8")
JUDGES: tuple[type[Rule] | type[Cause], ...] = (*RULES, *CAUSES)
ROWS = re.findall(r"^\| (?:`(\w+)`)? ?\| `(\w+)` \|", PAGE, re.MULTILINE)


def test_every_rule_stands_on_the_page_with_its_codes() -> None:
    """In the order of the examination; what is no code of a rule does not stand there."""
    told: dict[str, list[str]] = {}
    rule = ""
    for name, code in ROWS:
        rule = name or rule
        told.setdefault(rule, []).append(code)
    known = {one.__name__: sorted(one.codes) for one in JUDGES}
    assert {name: sorted(codes) for name, codes in told.items()} == known
    assert f"| `{ErrorRule.__name__}` |" in PAGE


def test_rules_have_a_sentence_and_share_no_code() -> None:
    """A code belongs to one rule, and an error code that a rule judges is not told by another."""
    codes = [code for one in JUDGES for code in one.codes]
    assert len(codes) == len(set(codes))
    judged = [name for rule in RULES for name in rule.judges]
    sources = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(SOURCES.rglob("*.py"))]
    classes = [node for source in sources for node in ast.walk(source) if isinstance(node, ast.ClassDef)]
    told = {node.name for node in classes if ast.get_docstring(node)}  # compiled classes have lost theirs
    assert {one.__name__ for one in JUDGES} <= told
    assert {name for name in judged if judged.count(name) > 1} <= {
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    }
