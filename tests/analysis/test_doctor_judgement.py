"""The judgement: of the causes that explain one observation the best is told, the others stand beneath it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kwiresniff.analysis.doctor import Cause, Context, Doctor, Explanation, Harm, Observation, Observed, Observer
from kwiresniff.analysis.doctor.cause import SYMPTOM, WASTE
from kwiresniff.analysis.doctor.judgement import Judgement, judged

LATE = Observation("late", frozenset({"broker:a"}), "a was late", 1, 2, 3, Harm(requests_late=3, late_ns=9), ((7, 1),))
LOST = Observation("lost", frozenset({"broker:a"}), "a lost data", 2, 4, 1, Harm(records_lost=1), ((8, 2),))
MOVED = Observation("moved", frozenset({"broker:b"}), "b moved", 3, 3)


def because(code: str, *explained: Observation, **more: Any) -> Explanation:
    """An explanation of some observations."""
    return Explanation(code, "a", f"the {code}", "mend it", explained, **more)


def judge(*explanations: Explanation, seen: tuple[Observation, ...] = (LATE, LOST, MOVED)) -> Judgement:
    """What is told where these explanations are weighed."""

    class Given(Cause):
        def weigh(self, observed: Observed) -> Iterator[Explanation]:
            assert list(observed) == list(seen)
            return iter(explanations)

    return judged([Given(Context())], seen)


def test_the_cause_that_explains_more_harm_is_told() -> None:
    """What says only that some of it is so is its symptom, and another cause is rejected; the finding has the
    observations' times and evidence, and the count of the first kind."""
    judgement = judge(because("delay", LATE, rank=SYMPTOM), because("net", LOST), because("disk", LATE, LOST))
    (found,) = judgement.findings
    assert [one.code for one in judgement.rejected] == ["net"]
    assert judgement.rejected[0].contradicts == ("disk explains the same: the disk",)
    assert (found.code, found.severity, [one.code for one in found.symptoms]) == ("disk", "error", ["delay"])
    assert (found.count, found.first_ns, found.last_ns, found.evidence) == (3, 1, 4, ((7, 1), (8, 2)))
    assert found.scope == {"broker:a"}
    assert found.observed == ("a was late", "a lost data")


def test_of_two_that_explain_the_same_the_one_that_assumes_less_is_told() -> None:
    """A doubt and a contradiction are assumptions; so is to say only that it is so."""
    for worse in ({"doubt": "or not"}, {"contradicts": ("no",)}, {"rank": SYMPTOM}):
        assert judge(because("one", LATE, LOST, **worse), because("other", LATE, LOST)).findings[0].code == "other"


def test_what_is_refuted_is_no_finding_but_can_be_shown() -> None:
    """What it would explain is left over, and told as it was observed where it cost something."""
    judgement = judge(because("disk", LATE, LOST, MOVED, stands=False, contradicts=("the disk is idle",)))
    assert [(one.code, one.severity, one.title) for one in judgement.findings] == [
        ("lost", "error", "a lost data"),
        ("late", "warning", "a was late"),
    ]
    (rejected,) = judgement.rejected
    assert (rejected.code, rejected.contradicts) == ("disk", ("the disk is idle",))


def test_a_doubt_is_told_with_the_finding() -> None:
    """Among its details."""
    (found,) = judge(because("disk", LATE, LOST, doubt="Or the path.")).findings
    assert found.details == ("Or the path.",)


def test_the_severity_is_that_of_the_harm() -> None:
    """Unless the cause knows better."""
    codes = {
        Harm(requests_failed=1): "error", Harm(seconds_down=0.1): "error", Harm(records_doubled=1): "error",
        Harm(records_unread=1): "warning", Harm(late_ns=1): "warning", Harm(bytes_wasted=10**12): "info",
    }  # fmt: skip
    assert {harm: harm.severity() for harm in codes} == codes
    (found,) = judge(because("disk", LATE, LOST, MOVED, severity="info")).findings
    assert found.severity == "info"


def test_observations_about_entities_come_in_the_order_of_their_names() -> None:
    """Each once, however the set of entities is ordered in this process."""
    made = [Observation("late", frozenset({f"broker:{name}", "topic:t"}), name) for name in "dbca"]
    found = Observed(made).about(frozenset(f"broker:{name}" for name in "abcd"), "late")
    assert [one.text for one in found] == ["a", "b", "c", "d"]
    assert Observed(made).about(["topic:t", "broker:a"], "late", "late") == [made[3], *made[:3]]


def test_waste_weighs_less_than_any_other_harm() -> None:
    """However much it is; what cannot be undone weighs more than anything that failed."""
    in_order = [
        Harm(), Harm(bytes_wasted=10**15), Harm(records_unread=1), Harm(late_ns=1), Harm(requests_failed=1),
        Harm(records_doubled=1), Harm(records_lost=1),
    ]  # fmt: skip
    assert sorted(in_order, key=Harm.weight) == in_order


def test_no_finding_of_waste_is_graver_than_one_of_harm() -> None:
    """Where there is one; whatever the waste is called by itself."""
    waste = because("waste", MOVED, rank=WASTE, severity="warning")
    late = because("late", LATE, severity="info")
    assert [(one.code, one.severity) for one in judge(waste, late, seen=(MOVED, LATE)).findings] == [
        ("late", "info"),
        ("waste", "info"),
    ]
    assert [one.severity for one in judge(waste, seen=(MOVED,)).findings] == ["warning"]


def test_doctor_takes_observers_and_causes_of_others() -> None:
    """As plugins bring them."""

    class Seen(Observer):
        def observations(self) -> Iterator[Observation]:
            yield LOST

    class Because(Cause):
        def weigh(self, observed: Observed) -> Iterator[Explanation]:
            for one in observed.about(["broker:a"], "lost"):
                yield because("disk", one)

    assert [one.code for one in Doctor(None, [Seen, Because]).findings()] == ["disk"]
    assert [one.code for one in Doctor(None, [Seen]).findings()] == ["lost"]
