"""docs/doctor.md is made of the doctor's classes, and says what each of their codes means."""

from __future__ import annotations

import re

import pytest

from kwiresniff.analysis.doctor import Cause
from kwiresniff.analysis.doctor.examine import CAUSES, OBSERVERS
from kwiresniff.analysis.doctor.troubles.errors import answered_with_error
from tests.analysis.doctor_page import page, paragraphs_on_codes
from tests.support.paths import ROOT


def test_the_page_is_that_of_the_classes() -> None:
    """Else: python -m tests.analysis.doctor_page > docs/doctor.md."""
    assert (ROOT / "docs" / "doctor.md").read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("one", CAUSES, ids=lambda one: one.__name__)
def test_every_code_of_a_class_has_a_paragraph_in_its_docstring(one: type[Cause]) -> None:
    """And no other: the severity, what it means, and whatever else looks the same."""
    told = [re.match(r"`(\w+)` \((?:error|warning|info)", paragraph) for paragraph in paragraphs_on_codes(one)]
    assert sorted(match[1] for match in told if match is not None) == sorted(one.codes)
    assert None not in told or one is answered_with_error


def test_codes_and_kinds_belong_to_one_class() -> None:
    """An error code that an observer judges is not told by another; every kind that a cause explains is observed."""
    codes = [code for one in CAUSES for code in one.codes]
    assert len(codes) == len(set(codes))
    kinds = [kind for observer in OBSERVERS for kind in observer.kinds]
    assert len(kinds) == len(set(kinds))
    assert {kind for one in CAUSES for kind in one.explains} <= set(kinds)
    judged = [name for one in OBSERVERS for name in one.judges]
    assert {name for name in judged if judged.count(name) > 1} <= {
        "NOT_LEADER_OR_FOLLOWER",
        "FENCED_LEADER_EPOCH",
        "UNKNOWN_LEADER_EPOCH",
    }
    assert paragraphs_on_codes(answered_with_error)
